//! A running worker: what can be seen of it and changed while it runs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use gristmill_core::{QueueName, StoreError, WorkerId};
use tokio::sync::watch;

use crate::Error;
use crate::worker::Force;
use crate::worker::claim::served::Served;
use crate::worker::control::report::{WorkReport, WorkerStats};
use crate::worker::control::shared::{Shared, Wish};
use crate::worker::control::stop::Phase;

/// A worker that runs. Dropping this asks it to stop.
#[must_use = "a worker stops when its handle is dropped"]
pub struct WorkerHandle {
    shared: Arc<Shared>,
    ended: watch::Receiver<Option<Result<WorkReport, StoreError>>>,
    force: Force,
}

impl std::fmt::Debug for WorkerHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerHandle").field("id", &self.shared.worker).finish_non_exhaustive()
    }
}

impl WorkerHandle {
    pub(crate) fn new(
        shared: Arc<Shared>,
        ended: watch::Receiver<Option<Result<WorkReport, StoreError>>>,
        force: Force,
    ) -> Self {
        WorkerHandle { shared, ended, force }
    }

    /// The worker's id, random at each start.
    #[must_use]
    pub fn id(&self) -> &WorkerId {
        &self.shared.worker
    }

    /// How many processors run side by side from now on. Those too many end
    /// after their batch; none is a worker that waits.
    pub fn set_processors(&self, processors: usize) {
        self.change(|wish| wish.processors = processors);
    }

    /// Most tasks in one claim; `None` is each queue's own `batch_size`.
    pub fn set_batch(&self, batch: Option<usize>) {
        self.change(|wish| wish.batch = batch.map(|batch| batch.max(1)));
    }

    /// Moves a processor (counted from 0) to one queue after its batch; `None`
    /// lets it rotate, or follow the manager, again.
    ///
    /// # Errors
    /// When the worker has no handler for the queue.
    pub fn move_processor(&self, processor: usize, queue: Option<&str>) -> Result<(), Error> {
        let name = queue.map(|queue| self.served(queue)).transpose()?.map(|s| s.name.clone());
        self.change(|wish| {
            match name {
                Some(name) => wish.moved.insert(processor, name),
                None => wish.moved.remove(&processor),
            };
        });
        Ok(())
    }

    /// Starts or stops claiming from a queue. What runs finishes.
    ///
    /// # Errors
    /// When the worker has no handler for the queue.
    pub fn serve(&self, queue: &str, on: bool) -> Result<(), Error> {
        self.served(queue)?.switch(on);
        // Whoever waits for work must hear of it.
        self.change(|_| {});
        Ok(())
    }

    fn change(&self, change: impl FnOnce(&mut Wish)) {
        self.shared.wish.send_modify(change);
    }

    fn served(&self, queue: &str) -> Result<&Arc<Served>, Error> {
        let name = QueueName::new(queue)?;
        let served = self.shared.served.iter().find(|served| served.name == name);
        served.ok_or_else(|| {
            let known = self.shared.served.iter().map(|served| served.name.as_str());
            let suggestion = gristmill_core::name::did_you_mean(queue, known).map(str::to_owned);
            StoreError::UnknownQueue { name: queue.to_owned(), suggestion }.into()
        })
    }

    /// How it stands.
    #[must_use]
    pub fn stats(&self) -> WorkerStats {
        let queues = self.shared.served.iter().map(|s| (s.name.clone(), s.stats())).collect();
        let serving: Vec<_> =
            self.shared.cycles.processors().into_iter().map(|processor| processor.queue).collect();
        WorkerStats {
            id: self.shared.worker.clone(),
            processors: serving.len(),
            serving,
            idle: self.shared.idle.load(Ordering::Relaxed),
            queues,
            report: self.shared.settler.report(),
            follows_term: self.shared.wish.borrow().follows,
            store_away: self.shared.heartbeat.away(),
        }
    }

    /// What ends the patience of a graceful stop: a second signal.
    #[must_use]
    pub fn force(&self) -> Force {
        self.force.clone()
    }

    /// Claims no more, lets handlers finish within the limit, cancels what is
    /// left and gives back what was not started. Ends within its word, and says
    /// in [`WorkReport::left`] what it did not wait for. May be asked for again,
    /// also after the end.
    ///
    /// # Errors
    /// As [`WorkerHandle::ended`].
    pub async fn stop(&self) -> Result<WorkReport, Error> {
        self.shared.stop.ask();
        self.ended().await
    }

    /// Waits for the end of a worker that drains, or of one that was asked to
    /// stop. The answer is the same however often it is asked for.
    ///
    /// # Errors
    /// What a draining worker gave up for.
    pub async fn ended(&self) -> Result<WorkReport, Error> {
        let mut ended = self.ended.clone();
        let report = tokio::select! {
            biased;
            kept = ended.wait_for(Option::is_some) => kept.ok().and_then(|kept| kept.clone()),
            // Every thread of the runtime is blocked, or the store's own code:
            // who waits here need not wait for that.
            () = self.shared.stop.reached(Phase::Over) => Some(Ok(self.shared.report())),
        };
        let gone = || StoreError::unavailable("the worker was ended with its runtime".to_owned());
        Ok(report.unwrap_or_else(|| Err(gone()))?)
    }
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        self.shared.stop.ask();
    }
}
