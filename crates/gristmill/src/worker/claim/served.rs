//! A queue that a worker serves: its handler, what is known of its speed, and
//! what its handler did so far.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_core::{HandlerStats, QueueName, Settings};

use crate::metrics::QueueNumbers;
use crate::worker::Handler;
use crate::worker::handler::batch::BatchHandler;

/// One task at a time or many.
#[derive(Clone)]
pub(crate) enum Kind {
    One(Arc<dyn Handler>),
    Many(Arc<dyn BatchHandler>),
}

/// What is claimed at once can start within this time: half a second in hand
/// and half a second claimed ahead.
const IN_HAND: u64 = 500_000;
/// The same of a queue whose claims are limited: what starts as good as at once.
const AT_ONCE: u64 = 10_000;
/// A batch grows over the default size only while it takes less than this.
const GROWN: u64 = 100_000;
/// Above this mean run time, in microseconds, tasks are shared with idle
/// processors rather than kept in one hand.
const WORTH_SHARING: u64 = 1_000;

/// A served queue.
pub(crate) struct Served {
    pub(crate) name: QueueName,
    pub(crate) kind: Kind,
    /// What attempts came to, for who watches the process.
    pub(crate) numbers: Arc<QueueNumbers>,
    /// Switched on by whoever runs the worker.
    on: AtomicBool,
    /// Processors that hold a claim of it.
    busy: AtomicUsize,
    /// The last claim got all it asked for: there is most likely more.
    more: AtomicBool,
    /// A moving mean of run times in microseconds; 0 before the first.
    mean: AtomicU64,
    /// How far the batch has grown; 0 while it has not.
    grown: AtomicUsize,
    stats: Mutex<Numbers>,
    /// Held by the one idle processor, of those that serve only this queue,
    /// that looks for work.
    pub(crate) scout: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Numbers {
    all: HandlerStats,
    unreported: HandlerStats,
}

impl Served {
    pub(crate) fn new(name: QueueName, kind: Kind, numbers: Arc<QueueNumbers>) -> Self {
        Served {
            name,
            kind,
            numbers,
            on: AtomicBool::new(true),
            busy: AtomicUsize::new(0),
            more: AtomicBool::new(false),
            mean: AtomicU64::new(0),
            grown: AtomicUsize::new(0),
            stats: Mutex::default(),
            scout: tokio::sync::Mutex::new(()),
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    pub(crate) fn switch(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    /// Takes note of a run.
    pub(crate) fn took(&self, run: Duration) {
        let run = u64::try_from(run.as_micros()).unwrap_or(u64::MAX).max(1);
        let mean = self.mean.load(Ordering::Relaxed);
        // A lost update between two processors only makes the mean older.
        let mean = if mean == 0 { run } else { mean - mean / 8 + run / 8 };
        self.mean.store(mean.max(1), Ordering::Relaxed);
    }

    /// How many tasks to claim: what can start soon, one before anything is
    /// known, and a fair part where other processors have nothing to do.
    pub(crate) fn batch(&self, said: Option<usize>, settings: &Settings, idle: usize) -> usize {
        if settings.one_at_a_time() {
            return 1;
        }
        let most = said.unwrap_or(settings.batch_size as usize).max(1);
        if matches!(self.kind, Kind::Many(_)) {
            // Whoever wrote a handler of batches wants batches.
            return most;
        }
        let mean = self.mean.load(Ordering::Relaxed);
        if mean == 0 {
            return 1;
        }
        let within = |time: u64| usize::try_from(time / mean).unwrap_or(usize::MAX);
        let most = if said.is_none() && settings.batch_size == Settings::default().batch_size {
            most.max(self.grown.load(Ordering::Relaxed).min(within(GROWN)))
        } else {
            most
        };
        // Others may start what waits in this hand, where only so much may be held.
        let hand = if settings.is_limited() { AT_ONCE } else { IN_HAND };
        let startable = within(hand).clamp(1, most);
        if mean > WORTH_SHARING { startable.div_ceil(idle + 1) } else { startable }
    }

    /// Whether so many of its tasks are known to be over soon, so that others
    /// may be claimed meanwhile and still start in time.
    pub(crate) fn is_quick(&self, tasks: usize) -> bool {
        let mean = self.mean.load(Ordering::Relaxed);
        mean > 0 && mean.saturating_mul(tasks as u64) <= IN_HAND
    }

    /// Takes note of a claim's size; a queue that fills its batches gets
    /// larger ones, up to `limit`.
    pub(crate) fn claimed(&self, asked: usize, got: usize, limit: usize) {
        let full = got > 0 && got == asked;
        self.more.store(full, Ordering::Relaxed);
        if full {
            self.grown.store((asked * 2).min(limit), Ordering::Relaxed);
        } else if got < asked / 2 {
            self.grown.store(0, Ordering::Relaxed);
        }
    }

    /// Whether there is most likely more to claim.
    pub(crate) fn has_more(&self) -> bool {
        self.more.load(Ordering::Relaxed)
    }

    /// Takes a processor's place on this queue, if the queue's maximum allows.
    pub(crate) fn enter(self: &Arc<Self>, max: Option<u32>) -> Option<Busy> {
        let before = self.busy.fetch_add(1, Ordering::Relaxed);
        let busy = Busy(self.clone());
        max.is_none_or(|max| before < max as usize).then_some(busy)
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts time spent in the handler.
    pub(crate) fn spent(&self, took: Duration) {
        let mut numbers = self.numbers();
        numbers.all.duration += took;
        numbers.unreported.duration += took;
    }

    /// Counts attempts that ended as done.
    pub(crate) fn count_done(&self, tasks: u64) {
        let mut numbers = self.numbers();
        numbers.all.processed += tasks;
        numbers.unreported.processed += tasks;
    }

    /// Counts an attempt that ended.
    pub(crate) fn count(&self, error: Option<String>, retried: bool) {
        let mut numbers = self.numbers();
        let Numbers { all, unreported } = &mut *numbers;
        for stats in [all, unreported] {
            stats.processed += 1;
            stats.errors += u64::from(error.is_some());
            stats.retried += u64::from(retried);
            if error.is_some() {
                stats.last_error.clone_from(&error);
            }
        }
    }

    /// Everything so far.
    pub(crate) fn stats(&self) -> HandlerStats {
        self.numbers().all.clone()
    }

    /// What was not reported yet; from now on it is.
    pub(crate) fn take_unreported(&self) -> HandlerStats {
        std::mem::take(&mut self.numbers().unreported)
    }

    /// This was taken for a report, and the report did not come through.
    pub(crate) fn not_reported(&self, stats: &HandlerStats) {
        earlier(&mut self.numbers().unreported, stats);
    }
}

/// What an earlier report should have told comes before what is new.
fn earlier(stats: &mut HandlerStats, earlier: &HandlerStats) {
    stats.processed += earlier.processed;
    stats.errors += earlier.errors;
    stats.retried += earlier.retried;
    stats.duration += earlier.duration;
    if stats.last_error.is_none() {
        stats.last_error.clone_from(&earlier.last_error);
    }
}

/// A processor's place on a queue, until it is dropped.
pub(crate) struct Busy(Arc<Served>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
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

    fn served() -> Served {
        let name = QueueName::new("q").expect("a name");
        Served::new(name, Kind::One(Arc::new(Nothing)), Arc::default())
    }

    #[test]
    fn a_batch_and_the_one_ahead_can_start_within_a_second() {
        let (served, settings) = (served(), Settings::default());
        assert_eq!(served.batch(Some(100), &settings, 0), 1);
        served.took(Duration::from_millis(1));
        assert_eq!(served.batch(Some(100), &settings, 0), 100);
        for _ in 0..100 {
            served.took(Duration::from_millis(100));
        }
        assert_eq!(served.batch(Some(100), &settings, 0), 5);
        // Nine others have nothing to do: one each.
        assert_eq!(served.batch(Some(100), &settings, 9), 1);
        for _ in 0..100 {
            served.took(Duration::from_secs(60));
        }
        assert_eq!(served.batch(Some(100), &settings, 0), 1);
    }

    #[test]
    fn of_a_limited_queue_only_what_starts_at_once_is_taken() {
        let (served, mut settings) = (served(), Settings::default());
        settings.concurrency = Some(9);
        served.took(Duration::from_millis(1));
        assert_eq!(served.batch(Some(100), &settings, 0), 10);
        for _ in 0..100 {
            served.took(Duration::from_millis(100));
        }
        assert_eq!(served.batch(Some(100), &settings, 0), 1);
    }

    #[test]
    fn a_batch_grows_while_it_is_quick_and_nobody_said_its_size() {
        let (served, settings) = (served(), Settings::default());
        served.took(Duration::from_micros(1));
        assert_eq!(served.batch(None, &settings, 0), 100);
        for _ in 0..5 {
            served.claimed(served.batch(None, &settings, 0), 100, 1_000);
        }
        for _ in 0..5 {
            let asked = served.batch(None, &settings, 0);
            served.claimed(asked, asked, 1_000);
        }
        assert_eq!(served.batch(None, &settings, 0), 1_000);
        assert_eq!(served.batch(Some(50), &settings, 0), 50);
        let mut said = Settings::default();
        said.batch_size = 10;
        assert_eq!(served.batch(None, &said, 0), 10);
        served.claimed(1_000, 3, 1_000);
        assert_eq!(served.batch(None, &settings, 0), 100);
    }

    #[test]
    fn what_was_not_reported_is_told_with_the_next_report() {
        let served = served();
        served.count(Some("first".to_owned()), true);
        let lost = served.take_unreported();
        served.count_done(2);
        served.not_reported(&lost);
        let next = served.take_unreported();
        assert_eq!((next.processed, next.errors, next.retried), (3, 1, 1));
        assert_eq!(next.last_error.as_deref(), Some("first"));
        assert_eq!(served.take_unreported(), HandlerStats::default());
        assert_eq!(served.stats().processed, 3);
    }

    #[test]
    fn a_maximum_of_processors_is_kept() {
        let served = Arc::new(served());
        let first = served.enter(Some(1));
        assert!(first.is_some() && served.enter(Some(1)).is_none());
        drop(first);
        assert!(served.enter(Some(1)).is_some());
        assert_eq!(served.busy.load(Ordering::Relaxed), 0);
    }
}
