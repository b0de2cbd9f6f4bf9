//! Recovery: domain rows that are stuck in a state between get their first
//! one back.
//!
//! An application often keeps a status of its own beside the queue: a source
//! is QUEUED, an item PROCESSING. When a process dies between the row and the
//! task (or the queue lived in memory), the row says that somebody is at it and
//! nobody is. Recovery looks for rows that have said so for too long, and
//! resets those for whose key no task is pending or processing.
//!
//! ```no_run
//! use async_trait::async_trait;
//! use gristmill::recovery::{Recovery, RowsError, StuckRows};
//! use gristmill::schedule::Scheduler;
//! use std::time::Duration;
//!
//! struct Sources; // holds the application's database
//!
//! #[async_trait]
//! impl StuckRows for Sources {
//!     async fn stuck(
//!         &self, older_than: Duration, after: Option<&str>, limit: usize,
//!     ) -> Result<Vec<String>, RowsError> {
//!         // SELECT id FROM source WHERE status IN ('QUEUED', 'FETCHING')
//!         //   AND changed_at < now - older_than AND id > after ORDER BY id LIMIT limit
//!         Ok(Vec::new())
//!     }
//!
//!     async fn reset(&self, keys: &[String], older_than: Duration) -> Result<u64, RowsError> {
//!         // UPDATE source SET status = 'IDLE' WHERE id IN keys
//!         //   AND status IN ('QUEUED', 'FETCHING') AND changed_at < now - older_than
//!         Ok(0)
//!     }
//! }
//!
//! # async fn example(mill: gristmill::Mill) -> Result<(), gristmill::Error> {
//! let recovery = Recovery::new(&mill, "fetch", Sources); // every 5 minutes, after 10
//! Scheduler::new(&mill).schedule(recovery.schedule()).run(std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gristmill_core::State;

use crate::schedule::{Missed, NewSchedule};
use crate::{Error, Mill};

/// How often it looks, unless said.
pub const EVERY: Duration = Duration::from_secs(5 * 60);
/// How long a row must have been stuck, unless said.
pub const OLDER_THAN: Duration = Duration::from_secs(10 * 60);
/// Rows in one step.
const PAGE: usize = 500;

/// Why the application's rows could not be read or written.
pub type RowsError = Box<dyn std::error::Error + Send + Sync>;

/// Rows of the application with a status of their own.
#[async_trait]
pub trait StuckRows: Send + Sync + 'static {
    /// The keys of rows that have been in a state between for longer than
    /// this: in ascending order, those after `after`, at most `limit`. The key
    /// is the one their tasks are put with.
    async fn stuck(
        &self,
        older_than: Duration,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, RowsError>;

    /// Gives these rows their first status back and says how many.
    ///
    /// A row's task may have ended, or a row may have moved on, since they
    /// were listed: check in the same statement that the row is still stuck,
    /// and still as old.
    async fn reset(&self, keys: &[String], older_than: Duration) -> Result<u64, RowsError>;
}

/// What one look did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Recovered {
    /// Rows that were stuck for too long.
    pub stuck: u64,
    /// Those of them that a task still stands for; they were left alone.
    pub standing: u64,
    /// Rows that got their first status back.
    pub reset: u64,
}

/// Why a look could not be finished. What it reset stays reset, and the next
/// look begins anew.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoveryError {
    /// The store could not say which keys stand.
    #[error(transparent)]
    Mill(#[from] Error),
    /// The application's rows could not be read or written.
    #[error(fmt = unrecovered)]
    Rows(#[source] RowsError),
}

/// With its cause where that is asked for, as every error of this crate.
fn unrecovered(why: &RowsError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("the rows cannot be recovered")?;
    if f.alternate() { write!(f, ": {why:#}") } else { Ok(()) }
}

/// Looks for stuck rows of one queue and resets those that nobody is at.
#[derive(Clone)]
pub struct Recovery {
    mill: Mill,
    queue: String,
    name: String,
    rows: Arc<dyn StuckRows>,
    every: Duration,
    older_than: Duration,
}

impl fmt::Debug for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recovery")
            .field("queue", &self.queue)
            .field("every", &self.every)
            .field("older_than", &self.older_than)
            .finish_non_exhaustive()
    }
}

impl Recovery {
    /// Recovery of the rows whose tasks are on this queue.
    pub fn new(mill: &Mill, queue: &str, rows: impl StuckRows) -> Self {
        Recovery {
            mill: mill.clone(),
            queue: queue.to_owned(),
            name: format!("recover-{queue}"),
            rows: Arc::new(rows),
            every: EVERY,
            older_than: OLDER_THAN,
        }
    }

    /// The schedule's name; `recover-` and the queue unless said. Two
    /// recoveries of one queue need two names.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// How often it looks.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// How long a row must have been stuck. Longer than any task may wait
    /// before a worker is free is not needed: a row whose task stands is left
    /// alone however old it is.
    #[must_use]
    pub fn older_than(mut self, older_than: Duration) -> Self {
        self.older_than = older_than;
        self
    }

    /// Looks once, at all stuck rows, a page at a time.
    ///
    /// # Errors
    /// When the store or the application's rows do not answer.
    pub async fn run_once(&self) -> Result<Recovered, RecoveryError> {
        let mut done = Recovered::default();
        let mut after: Option<String> = None;
        loop {
            // Rows first, tasks second: a task that ends in between leaves a
            // row that is no longer stuck, which the reset sees. The other way
            // round a task put in between would be overlooked.
            let keys = self.rows.stuck(self.older_than, after.as_deref(), PAGE).await;
            let keys = keys.map_err(RecoveryError::Rows)?;
            let full = keys.len() >= PAGE;
            after = keys.last().cloned();
            done.stuck += keys.len() as u64;
            let free = self.without_task(keys, &mut done).await?;
            if !free.is_empty() {
                let reset = self.rows.reset(&free, self.older_than).await;
                done.reset += reset.map_err(RecoveryError::Rows)?;
            }
            if !full {
                break;
            }
        }
        if done.reset > 0 {
            tracing::warn!(
                queue = self.queue,
                reset = done.reset,
                "rows were stuck and nobody was at them: they begin anew"
            );
        }
        Ok(done)
    }

    /// The keys for which no task is pending or processing. Failed tasks wait
    /// for an operator and hold no row.
    async fn without_task(
        &self,
        keys: Vec<String>,
        done: &mut Recovered,
    ) -> Result<Vec<String>, Error> {
        if keys.is_empty() {
            return Ok(keys);
        }
        let standing = self.mill.inspect().find(&self.queue, &keys).await?;
        let held: HashSet<String> = standing
            .into_iter()
            .filter(|task| matches!(task.state, State::Pending | State::Processing))
            .map(|task| task.key)
            .collect();
        let listed = keys.len();
        let free: Vec<String> = keys.into_iter().filter(|key| !held.contains(key)).collect();
        done.standing += (listed - free.len()) as u64;
        Ok(free)
    }

    /// As a schedule with a finder, for a
    /// [`Scheduler`](crate::schedule::Scheduler): one process at a time looks.
    pub fn schedule(self) -> NewSchedule {
        let (mill, name, queue) = (self.mill.clone(), self.name.clone(), self.queue.clone());
        mill.schedule(&name).every(self.every).missed(Missed::Once).finder(&queue, move |_| {
            let recovery = self.clone();
            async move { recovery.run_once().await.map(drop) }
        })
    }
}
