//! One loop: claim a batch, call the handler, settle.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::policy::backoff;
use gristmill_core::{
    Backoff, Claim, ClaimRequest, ClaimedTask, Outcome, PutAnswer, QueueName, SettleAnswer,
    Settlement, StoreError, TaskId, Token, WorkerId,
};
use tokio::sync::watch;

use super::attempt::{self, Ended, Running};
use super::context::Context;
use super::rotation::Served;
use super::stop::Stop;
use super::{WorkReport, heartbeat};
use crate::Mill;

/// Longest wait between two looks at the store.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How often a draining processor tries a store that does not answer.
const DRAIN_TRIES: u32 = 5;

pub(super) struct Processor {
    pub(super) mill: Mill,
    pub(super) worker: WorkerId,
    pub(super) served: Arc<Vec<Served>>,
    /// Where in the rotation this processor begins.
    pub(super) first: usize,
    pub(super) batch: Option<usize>,
    pub(super) lease: Option<Duration>,
    pub(super) source: Option<String>,
    pub(super) drain: bool,
    pub(super) stop: Arc<Stop>,
    pub(super) heartbeat: heartbeat::Handle,
}

impl Processor {
    /// Runs until the stop or, draining, until nothing is due. The error is
    /// what a draining processor gave up for.
    pub(super) async fn run(self) -> (WorkReport, Option<StoreError>) {
        let mut report = WorkReport::default();
        let names: Vec<QueueName> = self.served.iter().map(|served| served.name.clone()).collect();
        let mut failures = 0u32;
        while !self.stop.is_asked() {
            let mark = self.mill.store().mark();
            let mut idle_for = LOOK_AGAIN;
            let mut found = false;
            let mut failed = None;
            for turn in 0..self.served.len() {
                let Some(served) = self.served.get((self.first + turn) % self.served.len()) else {
                    break;
                };
                if self.stop.is_asked() {
                    break;
                }
                match self.cycle(served, &mut report).await {
                    Ok(claim) => {
                        found |= claim.took > 0;
                        idle_for = claim.next_due.map_or(idle_for, |due| idle_for.min(due));
                    }
                    Err(error) => failed = Some(error),
                }
            }
            if let Some(error) = failed {
                let hopeless = !error.is_retryable() && error.wrote_nothing();
                if self.drain && (hopeless || failures >= DRAIN_TRIES) {
                    return (report, Some(error));
                }
                tracing::warn!(%error, "the store did not answer; trying again");
                self.back_off(failures).await;
                failures = failures.saturating_add(1);
                continue;
            }
            failures = 0;
            if found {
                continue;
            }
            if self.drain {
                break;
            }
            let store = self.mill.store();
            tokio::select! {
                waited = store.wait(&names, mark, idle_for) => if waited.is_err() {
                    self.back_off(failures).await;
                },
                () = self.stop.asked() => {}
            }
        }
        (report, None)
    }

    /// Waits before the next try, longer each time, and ends early at a stop.
    async fn back_off(&self, failures: u32) {
        let policy =
            Backoff { base: Duration::from_millis(200), cap: Duration::from_secs(5), jitter: true };
        let spread = backoff::spread(TaskId(i64::from(std::process::id())), failures);
        let wait = backoff::wait(&policy, failures, spread) + Duration::from_millis(50);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = self.stop.asked() => {}
        }
    }

    /// Claims from one queue and runs what it got.
    async fn cycle(&self, served: &Served, report: &mut WorkReport) -> Result<Cycle, StoreError> {
        let store = self.mill.store();
        let settings = served.settings(&*store).await?;
        let most = self.batch.unwrap_or(settings.batch_size as usize);
        let token = Token::random()?;
        let claim = store
            .claim(ClaimRequest {
                queue: served.name.clone(),
                max: served.batch(most),
                lease: self.lease,
                worker: self.worker.clone(),
                source: self.source.clone(),
                token,
            })
            .await?;
        let cycle = Cycle { took: claim.tasks.len(), next_due: claim.next_due };
        if cycle.took > 0 {
            self.heartbeat.hold(token, claim.lease);
            self.work_off(served, claim, settings.timeout, report).await;
            self.heartbeat.let_go(token);
        }
        Ok(cycle)
    }

    async fn work_off(
        &self,
        served: &Served,
        claim: Claim,
        timeout: Duration,
        report: &mut WorkReport,
    ) {
        let token = claim.token;
        let mut tasks = claim.tasks.into_iter();
        for task in tasks.by_ref() {
            if self.stop.is_asked() {
                self.give_back(token, task.id, report).await;
                continue;
            }
            if !self.heartbeat.is_held(token) {
                // Lost while it waited: it may run elsewhere already.
                report.lease_lost += 1;
                continue;
            }
            let id = task.id;
            let start = Instant::now();
            let (ended, context) = self.attempt(served, task, token, timeout).await;
            served.took(start.elapsed());
            match ended {
                Ended::With(outcome) => {
                    let mut settlement = Settlement::new(id, token, outcome);
                    if settlement.outcome == Outcome::Done {
                        settlement.follow_ups = context.take_follow_ups();
                    }
                    self.settle(settlement, report).await;
                }
                Ended::Lost => report.lease_lost += 1,
            }
        }
    }

    async fn attempt(
        &self,
        served: &Served,
        task: ClaimedTask,
        token: Token,
        timeout: Duration,
    ) -> (Ended, Context) {
        let cancel = watch::Sender::new(None);
        let (queue, worker) = (served.name.clone(), self.worker.clone());
        let context = Context::new(queue, worker, &task, timeout, cancel.subscribe());
        let _running = Running::begin(&self.heartbeat, token, task.id, cancel.clone());
        let handler = served.handler.clone();
        let task = Arc::new(task);
        let running = attempt::run(handler, task, context.clone(), cancel, &self.stop, timeout);
        (running.await, context)
    }

    async fn give_back(&self, token: Token, id: TaskId, report: &mut WorkReport) {
        let outcome = Outcome::Release { at: None, started: false };
        self.settle(Settlement::new(id, token, outcome), report).await;
    }

    /// Settles, again and again while the store is away: a settlement may be
    /// repeated, and the lease is extended meanwhile.
    async fn settle(&self, settlement: Settlement, report: &mut WorkReport) {
        let id = settlement.id;
        let released = matches!(settlement.outcome, Outcome::Release { started: false, .. });
        let done = settlement.outcome == Outcome::Done;
        for tries in 0.. {
            match self.mill.store().settle(vec![settlement.clone()]).await {
                Ok(answers) => {
                    match answers.first() {
                        Some(SettleAnswer::LeaseLost) => report.lease_lost += 1,
                        Some(SettleAnswer::Gone) => report.gone += 1,
                        _ if released => report.released += 1,
                        _ if done => report.done += 1,
                        _ => report.not_done += 1,
                    }
                    if let Some(SettleAnswer::Recorded { follow_ups, .. }) = answers.first() {
                        report.follow_ups_refused += refused(id, follow_ups);
                    }
                    return;
                }
                Err(error) if error.is_retryable() || !error.wrote_nothing() => {
                    tracing::warn!(%error, %id, "not settled yet; trying again");
                    if self.stop.is_asked() && tries > 3 {
                        // The lease runs out and the task comes back.
                        return;
                    }
                    self.back_off(tries).await;
                }
                Err(error) => {
                    tracing::error!(%error, %id, "cannot be settled; its lease will run out");
                    return;
                }
            }
        }
    }
}

/// Follow-ups that were not taken. The task itself is done by then, so all
/// that is left is to say it loudly.
fn refused(id: TaskId, follow_ups: &[PutAnswer]) -> u64 {
    let mut count = 0;
    for answer in follow_ups {
        if let PutAnswer::Refused(why) = answer {
            tracing::error!(%id, %why, "a follow-up was refused");
            count += 1;
        }
    }
    count
}

/// What one cycle found.
struct Cycle {
    took: usize,
    next_due: Option<Duration>,
}
