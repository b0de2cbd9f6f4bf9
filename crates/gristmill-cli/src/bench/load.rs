//! What the benchmark puts: tasks of a hundred bytes, mostly every tenth with a key.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gristmill::port::{ClaimRequest, Outcome, Settlement, Token, WorkerId};
use gristmill::worker::Worker;
use gristmill::{Mill, QueueName, Store, TaskType};
use serde::{Deserialize, Serialize};

/// Why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    /// The library said no.
    #[error(transparent)]
    Mill(#[from] gristmill::Error),
    /// The store said no.
    #[error(transparent)]
    Store(#[from] gristmill::StoreError),
    /// The list of a store's measurements names one that it has not.
    #[error("{0} is not measured on this store")]
    NotHere(&'static str),
    /// Another process of the benchmark could not be run.
    #[error("a producer's process: {0}")]
    Process(#[from] std::io::Error),
    /// A caller's task of the runtime ended badly.
    #[error("a caller ended badly: {0}")]
    Caller(String),
}

/// A task whose payload has a hundred bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Grain {
    number: usize,
    filler: String,
    #[serde(skip)]
    keyed: Keyed,
}

/// Which tasks have a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Keyed {
    No,
    #[default]
    EveryTenth,
    All,
}

impl Grain {
    pub(super) fn new(number: usize) -> Self {
        let frame = "{\"number\":,\"filler\":\"\"}".len() + number.to_string().len();
        let filler = "x".repeat(100usize.saturating_sub(frame));
        Grain { number, filler, keyed: Keyed::default() }
    }

    pub(super) fn keyed(self, keyed: Keyed) -> Self {
        Grain { keyed, ..self }
    }

    pub(super) const fn number(&self) -> usize {
        self.number
    }
}

impl TaskType for Grain {
    const QUEUE: &'static str = "bench";

    fn key(&self) -> Option<String> {
        let has_one = match self.keyed {
            Keyed::No => false,
            Keyed::EveryTenth => self.number.is_multiple_of(10),
            Keyed::All => true,
        };
        has_one.then(|| format!("key-{}", self.number))
    }
}

/// So many tasks, put one at a time by callers side by side. Returns how long
/// they took.
pub(super) async fn put_by(
    callers: usize,
    mill: &Mill,
    tasks: usize,
) -> Result<Duration, BenchError> {
    let next = Arc::new(AtomicUsize::new(0));
    let start = Instant::now();
    let mut running = Vec::new();
    for _ in 0..callers {
        let (mill, next) = (mill.clone(), next.clone());
        running.push(tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= tasks {
                    return Ok::<(), gristmill::Error>(());
                }
                mill.put(Grain::new(number)).await?;
            }
        }));
    }
    for caller in running {
        caller.await.map_err(|e| BenchError::Caller(e.to_string()))??;
    }
    Ok(start.elapsed())
}

/// Works off everything with a typed handler that does nothing. Returns how
/// many tasks that were, and how long they took.
pub(super) async fn work_off(
    mill: &Mill,
    processors: Option<usize>,
) -> Result<(usize, Duration), BenchError> {
    let mut worker = Worker::new(mill).handle(|_: Grain| async { Ok::<(), String>(()) });
    if let Some(processors) = processors {
        worker = worker.processors(processors);
    }
    let start = Instant::now();
    let report = worker.drain(true).run(std::future::pending()).await?;
    Ok((usize::try_from(report.done).unwrap_or(usize::MAX), start.elapsed()))
}

/// Claims and settles until nothing is due; returns how many tasks.
pub(super) async fn drain(mill: &Mill, batch: usize) -> Result<usize, BenchError> {
    let store = mill.store();
    let queue = QueueName::new(Grain::QUEUE).map_err(gristmill::Error::from)?;
    let worker = WorkerId::random()?;
    let mut drained = 0;
    loop {
        let taken = cycle(&*store, &queue, &worker, batch).await?;
        if taken == 0 {
            return Ok(drained);
        }
        drained += taken;
    }
}

/// One claim, all of it settled as done.
pub(super) async fn cycle(
    store: &dyn Store,
    queue: &QueueName,
    worker: &WorkerId,
    batch: usize,
) -> Result<usize, BenchError> {
    let token = Token::random()?;
    let claim = store
        .claim(ClaimRequest {
            queue: queue.clone(),
            max: batch,
            lease: None,
            worker: worker.clone(),
            source: None,
            token,
        })
        .await?;
    let settlements =
        claim.tasks.iter().map(|task| Settlement::new(task.id, token, Outcome::Done)).collect();
    if !claim.tasks.is_empty() {
        store.settle(settlements).await?;
    }
    Ok(claim.tasks.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grain_has_a_hundred_bytes() {
        for number in [0, 7, 12_345, 199_999] {
            let json = serde_json::to_string(&Grain::new(number)).expect("JSON");
            assert_eq!(json.len(), 100, "{json}");
        }
    }
}
