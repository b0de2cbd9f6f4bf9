//! Claims, leases and reclaiming gone wrong.

use std::time::Duration;

use gristmill_core::{
    Checkpoint, CheckpointAnswer, Claim, ClaimRequest, Clock, ExtendAnswer, Extension, Kept,
    ListRequest, Outcome, ProgressView, Result, Settlement, State, Store, SweepReport, Task,
    TaskFilter, Token, When,
};

use super::{Defect, Flawed, lock};

impl Flawed {
    pub(super) async fn flawed_claim(&self, mut request: ClaimRequest) -> Result<Claim> {
        self.before_reclaiming().await?;
        if self.paused_here(&request.queue) {
            return Ok(request.nothing_yet(Duration::from_secs(60), true));
        }
        self.mishear_claim(&mut request).await?;
        match self.defect {
            Some(Defect::IgnoresSource) => request.source = None,
            Some(Defect::ClaimsOneMore) => request.max += 1,
            // Not so far ahead that it looks like a jump of the clock.
            Some(Defect::ClaimsEarly) => self.shared.clock.set_ahead(Duration::from_millis(900)),
            _ => {}
        }
        let max = request.max;
        let again = request.clone();
        let claim = self.inner().claim(request).await;
        self.shared.clock.set_ahead(Duration::ZERO);
        let mut claim = claim?;
        if self.has(Defect::BatchesSuspects) && claim.tasks.len() == 1 && max > 1 {
            self.fill_up(&mut claim, again).await?;
        }
        if self.has(Defect::FailsInSilence) {
            claim.failed.clear();
        }
        for task in &mut claim.tasks {
            lock(&self.shared.tokens).insert(task.id, claim.token);
            if self.has(Defect::ReusesSlots) {
                task.slot = task.slot.map(|_| 0);
            }
        }
        self.misspeak_claim(&mut claim).await?;
        Ok(claim)
    }

    /// Claims the rest that a suspect at the front had held off.
    async fn fill_up(&self, claim: &mut Claim, mut request: ClaimRequest) -> Result<()> {
        let alone = claim.tasks.first().map(|task| task.id);
        let expiries = match alone {
            Some(id) => self.inner().get(id).await?.map_or(0, |task| task.expiries),
            None => 0,
        };
        if expiries > 0 {
            request.max -= 1;
            request.token = Token::random()?;
            let rest = self.inner().claim(request).await?;
            claim.tasks.extend(rest.tasks);
        }
        Ok(())
    }

    pub(super) async fn processing(&self) -> Result<Vec<Task>> {
        let filter = TaskFilter { state: Some(State::Processing), ..TaskFilter::default() };
        let limit = self.limits().page;
        let page = self.inner().list(ListRequest { filter, limit, ..ListRequest::default() });
        Ok(page.await?.tasks)
    }

    fn current(&self, task: &Task) -> Option<Token> {
        lock(&self.shared.tokens).get(&task.id).copied()
    }

    /// What goes wrong wherever expired leases are looked for.
    async fn before_reclaiming(&self) -> Result<()> {
        match self.defect {
            Some(Defect::NeverReclaims) => {
                for task in self.processing().await? {
                    if let Some(token) = self.current(&task) {
                        let lease = Duration::from_secs(60);
                        self.inner().extend(vec![Extension::new(token, lease)]).await?;
                    }
                }
            }
            Some(Defect::ReclaimsUnguarded) => self.reclaim_unguarded().await?,
            Some(Defect::ForgetsExpiredAttempts) => {
                let now = self.shared.clock.now();
                for task in self.processing().await? {
                    if task.lease.as_ref().is_some_and(|lease| lease.until <= now) {
                        self.give_back(&task).await?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Puts a task back in its place under its holder's own token.
    pub(super) async fn give_back(&self, task: &Task) -> Result<()> {
        if let Some(token) = self.current(task) {
            let outcome = Outcome::Release { at: Some(When::At(task.run_at)), started: false };
            self.inner().settle(vec![Settlement::new(task.id, token, outcome)]).await?;
        }
        Ok(())
    }

    pub(super) async fn flawed_reclaim(&self) -> Result<u64> {
        self.before_reclaiming().await?;
        let mut taken = 0;
        if self.has(Defect::ReclaimsLiveLeases) {
            for task in self.processing().await? {
                self.give_back(&task).await?;
                taken += 1;
            }
        }
        Ok(taken + self.inner().reclaim().await?)
    }

    pub(super) async fn flawed_sweep(&self) -> Result<SweepReport> {
        self.before_reclaiming().await?;
        let mut report = self.inner().sweep().await?;
        if self.has(Defect::FailsInSilence) {
            report.failed.clear();
        }
        Ok(report)
    }

    pub(super) async fn flawed_checkpoint(
        &self,
        mut checkpoints: Vec<Checkpoint>,
    ) -> Result<Vec<CheckpointAnswer>> {
        match self.defect {
            Some(Defect::ForgetsCheckpoints) => {
                for checkpoint in &mut checkpoints {
                    if checkpoint.state.len() <= self.limits().checkpoint_bytes {
                        checkpoint.state = Kept::from(Vec::new());
                    }
                }
            }
            Some(Defect::KeepsStaleCheckpoints) => {
                for checkpoint in &mut checkpoints {
                    let holder = lock(&self.shared.tokens).get(&checkpoint.id).copied();
                    checkpoint.token = holder.unwrap_or(checkpoint.token);
                }
            }
            _ => {}
        }
        self.inner().checkpoint(checkpoints).await
    }

    /// What goes wrong with how far tasks are.
    async fn mishear_progress(&self, extensions: &mut [Extension]) -> Result<()> {
        match self.defect {
            Some(Defect::ForgetsProgress) => {
                extensions.iter_mut().for_each(|one| one.progress.clear());
            }
            Some(Defect::ShowsStaleProgress) => {
                for extension in extensions.iter() {
                    for told in &extension.progress {
                        let holder = lock(&self.shared.tokens).get(&told.id).copied();
                        let Some(token) = holder.filter(|token| *token != extension.token) else {
                            continue;
                        };
                        let progress = vec![told.clone()];
                        let lease = extension.lease;
                        let also = Extension { token, lease, progress };
                        self.inner().extend(vec![also]).await?;
                    }
                }
            }
            Some(Defect::KeepsProgressOfEnded) => {
                for told in extensions.iter().flat_map(|extension| &extension.progress) {
                    let view = ProgressView {
                        progress: told.progress.clone(),
                        at: self.shared.clock.now(),
                    };
                    lock(&self.shared.told).insert(told.id, view);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// How far a task is, when it was another attempt that said so.
    pub(super) fn mistell(&self, task: &mut Task) {
        if let Some(lease) = &mut task.lease
            && lease.progress.is_none()
        {
            lease.progress = lock(&self.shared.told).get(&task.id).cloned();
        }
    }

    pub(super) async fn flawed_extend(
        &self,
        mut extensions: Vec<Extension>,
    ) -> Result<Vec<ExtendAnswer>> {
        extensions.iter_mut().for_each(|one| self.mishear_extension(one));
        self.mishear_progress(&mut extensions).await?;
        let fine = || ExtendAnswer::Extended { cancelled: Vec::new(), lost: Vec::new() };
        match self.defect {
            Some(Defect::ForgetsExtensions) => Ok(extensions.iter().map(|_| fine()).collect()),
            Some(Defect::ExtendsWithoutToken) => {
                let mut answers = self.inner().extend(extensions.clone()).await?;
                for (answer, extension) in answers.iter_mut().zip(extensions) {
                    if *answer == ExtendAnswer::LeaseLost
                        && let Some(task) = self.processing().await?.first()
                        && let Some(token) = self.current(task)
                    {
                        *answer = fine();
                        self.inner().extend(vec![Extension { token, ..extension }]).await?;
                    }
                }
                Ok(answers)
            }
            _ => {
                let mut answers = self.inner().extend(extensions).await?;
                answers.iter_mut().for_each(|answer| self.misspeak_extension(answer));
                Ok(answers)
            }
        }
    }
}
