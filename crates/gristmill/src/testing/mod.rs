//! For tests of your own code: a mill whose clock you move, a worker that runs
//! inline, what was put, and a store that misbehaves ([`Faulty`]).
//!
//! ```
//! use gristmill::testing::TestMill;
//! use gristmill::worker::Worker;
//! # use gristmill::TaskType;
//! # #[derive(serde::Serialize, serde::Deserialize)]
//! # struct Remind { who: String }
//! # impl TaskType for Remind { const QUEUE: &'static str = "reminders"; }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), gristmill::Error> {
//! let mill = TestMill::new();
//! mill.declare::<Remind>().await?;
//! let hour = std::time::Duration::from_secs(3600);
//! mill.put(Remind { who: "ada".into() }).delay(hour).await?;
//! assert_eq!(mill.assert_put::<Remind>(1).await[0].who, "ada");
//!
//! let worker = Worker::new(&mill).handle(async |_: Remind| {});
//! assert_eq!(mill.run_until_idle(&worker).await?.done, 0);
//! mill.clock().advance(hour);
//! assert_eq!(mill.run_until_idle(&worker).await?.done, 1);
//! mill.assert_put::<Remind>(0).await;
//! # Ok(())
//! # }
//! ```

mod faulty;
mod put;

use std::ops::Deref;
use std::sync::Arc;

pub use faulty::{Fault, Faulty, Verb};
pub use gristmill_core::ManualClock;
use gristmill_core::memory::{MemoryOptions, MemoryStore};

use crate::worker::{WorkReport, Worker, inline};
use crate::{Error, Mill};

/// A mill in memory whose time moves only when you move it. It is a [`Mill`]:
/// everything that takes one takes this.
#[derive(Debug, Clone)]
pub struct TestMill {
    mill: Mill,
    clock: Arc<ManualClock>,
}

impl TestMill {
    /// An empty one, at the beginning of 2026.
    #[must_use]
    pub fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        let options = MemoryOptions { clock: clock.clone(), ..MemoryOptions::default() };
        TestMill { mill: Mill::over(Arc::new(MemoryStore::new(options))), clock }
    }

    /// Its clock; for workers beside the test too ([`Worker::clock`]).
    #[must_use]
    pub const fn clock(&self) -> &Arc<ManualClock> {
        &self.clock
    }

    /// Runs a worker's handlers, on this task and one after the other, until
    /// nothing is due: follow-ups included, retries only as far as the clock
    /// allows. Moves no time itself, and there is no timeout. The worker can
    /// be run again later.
    ///
    /// # Errors
    /// When there is no handler, or a queue does not exist.
    pub async fn run_until_idle<S>(&self, worker: &Worker<S>) -> Result<WorkReport, Error> {
        inline::run_until_idle(&worker.plan).await
    }
}

impl Default for TestMill {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for TestMill {
    type Target = Mill;

    fn deref(&self) -> &Mill {
        &self.mill
    }
}
