//! Hearing of what another process put: for the stores whose processes tell each other.

use std::pin::{Pin, pin};
use std::time::Duration;

use gristmill_core::{Declaration, Store};
use tokio::time::timeout;

use crate::short::{claim_request, name};

/// Longer than any test: as often does somebody look who is told of everything.
pub const NEVER: Duration = Duration::from_secs(3_600);
/// What comes at all comes within this time, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Lets somebody begin to wait.
async fn begin(mut waiting: Pin<&mut impl Future>) {
    tokio::select! {
        biased;
        _ = &mut waiting => {}
        () = std::future::ready(()) => {}
    }
}

/// How many tasks a claim of one handle gives.
async fn claimed(store: &impl Store) -> usize {
    store.claim(claim_request("q", 9)).await.expect("claimed").tasks.len()
}

/// One task is put on `q` by the producer's handle while the worker's waits, and the
/// wait ends.
///
/// # Panics
/// When it does not.
pub async fn is_heard<S: Store>(worker: &S, producer: &S, put_by: impl AsyncFnOnce(&S)) {
    for queue in ["q", "other"] {
        let declared = producer.declare_queue(Declaration::new(name(queue))).await;
        declared.expect("declared");
    }
    // Somebody waits all the time, for beginning to is a reason to look.
    let other = [name("other")];
    let mut waiting = pin!(worker.wait(&other, worker.mark(), NEVER));
    begin(waiting.as_mut()).await;
    // That look is over when what was asked after it is.
    assert_eq!(claimed(worker).await, 0);
    let mark = worker.mark();
    put_by(producer).await;
    let woken = timeout(PATIENCE, worker.wait(&[name("q")], mark, NEVER)).await;
    woken.expect("it was not told").expect("the store answers");
    assert_eq!(claimed(worker).await, 1);
}
