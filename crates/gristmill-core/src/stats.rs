//! Numbers kept as tasks move, so that nobody ever counts rows.

use std::time::Duration;

use crate::{QueueName, Timestamp};

macro_rules! counters {
    ($( $(#[$doc:meta])* $name:ident ),+ $(,)?) => {
        /// What happened on a queue since it was declared.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct Counters { $( $(#[$doc])* pub $name: u64, )+ }

        impl Counters {
            /// Every counter's name, in order.
            pub const NAMES: &'static [&'static str] = &[$( stringify!($name) ),+];

            /// The values, in the order of [`Counters::NAMES`].
            #[must_use]
            pub fn values(&self) -> Vec<u64> {
                vec![$( self.$name ),+]
            }

            /// The counters with these values, in the order of
            /// [`Counters::NAMES`]; what is missing is zero.
            #[must_use]
            pub fn from_values(values: &[u64]) -> Self {
                let mut values = values.iter().copied();
                Counters { $( $name: values.next().unwrap_or_default(), )+ }
            }

            /// Adds another's values to these.
            pub fn add(&mut self, other: &Counters) {
                $( self.$name = self.$name.saturating_add(other.$name); )+
            }
        }
    };
}

counters! {
    /// Tasks enqueued.
    put,
    /// Puts answered *duplicate*.
    duplicate,
    /// Puts answered *replaced*.
    replaced,
    /// Puts answered *refused*.
    refused,
    /// Tasks claimed.
    claimed,
    /// Attempts settled as done.
    done,
    /// Attempts that returned to the queue after an error or retry.
    retried,
    /// Tasks that failed for good.
    failed,
    /// Tasks given back.
    released,
    /// Leases of tasks that ran out.
    expired,
    /// Settlements answered *lease lost*.
    lease_lost,
    /// Tasks cancelled by an operator.
    cancelled,
    /// Failed tasks discarded by an operator or by `keep_failed`.
    discarded,
    /// Failed tasks resolved by hand.
    resolved,
    /// Failed tasks sent back by an operator.
    operator_retried,
    /// Tasks deleted with their subject.
    subject_gone,
}

/// A queue at a glance.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStats {
    /// The queue.
    pub queue: QueueName,
    /// Its number.
    pub number: u32,
    /// Pending and due. The split from `delayed` may lag by a second.
    pub ready: u64,
    /// Pending, `run_at` ahead.
    pub delayed: u64,
    /// Pending behind another task of its key; neither ready nor delayed.
    pub blocked: u64,
    /// Under a lease.
    pub processing: u64,
    /// Given up.
    pub failed: u64,
    /// Kept for reading.
    pub done_kept: u64,
    /// How long the oldest ready task has been due.
    pub oldest_ready: Option<Duration>,
    /// Claims are stopped.
    pub paused: bool,
    /// Most pending tasks.
    pub capacity: Option<u64>,
    /// What happened so far.
    pub counters: Counters,
}

impl QueueStats {
    /// Of a queue in which nothing stands and nothing has happened.
    #[must_use]
    pub fn new(queue: QueueName, number: u32) -> Self {
        QueueStats {
            queue,
            number,
            ready: 0,
            delayed: 0,
            blocked: 0,
            processing: 0,
            failed: 0,
            done_kept: 0,
            oldest_ready: None,
            paused: false,
            capacity: None,
            counters: Counters::default(),
        }
    }

    /// Ready, delayed and blocked together: what capacity counts.
    #[must_use]
    pub const fn pending(&self) -> u64 {
        self.ready + self.delayed + self.blocked
    }

    /// Everything that needs doing or looking at.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.pending() + self.processing + self.failed
    }

    /// Whether a put from outside would find room.
    #[must_use]
    pub fn can_accept(&self) -> bool {
        self.capacity.is_none_or(|capacity| self.pending() < capacity)
    }
}

/// Upper bounds of the buckets in which waits are counted.
pub const WAIT_BOUNDS: [Duration; 6] = [
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(600),
    Duration::from_secs(3_600),
];

/// How long tasks had been due when they were claimed: how many for no longer than each
/// of [`WAIT_BOUNDS`] and longer than the one before it; the last, for longer than all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits(pub [u64; WAIT_BOUNDS.len() + 1]);

impl Waits {
    /// Counts a claimed task that had waited for so long.
    pub fn count(&mut self, waited: Duration) {
        let bucket = WAIT_BOUNDS.iter().position(|bound| waited <= *bound);
        if let Some(n) = self.0.get_mut(bucket.unwrap_or(WAIT_BOUNDS.len())) {
            *n = n.saturating_add(1);
        }
    }

    /// Adds another's numbers to these.
    pub fn add(&mut self, other: &Waits) {
        for (n, more) in self.0.iter_mut().zip(other.0) {
            *n = n.saturating_add(more);
        }
    }

    /// Tasks claimed.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// What happened on a queue within one minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Minute {
    /// The minute's start.
    pub at: Timestamp,
    /// Tasks enqueued.
    pub put: u64,
    /// Attempts settled as done.
    pub done: u64,
    /// Tasks that failed for good.
    pub failed: u64,
    /// How long tasks that were claimed in it had been due.
    pub waits: Waits,
}

impl Minute {
    /// One in which nothing has happened.
    #[must_use]
    pub fn new(at: Timestamp) -> Self {
        Minute { at, put: 0, done: 0, failed: 0, waits: Waits::default() }
    }

    /// Adds what happened in another to it.
    pub fn add(&mut self, other: &Minute) {
        self.put += other.put;
        self.done += other.done;
        self.failed += other.failed;
        self.waits.add(&other.waits);
    }
}

/// How far back minutes are kept, unless somebody said otherwise
/// ([`policy::keeping`](crate::policy::keeping)).
pub const MINUTES_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
