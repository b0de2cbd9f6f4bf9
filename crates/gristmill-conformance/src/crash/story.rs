//! A short story that a child tells while calls to its disk fail: puts, a claim
//! and a settlement, a checkpoint, and all of it again.

use std::path::Path;

use gristmill_core::{ClaimRequest, Outcome, Token, WorkerId};

use super::Open;
use super::child::Child;
use super::record::How;

/// Tasks whose payloads make the log so long that it is written back by itself.
/// Without it the story is quick.
const HEAVY: &str = "GRISTMILL_CRASH_HEAVY";

/// Tells it and ends the process as a kill would, so that nothing is put in order.
pub(super) async fn tell(child: &mut Child, open: Open, folder: &Path) {
    part(child, 1).await;
    // The last one to close makes a checkpoint. It may fail like everything else.
    let _ = child.store.close().await;
    child.store = open(folder).await;
    part(child, 2).await;
    if std::env::var_os(HEAVY).is_some() {
        let many: Vec<u64> = (0..1_000).map(|n| number(3, n)).collect();
        let _ = child.put_noted(&many).await;
        part(child, 4).await;
    }
    std::process::exit(0);
}

/// A payload's number; none has a key.
pub(super) fn number(part: u64, n: u64) -> u64 {
    (part * 10_000 + n) * 3 + 1
}

/// Puts, puts again, works one off, and puts.
async fn part(child: &mut Child, part: u64) {
    let _ = child.put_noted(&[number(part, 1)]).await;
    let _ = child.put_noted(&[number(part, 2), number(part, 3)]).await;
    work_one(child).await;
    let _ = child.put_noted(&[number(part, 4)]).await;
}

async fn work_one(child: &mut Child) {
    let token = Token::random().expect("a token");
    let request = ClaimRequest {
        queue: child.queue.clone(),
        max: 1,
        lease: None,
        worker: WorkerId::random().expect("an id"),
        source: None,
        token,
    };
    // A claim without an answer comes back when its lease runs out.
    let Ok(claim) = child.store.claim(request).await else { return };
    for task in &claim.tasks {
        let _ = child.end(task, token, How::Done, Outcome::Done).await;
    }
}
