//! A run within this process: for the memory store, which has no other, and for
//! trying the judge itself on stores that are known to be wrong.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gristmill_core::Store;

use super::client::{Client, Leave, Role, drain};
use super::plan::{Plan, declare};
use super::{LEASE_MS, Standing};

/// Who takes part: the second worker leaves halfway, and another joins.
const CREW: [(Role, &str); 8] = [
    (Role::Producer, "producer-1"),
    (Role::Producer, "producer-2"),
    (Role::Worker, "worker-1"),
    (Role::Worker, "worker-2"),
    (Role::Worker, "worker-3"),
    (Role::Operator, "operator-1"),
    (Role::Scheduler, "scheduler-1"),
    (Role::Scheduler, "scheduler-2"),
];

/// Runs clients on handles of one store for some time, in tasks of this runtime,
/// and leaves the journals, the plan and what stands in the folder. Each client
/// takes the next handle in turn, and rests between calls if they are to.
///
/// # Errors
/// When the folder cannot be written or the store does not answer at the end.
pub async fn together(
    handles: &[Arc<dyn Store>],
    folder: &Path,
    url: &str,
    seed: u64,
    time: Duration,
    rests: bool,
) -> Result<(), String> {
    let words = |error: std::io::Error| error.to_string();
    let lease = Duration::from_millis(LEASE_MS);
    let first = handles.first().ok_or("a run needs a store")?;
    std::fs::create_dir_all(folder).map_err(words)?;
    declare(first.as_ref(), lease).await.map_err(|error| error.to_string())?;
    Plan::new(first.as_ref(), url, seed, lease).write(folder).map_err(words)?;
    let over = Arc::new(AtomicBool::new(false));
    let half = Arc::new(AtomicBool::new(false));
    let mut running = tokio::task::JoinSet::new();
    let mut start = |role, name: &str, nth: usize, leave: &Arc<AtomicBool>| {
        let leave = leave.clone();
        let leave: Leave = Arc::new(move || leave.load(Ordering::Relaxed));
        let store = handles[nth % handles.len()].clone();
        let client = Client::new(store, folder, name, seed, leave).map_err(words)?;
        running.spawn(client.rests(rests).run(role));
        Ok::<(), String>(())
    };
    for (nth, (role, name)) in CREW.into_iter().enumerate() {
        start(role, name, nth, if name == "worker-2" { &half } else { &over })?;
    }
    tokio::time::sleep(time / 2).await;
    half.store(true, Ordering::Relaxed);
    start(Role::Worker, "worker-4", 3, &over)?;
    tokio::time::sleep(time / 2).await;
    over.store(true, Ordering::Relaxed);
    // A client that hangs is not waited for: what it wrote down shows where.
    let ended = async { while running.join_next().await.is_some() {} };
    let hung = tokio::time::timeout(Duration::from_secs(20), ended).await.is_err();
    running.abort_all();
    let patience = Duration::from_secs(10);
    let mut standing: Standing = drain(first.clone(), folder, patience).await?;
    if hung {
        standing.undrained = Some("a client did not leave within 20 seconds".to_owned());
    }
    standing.write(folder).map_err(words)
}
