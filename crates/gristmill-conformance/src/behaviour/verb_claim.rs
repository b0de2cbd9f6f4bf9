//! Claiming beyond the rules: the concurrent count, and slots, which are
//! numbers and limits at once.

use std::collections::BTreeSet;

use gristmill_core::{Outcome, QueueName};

use crate::fixture::Fixture;
use crate::handle::Held;
use crate::shape::{Shape, plain, secs, task};

async fn slots(f: &Fixture, n: u32) -> QueueName {
    f.queue_with("q", |s| s.slots = Some(Some(n))).await
}

fn slot(held: &Held) -> u32 {
    held.task.slot.expect("a slot")
}

pub(super) async fn verb_claim_takes_one_task_where_runs_are_counted(f: &mut Fixture) {
    let counted = f.queue_with("counted", |s| s.count = Some(true)).await;
    let slotted = f.queue_with("slotted", |s| s.slots = Some(Some(9))).await;
    for q in [counted, slotted] {
        f.enqueue_all(&q, plain(5)).await;
        assert_eq!(f.claim_ids(&q, 5).await.len(), 1, "{q}");
    }
}

pub(super) async fn verb_claim_counts_the_other_live_leases(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.count = Some(true)).await;
    f.enqueue_all(&q, plain(8)).await;
    let mut running = Vec::new();
    for others in 0..4 {
        let held = f.claim_one(&q).await;
        assert_eq!((held.task.concurrent, held.task.slot), (Some(others), None));
        running.push(held);
    }
    // One ends, one expires: neither is counted any more.
    f.end(&running[0], Outcome::Done).await;
    assert_eq!(f.claim_one(&q).await.task.concurrent, Some(3));
    f.advance(secs(40));
    for held in &running[2..] {
        f.extend(held.token, secs(60)).await;
    }
    f.advance(secs(30));
    assert_eq!(f.claim_one(&q).await.task.concurrent, Some(2));
}

pub(super) async fn verb_claim_counts_groups_apart(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.count = Some(true)).await;
    for group in ["a", "a", "b", "a"] {
        f.enqueue(&q, task("x").in_group(group)).await;
    }
    f.enqueue(&q, task("of no group")).await;
    let mut counts = Vec::new();
    for _ in 0..5 {
        counts.push(f.claim_one(&q).await.task.concurrent.expect("a count"));
    }
    assert_eq!(counts, [0, 1, 0, 2, 0]);
}

pub(super) async fn verb_claim_gives_each_run_a_slot_of_its_own(f: &mut Fixture) {
    let q = slots(f, 3).await;
    f.enqueue_all(&q, plain(7)).await;
    let mut running = Vec::new();
    for _ in 0..3 {
        running.push(f.claim_one(&q).await);
    }
    let taken: BTreeSet<u32> = running.iter().map(slot).collect();
    assert_eq!(taken, BTreeSet::from([0, 1, 2]));
    f.claim_none(&q).await;
    // The one that ended in the middle leaves its own number to the next.
    f.end(&running[1], Outcome::Done).await;
    let next = f.claim_one(&q).await;
    assert_eq!(slot(&next), slot(&running[1]));
    assert_eq!(next.task.concurrent, Some(2));
    let shown = f.the(next.id).await.lease.expect("a lease");
    assert_eq!(shown.slot, next.task.slot);
    f.claim_none(&q).await;
}

pub(super) async fn verb_claim_frees_a_slot_however_the_run_ends(f: &mut Fixture) {
    let q = slots(f, 1).await;
    f.enqueue_all(&q, plain(6)).await;
    let at = Some(gristmill_core::When::After(secs(9_999)));
    let ends = [
        Some(Outcome::Done),
        Some(Outcome::Fail("never".to_owned())),
        Some(Outcome::Release { at, started: true }),
        Some(Outcome::Cancelled),
        None,
    ];
    for outcome in ends {
        let held = f.claim_one(&q).await;
        assert_eq!(held.task.slot, Some(0), "{outcome:?}");
        f.claim_none(&q).await;
        match outcome {
            Some(outcome) => f.end(&held, outcome).await,
            // Its worker is lost: the slot comes back with the lease.
            None => f.advance(secs(61)),
        }
    }
    assert_eq!(f.claim_one(&q).await.task.slot, Some(0));
}

pub(super) async fn verb_claim_passes_a_full_group_over(f: &mut Fixture) {
    let q = slots(f, 2).await;
    for _ in 0..5 {
        f.enqueue(&q, task("x").in_group("busy").at_priority(-1)).await;
    }
    let other = f.enqueue(&q, task("y").in_group("idle")).await;
    let nobody = f.enqueue(&q, task("z")).await;
    let first = f.claim_one(&q).await;
    let second = f.claim_one(&q).await;
    assert_ne!(slot(&first), slot(&second));
    // The busy group is full, though its tasks come first.
    let held = f.claim_one(&q).await;
    assert_eq!((held.id, slot(&held), held.task.concurrent), (other, 0, Some(0)));
    assert_eq!(f.claim_one(&q).await.id, nobody);
    f.claim_none(&q).await;
    f.end(&first, Outcome::Done).await;
    assert_eq!(f.claim_one(&q).await.task.group.as_deref(), Some("busy"));
}

pub(super) async fn verb_claim_never_gives_a_live_slot_twice_when_claims_race(f: &mut Fixture) {
    const SLOTS: u32 = 3;
    let q = slots(f, SLOTS).await;
    let groups = ["a", "b"];
    for n in 0..120 {
        f.enqueue(&q, task("x").in_group(groups[n % 2])).await;
    }
    let handles = f.handles().await;
    let live: std::sync::Arc<std::sync::Mutex<BTreeSet<(String, u32)>>> = Default::default();
    let mut workers = Vec::new();
    for n in 0..12 {
        let (handle, q, live) = (handles[n % handles.len()].clone(), q.clone(), live.clone());
        workers.push(tokio::spawn(async move {
            let mut ended = 0;
            for _ in 0..400 {
                let Some(held) = handle.claim_held(&q, 1).await.pop() else {
                    tokio::task::yield_now().await;
                    continue;
                };
                let mine = (held.task.group.clone().expect("a group"), slot(&held));
                assert!(mine.1 < SLOTS, "a number below the slots: {mine:?}");
                assert!(
                    live.lock().expect("a lock").insert(mine.clone()),
                    "{mine:?} is held twice"
                );
                tokio::task::yield_now().await;
                live.lock().expect("a lock").remove(&mine);
                handle.end(&held, Outcome::Done).await;
                ended += 1;
            }
            ended
        }));
    }
    let mut ended = 0;
    for worker in workers {
        ended += worker.await.expect("a worker");
    }
    ended += drain(f, &q).await;
    assert_eq!(ended, 120, "no slot leaks");
}

async fn drain(f: &Fixture, q: &QueueName) -> usize {
    let mut ended = 0;
    while let Some(held) = f.claim_held(q, 1).await.pop() {
        f.end(&held, Outcome::Done).await;
        ended += 1;
        assert!(ended <= 1_000, "it ends");
    }
    ended
}

pub(super) async fn verb_claim_gives_nothing_of_a_paused_queue(f: &mut Fixture) {
    let (q, r) = (f.queue("q").await, f.queue("r").await);
    f.enqueue_all(&q, plain(3)).await;
    let held = f.claim_one(&q).await;
    f.pause(&q, true).await;
    let claim = f.claim(&q, 10).await;
    assert!(claim.paused && claim.tasks.is_empty());
    let queue = &f.store.queues().await.expect("queues")[0];
    assert_eq!((queue.paused, queue.paused_by.as_deref()), (true, Some("operator")));
    assert!(f.stats(&q).await.paused);
    // Puts go on, what runs finishes, other queues are not meant.
    f.enqueue(&q, task("x")).await;
    f.extend(held.token, secs(60)).await;
    f.end(&held, Outcome::Done).await;
    f.enqueue(&r, task("x")).await;
    assert!(!f.claim(&r, 1).await.paused);
    f.pause(&q, false).await;
    assert!(!f.stats(&q).await.paused);
    assert_eq!(f.store.queues().await.expect("queues")[0].paused_by, None);
    assert_eq!(f.claim_ids(&q, 10).await.len(), 3);
}

pub(super) async fn verb_claim_tells_what_is_open_under_its_token(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue_all(&q, plain(4)).await;
    let held = f.claim_held(&q, 3).await;
    let token = held[0].token;
    let ids = |held: &[Held]| held.iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(f.store.open_under(token).await, Ok(ids(&held)));
    let other = f.claim_one(&q).await;
    assert_eq!(f.store.open_under(other.token).await, Ok(vec![other.id]));
    // What was settled is not open any more; what was given back neither.
    f.end(&held[1], Outcome::Done).await;
    f.end(&held[2], Outcome::Release { at: None, started: true }).await;
    assert_eq!(f.store.open_under(token).await, Ok(vec![held[0].id]));
    f.extend(token, secs(60)).await;
    assert_eq!(f.store.open_under(token).await, Ok(vec![held[0].id]));
    f.end(&held[0], Outcome::Error("no".to_owned())).await;
    assert_eq!(f.store.open_under(token).await, Ok(Vec::new()));
    // Taken back after its time, it is nobody's.
    f.advance(secs(70));
    f.store.sweep().await.expect("a sweep");
    assert_eq!(f.store.open_under(other.token).await, Ok(Vec::new()));
    assert_eq!(f.store.open_under(f.token()).await, Ok(Vec::new()));
}
