//! Going round the queues: one batch from each, so that none starves.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gristmill_core::{QueueName, Settings, Store, StoreError};

use super::Handler;

/// An operator's change of a queue's settings is heard of within this time.
const SETTINGS_FOR: Duration = Duration::from_secs(1);

/// A queue a worker serves, and how long its handler takes.
pub(super) struct Served {
    pub(super) name: QueueName,
    pub(super) handler: Arc<dyn Handler>,
    /// A moving mean of run times in microseconds; 0 before the first.
    mean: AtomicU64,
    settings: Mutex<Option<(Instant, Settings)>>,
}

impl Served {
    pub(super) fn new(name: QueueName, handler: Arc<dyn Handler>) -> Self {
        Served { name, handler, mean: AtomicU64::new(0), settings: Mutex::new(None) }
    }

    /// The queue's settings in force, read again once a second at most.
    pub(super) async fn settings(&self, store: &dyn Store) -> Result<Settings, StoreError> {
        let known = self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((read_at, settings)) = known
            && read_at.elapsed() < SETTINGS_FOR
        {
            return Ok(settings);
        }
        let queues = store.queues().await?;
        let queue = queues.into_iter().find(|queue| queue.name == self.name).ok_or_else(|| {
            StoreError::UnknownQueue { name: self.name.to_string(), suggestion: None }
        })?;
        let read = Some((Instant::now(), queue.settings.clone()));
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(queue.settings)
    }

    /// Takes note of a run.
    pub(super) fn took(&self, run: Duration) {
        let run = u64::try_from(run.as_micros()).unwrap_or(u64::MAX).max(1);
        let mean = self.mean.load(Ordering::Relaxed);
        // A lost update between two processors only makes the mean older.
        let mean = if mean == 0 { run } else { mean - mean / 8 + run / 8 };
        self.mean.store(mean.max(1), Ordering::Relaxed);
    }

    /// How many tasks to claim: what can start within a second, one before
    /// anything is known.
    pub(super) fn batch(&self, most: usize) -> usize {
        match self.mean.load(Ordering::Relaxed) {
            0 => 1,
            mean => usize::try_from(1_000_000 / mean).unwrap_or(most).clamp(1, most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::Context;
    use gristmill_core::{ClaimedTask, Outcome};

    struct Nothing;

    #[async_trait::async_trait]
    impl Handler for Nothing {
        async fn handle(&self, _: &ClaimedTask, _: &Context) -> Outcome {
            Outcome::Done
        }
    }

    #[test]
    fn a_batch_is_what_can_start_within_a_second() {
        let served = Served::new(QueueName::new("q").expect("a name"), Arc::new(Nothing));
        assert_eq!(served.batch(100), 1);
        served.took(Duration::from_millis(1));
        assert_eq!(served.batch(100), 100);
        for _ in 0..100 {
            served.took(Duration::from_millis(250));
        }
        assert_eq!(served.batch(100), 4);
        for _ in 0..100 {
            served.took(Duration::from_secs(60));
        }
        assert_eq!(served.batch(100), 1);
    }
}
