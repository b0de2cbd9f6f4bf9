//! The end of a run: faults are over, every queue goes on, and whatever stands is
//! worked off, so that what is left over can be seen.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{Store, WorkerId};

use super::super::event::How;
use super::super::journal::{History, Journal};
use super::super::noted::Noted;
use super::super::plan::{self, queue_name};
use super::super::standing::Standing;

/// Works everything off and says what is left. It is done as a client whose
/// journal is called `drain`.
///
/// # Errors
/// When the journal cannot be written, or the store does not answer within the
/// patience.
pub async fn drain(
    store: Arc<dyn Store>,
    folder: &Path,
    patience: Duration,
) -> Result<Standing, String> {
    let journal = Journal::open(folder, "drain").map_err(|error| error.to_string())?;
    let noted = Noted { store, journal };
    let worker = WorkerId::random().map_err(|error| error.to_string())?;
    let end = Instant::now() + patience;
    let mut undrained = None;
    for queue in plan::worked() {
        while let Err(error) = noted.pause(queue, false).await {
            if Instant::now() > end {
                return Err(format!("{queue} cannot be resumed: {error}"));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    let mut quiet = 0;
    while quiet < 2 {
        let mut taken = 0;
        for queue in plan::worked() {
            match noted.claim(&queue_name(queue), 100, &worker).await {
                Ok(claim) => {
                    taken += claim.tasks.len();
                    for task in &claim.tasks {
                        let queue = queue.to_owned();
                        let held = (task.id, claim.token, queue.as_str());
                        let _ = noted.settle(held, How::Done, &[]).await;
                    }
                }
                Err(error) => undrained = Some(error.to_string()),
            }
        }
        let _ = noted.sweep().await;
        let standing = noted.store.stats().await;
        let left = standing.map(|all| all.iter().map(|q| q.total() - q.failed).sum::<u64>());
        match left {
            Ok(0) if taken == 0 => quiet += 1,
            Ok(_) => quiet = 0,
            Err(_) => {}
        }
        if Instant::now() > end {
            let left = left.map_or_else(|error| error.to_string(), |left| format!("{left} tasks"));
            undrained = Some(format!("{left} left after {patience:?}; {undrained:?}"));
            break;
        }
        if taken == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        } else {
            undrained = None;
        }
    }
    let mut standing = Standing::of(noted.store.as_ref()).await.map_err(|e| e.to_string())?;
    let history = History::read(folder).map_err(|error| error.to_string())?;
    let given = history.given(plan::RETURNING);
    standing.results(noted.store.as_ref(), &given).await.map_err(|e| e.to_string())?;
    standing.undrained = if quiet < 2 { undrained } else { None };
    Ok(standing)
}
