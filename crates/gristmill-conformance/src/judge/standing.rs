//! What the store holds when a run is over: with the journals, all that the judge
//! looks at.

use std::io;
use std::path::Path;

use gristmill_core::{
    Ending, ListRequest, QueueStats, Result, State, Store, Task, TaskFilter, TaskId,
};
use serde::{Deserialize, Serialize};

/// A task that stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stands {
    /// Its number.
    pub task: i64,
    /// Its queue.
    pub queue: String,
    /// Its data.
    pub payload: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `pending`, `processing`, `failed` or `done`.
    pub state: String,
    /// Pending behind another task of its key.
    #[serde(default)]
    pub blocked: bool,
    /// Its priority.
    #[serde(default)]
    pub priority: i16,
    /// When it falls due, in microseconds since 1970.
    pub run_at: i64,
    /// Runs since the put or an operator's retry.
    pub attempts: u32,
    /// Claims ever.
    pub claims: u32,
    /// Its last attempts by the store's clock: claimed and ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<(i64, i64)>,
}

/// What the store counts of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counted {
    /// The queue.
    pub queue: String,
    /// Pending: ready and delayed.
    pub pending: u64,
    /// Pending behind another of its key.
    pub blocked: u64,
    /// Under a lease.
    pub processing: u64,
    /// Given up.
    pub failed: u64,
    /// Kept for reading.
    pub done_kept: u64,
    /// Tasks enqueued, ever.
    pub put: u64,
    /// Attempts settled as done, ever.
    pub done: u64,
    /// Tasks cancelled, discarded, resolved, or deleted with their subject, ever.
    pub removed: u64,
}

/// Everything that is left.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Standing {
    /// The tasks.
    pub tasks: Vec<Stands>,
    /// The counts.
    pub counts: Vec<Counted>,
    /// What the store's own check found, in words: leftovers of flight, blocked
    /// tasks that nothing blocks, markers, ids.
    pub findings: Vec<String>,
    /// Tasks of the queue that keeps results and were given out, with what is kept of
    /// those that are done: nothing where it is gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<(i64, Option<String>)>,
    /// Why the run's end could not be reached, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undrained: Option<String>,
}

/// The file it is kept in, beside the journals.
const FILE: &str = "standing.json";

impl Standing {
    /// Lists and counts what a store holds, after it was swept.
    ///
    /// # Errors
    /// What the store says.
    pub async fn of(store: &dyn Store) -> Result<Self> {
        // Twice: the first one may have come to an end of its step.
        store.sweep().await?;
        store.sweep().await?;
        let mut standing = Standing::default();
        let states = [None, Some(State::Done)];
        for state in states {
            let filter = TaskFilter { state, ..TaskFilter::default() };
            let mut request = ListRequest { filter, limit: 1_000, ..ListRequest::default() };
            loop {
                let page = store.list(request.clone()).await?;
                standing.tasks.extend(page.tasks.iter().map(stands));
                request.after = page.next;
                if request.after.is_none() {
                    break;
                }
            }
        }
        standing.counts = store.stats().await?.iter().map(counted).collect();
        for found in store.diagnose().await? {
            if found.grave {
                standing.findings.push(format!("{}: {}", found.code, found.found));
            }
        }
        Ok(standing)
    }

    /// Looks up what is kept of these tasks.
    ///
    /// # Errors
    /// What the store says.
    pub async fn results(&mut self, store: &dyn Store, tasks: &[TaskId]) -> Result<()> {
        for some in tasks.chunks(500) {
            for (task, ending) in some.iter().zip(store.endings(some).await?) {
                let result = match ending {
                    Ending::Done { value } => {
                        value.map(|value| String::from_utf8_lossy(&value.bytes).into_owned())
                    }
                    Ending::NotKnown => None,
                    // It did not end in a result.
                    _ => continue,
                };
                self.results.push((task.0, result));
            }
        }
        Ok(())
    }

    /// Keeps it beside the journals.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::write(folder.join(FILE), serde_json::to_vec_pretty(self)?)
    }

    /// Reads it back.
    ///
    /// # Errors
    /// When it is not there or is none.
    pub fn read(folder: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(folder.join(FILE))?)?)
    }
}

fn stands(task: &Task) -> Stands {
    Stands {
        task: task.id.0,
        queue: task.queue.to_string(),
        payload: String::from_utf8_lossy(&task.payload.bytes).into_owned(),
        key: task.key.clone(),
        state: task.state.to_string(),
        blocked: task.blocked,
        priority: task.priority,
        run_at: task.run_at.as_micros(),
        attempts: task.attempts,
        claims: task.claims,
        runs: (task.history.iter())
            .map(|run| (run.claimed_at.as_micros(), run.ended_at.as_micros()))
            .collect(),
    }
}

fn counted(stats: &QueueStats) -> Counted {
    let c = &stats.counters;
    Counted {
        queue: stats.queue.to_string(),
        pending: stats.ready + stats.delayed,
        blocked: stats.blocked,
        processing: stats.processing,
        failed: stats.failed,
        done_kept: stats.done_kept,
        put: c.put,
        done: c.done,
        removed: c.cancelled + c.discarded + c.resolved + c.subject_gone,
    }
}
