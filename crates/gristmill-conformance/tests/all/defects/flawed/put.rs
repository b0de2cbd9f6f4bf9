//! Puts gone wrong.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use gristmill_core::{
    NewTask, OnDuplicate, Payload, PutAnswer, PutReport, PutRequest, Refusal, Result,
    StandingPlace, Start, Store, StoreError, TaskId, TaskSettings,
};

use super::{Defect, Flawed, give_way, lock};

impl Flawed {
    pub(super) async fn flawed_put(&self, mut request: PutRequest) -> Result<PutReport> {
        self.write_the_unwritten().await?;
        let Some(defect) = self.defect else {
            return self.inner().put(request).await;
        };
        request.tasks.iter_mut().for_each(|task| self.mishear_put(task));
        match defect {
            Defect::AcknowledgesBeforeCommit => self.put_later(request).await,
            Defect::ChecksThenInserts => self.check_then_insert(request).await,
            Defect::FailedBlocksPuts => self.put_unless_failed(request).await,
            Defect::RunsKeysSideBySide => {
                for task in &mut request.tasks {
                    let places = self.places(&request.queue, task).await?;
                    if places.iter().any(|(place, _)| *place == StandingPlace::InFlight) {
                        task.key = None;
                    }
                }
                self.inner().put(request).await
            }
            Defect::ReplacesWithOldPayload => {
                for task in &mut request.tasks {
                    let places = self.places(&request.queue, task).await?;
                    let waiting = places.iter().find(|(place, _)| *place == StandingPlace::Waiting);
                    if let Some((_, id)) = waiting
                        && self.replaces(&request.queue).await?
                        && let Some(standing) = self.inner().get(*id).await?
                    {
                        task.payload = standing.payload;
                    }
                }
                self.inner().put(request).await
            }
            Defect::IgnoresPriority => {
                for task in &mut request.tasks {
                    task.priority = 0;
                    if let Start::At(at) = task.start
                        && at < gristmill_core::Clock::now(self.shared.clock.as_ref())
                    {
                        task.start = Start::Now;
                    }
                }
                self.inner().put(request).await
            }
            Defect::ForgetsWhoWaits => {
                for task in &mut request.tasks {
                    let said = std::mem::take(&mut task.settings);
                    said.timeout().into_iter().for_each(|t| task.settings.set_timeout(t));
                    said.max_attempts().into_iter().for_each(|n| task.settings.set_max_attempts(n));
                    said.backoff().into_iter().for_each(|b| task.settings.set_backoff(b));
                }
                self.inner().put(request).await
            }
            Defect::ForgetsOwnSettings => {
                for task in &mut request.tasks {
                    if task.settings.fault().is_none() {
                        task.settings = TaskSettings::default();
                    }
                }
                self.inner().put(request).await
            }
            Defect::KeepsPayloadsAsText => {
                for task in &mut request.tasks {
                    let text = String::from_utf8_lossy(&task.payload.bytes).into_owned();
                    task.payload = Payload { bytes: text.into(), encoding: task.payload.encoding };
                }
                self.inner().put(request).await
            }
            Defect::DuplicateWithoutId => {
                let mut report = self.inner().put(request).await?;
                for answer in &mut report.answers {
                    if let PutAnswer::Duplicate { id, run_at, source } = answer {
                        (*id, *run_at, *source) = (TaskId(0), None, None);
                    }
                }
                Ok(report)
            }
            Defect::HalfAppliesAtomicPuts => {
                let atomic = std::mem::take(&mut request.atomic);
                let report = self.inner().put(request).await?;
                Ok(if atomic && report.has_fault() { report.undone() } else { report })
            }
            Defect::TearsPutsApart if !request.atomic => self.put_one_by_one(request).await,
            Defect::ForgetsIdsOfDoneTasks => self.put_with_generations(request).await,
            _ => {
                if let Some(report) = self.cached_answer(&request) {
                    return Ok(report);
                }
                let mut report = self.inner().put(request.clone()).await?;
                self.misspeak_put(&request, &mut report).await?;
                Ok(report)
            }
        }
    }

    async fn replaces(&self, queue: &gristmill_core::QueueName) -> Result<bool> {
        let queues = self.inner().queues().await?;
        let found = queues.iter().find(|known| known.name == *queue);
        Ok(found.is_some_and(|queue| queue.settings.on_duplicate != OnDuplicate::Skip))
    }

    /// Where the tasks of this task's key stand; nowhere on an unknown queue.
    async fn places(
        &self,
        queue: &gristmill_core::QueueName,
        task: &NewTask,
    ) -> Result<Vec<(StandingPlace, TaskId)>> {
        let Some(key) = task.key.clone() else {
            return Ok(Vec::new());
        };
        match self.inner().find(queue, &[key]).await {
            Ok(found) => Ok(found.into_iter().map(|s| (s.place, s.id)).collect()),
            Err(StoreError::UnknownQueue { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    async fn put_later(&self, request: PutRequest) -> Result<PutReport> {
        let simple = |task: &NewTask| {
            task.key.is_none() && task.id.is_none() && self.limits().refuse(task).is_none()
        };
        let queues = self.inner().queues().await?;
        let roomy = |known: &gristmill_core::Queue| {
            known.name == request.queue && known.settings.capacity.is_none()
        };
        if !request.tasks.iter().all(simple)
            || !queues.iter().any(roomy)
            || request.tasks.len() > self.limits().put_tasks
        {
            let report = self.inner().put(request).await?;
            let ids = report.answers.iter().filter_map(PutAnswer::id);
            let last = ids.map(|id| id.0).max().unwrap_or(0);
            self.shared.last_id.fetch_max(last, Ordering::SeqCst);
            return Ok(report);
        }
        // Ids are given one after the other, so the answer can be known early.
        let count = i64::try_from(request.tasks.len()).expect("few tasks");
        let last = self.shared.last_id.fetch_add(count, Ordering::SeqCst);
        let answers = (1..=count).map(|n| PutAnswer::Enqueued { id: TaskId(last + n) }).collect();
        lock(&self.unwritten).push(request);
        Ok(PutReport { answers })
    }

    /// Every call first writes what this handle has only acknowledged.
    pub(super) async fn write_the_unwritten(&self) -> Result<()> {
        self.settle_the_unsettled().await?;
        let unwritten = std::mem::take(&mut *lock(&self.unwritten));
        for request in unwritten {
            self.inner().put(request).await?;
        }
        Ok(())
    }

    async fn check_then_insert(&self, request: PutRequest) -> Result<PutReport> {
        let keys: Vec<String> = request.tasks.iter().filter_map(|t| t.key.clone()).collect();
        let taken: HashSet<String> = match self.inner().find(&request.queue, &keys).await {
            Ok(found) => found.into_iter().map(|standing| standing.key).collect(),
            Err(_) => keys.iter().cloned().collect(),
        };
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        let tasks = request.tasks.clone();
        let queue = request.queue.clone();
        let mut report = self.inner().put(request).await?;
        let mut own = HashSet::new();
        for (answer, task) in report.answers.iter_mut().zip(tasks) {
            let Some(key) = task.key.clone() else { continue };
            let free = own.insert(key.clone()) && !taken.contains(&key);
            if free && task.id.is_none() && !answer.is_enqueued() {
                // The check had found it free, so a second one goes in.
                let unkeyed = NewTask { key: None, ..task };
                let second =
                    PutRequest { queue: queue.clone(), tasks: vec![unkeyed], atomic: false };
                *answer = self.inner().put(second).await?.answers.remove(0);
            }
        }
        Ok(report)
    }

    async fn put_unless_failed(&self, request: PutRequest) -> Result<PutReport> {
        let mut report = PutReport::default();
        for task in request.tasks {
            let places = self.places(&request.queue, &task).await?;
            let failed = places.iter().find(|(place, _)| *place == StandingPlace::Failed);
            report.answers.push(match failed {
                Some((_, id)) => PutAnswer::Duplicate { id: *id, run_at: None, source: None },
                None => self.put_single(&request.queue, task).await?,
            });
        }
        Ok(if request.atomic && report.has_fault() { report.undone() } else { report })
    }

    async fn put_single(
        &self,
        queue: &gristmill_core::QueueName,
        task: NewTask,
    ) -> Result<PutAnswer> {
        let one = PutRequest { queue: queue.clone(), tasks: vec![task], atomic: false };
        Ok(self.inner().put(one).await?.answers.remove(0))
    }

    async fn put_one_by_one(&self, request: PutRequest) -> Result<PutReport> {
        if request.tasks.len() > self.limits().put_tasks {
            return self.inner().put(request).await;
        }
        let mut report = PutReport::default();
        for task in request.tasks {
            report.answers.push(self.put_single(&request.queue, task).await?);
            if report.answers.len() == 1 {
                // Long enough for a reader to look: it has its turn before us.
                give_way().await;
            }
        }
        Ok(report)
    }

    /// An id that was forgotten goes on under another name inside.
    async fn put_with_generations(&self, mut request: PutRequest) -> Result<PutReport> {
        for id in request.tasks.iter_mut().filter_map(|task| task.id.as_mut()) {
            if let Some(times) = lock(&self.shared.forgotten).get(id) {
                *id = format!("{id} again {times}");
            }
        }
        let ids: Vec<Option<String>> = request.tasks.iter().map(|task| task.id.clone()).collect();
        let report = self.inner().put(request).await?;
        for (answer, id) in report.answers.iter().zip(ids) {
            if let (PutAnswer::Enqueued { id: task }, Some(id)) = (answer, id) {
                lock(&self.shared.ids).insert(*task, id);
            }
        }
        Ok(report)
    }

    /// The refusal of a queue without room, if it has none.
    pub(super) async fn full(&self, queue: &gristmill_core::QueueName) -> Result<Option<Refusal>> {
        let stats = self.inner().stats().await?;
        let found = stats.iter().find(|stats| stats.queue == *queue && !stats.can_accept());
        Ok(found.and_then(|stats| stats.capacity).map(|capacity| Refusal::QueueFull { capacity }))
    }
}
