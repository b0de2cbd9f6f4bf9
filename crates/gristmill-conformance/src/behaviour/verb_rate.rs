//! Rates: so many tasks a time are claimed, of a queue or of each of its groups, over
//! all workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gristmill_core::{Outcome, Per, QueueName, Rate, TaskId, When};

use crate::fixture::Fixture;
use crate::handle::Held;
use crate::shape::{Shape, millis, plain, secs, task};

/// Ten a second, and so many at once.
async fn rated(f: &Fixture, burst: u32) -> QueueName {
    f.queue_with("q", |s| {
        s.rate = Some(Some(Rate::new(10, secs(1))));
        s.burst = Some(Some(burst));
    })
    .await
}

async fn per_group(f: &Fixture, burst: u32) -> QueueName {
    f.queue_with("q", |s| {
        s.rate = Some(Some(Rate::new(10, secs(1))));
        s.burst = Some(Some(burst));
        s.rate_per = Some(Per::Group);
    })
    .await
}

fn ids(held: &[Held]) -> Vec<TaskId> {
    held.iter().map(|one| one.id).collect()
}

pub(super) async fn verb_rate_lets_the_burst_and_then_the_rate_through(f: &mut Fixture) {
    let q = rated(f, 3).await;
    let all = f.enqueue_all(&q, plain(20)).await;
    assert_eq!(f.claim_ids(&q, 2).await, all[..2]);
    assert_eq!(f.claim_ids(&q, 9).await, all[2..3]);
    f.claim_none(&q).await;
    f.advance(millis(99));
    f.claim_none(&q).await;
    f.advance(millis(1));
    assert_eq!(f.claim_ids(&q, 9).await, all[3..4]);
    f.advance(millis(250));
    assert_eq!(f.claim_ids(&q, 9).await, all[4..6]);
    f.advance(millis(50));
    assert_eq!(f.claim_ids(&q, 9).await, all[6..7], "halves are not lost");
    // After a pause as many as the burst, and no more.
    f.advance(secs(30));
    assert_eq!(f.claim_ids(&q, 9).await, all[7..10]);
    f.claim_none(&q).await;
    // Another queue is not meant.
    let r = f.queue("r").await;
    f.enqueue_all(&r, plain(5)).await;
    assert_eq!(f.claim_ids(&r, 9).await.len(), 5);
}

pub(super) async fn verb_rate_says_when_to_come_back(f: &mut Fixture) {
    let q = rated(f, 1).await;
    f.enqueue_all(&q, plain(2)).await;
    f.enqueue(&q, task("later").delayed(50)).await;
    assert_eq!(f.claim(&q, 5).await.next_due, None);
    let claim = f.claim(&q, 5).await;
    assert!(claim.tasks.is_empty());
    assert_eq!(claim.next_due, Some(millis(100)));
    f.advance(millis(70));
    assert_eq!(f.claim(&q, 5).await.next_due, Some(millis(30)));
    f.advance(millis(30));
    assert_eq!(f.claim(&q, 5).await.tasks.len(), 1);
    // Nothing is due: no bucket is waited for.
    let next = f.claim(&q, 5).await.next_due.expect("the delayed one");
    assert!(next > secs(40), "{next:?}");
}

pub(super) async fn verb_rate_gives_back_what_never_started(f: &mut Fixture) {
    let q = rated(f, 2).await;
    f.enqueue_all(&q, plain(9)).await;
    let later = Some(When::After(secs(9_999)));
    let held = f.claim_held(&q, 5).await;
    assert_eq!(held.len(), 2);
    f.end(&held[0], Outcome::Release { at: later, started: false }).await;
    assert_eq!(f.claim_ids(&q, 5).await.len(), 1, "it takes the token of what did not start");
    f.claim_none(&q).await;
    // Nothing else gives one back.
    f.end(&held[1], Outcome::Release { at: later, started: true }).await;
    f.claim_none(&q).await;
    for outcome in [Outcome::Done, Outcome::Error("no".to_owned()), Outcome::Fail("no".to_owned())]
    {
        f.advance(millis(100));
        let held = f.claim_one(&q).await;
        f.end(&held, outcome).await;
        f.claim_none(&q).await;
    }
    // A repeat, or a stale token, gives nothing back.
    f.advance(millis(100));
    let held = f.claim_one(&q).await;
    let release = Outcome::Release { at: later, started: false };
    f.end(&held, release.clone()).await;
    f.settle(&held, release).await;
    assert_eq!(f.claim_ids(&q, 5).await.len(), 1);
    f.claim_none(&q).await;
}

pub(super) async fn verb_rate_counts_each_group_by_itself(f: &mut Fixture) {
    let q = per_group(f, 2).await;
    let mut all = Vec::new();
    for group in [Some("a"), Some("a"), Some("a"), Some("b"), None, None, None, Some("a")] {
        let task = task("x");
        all.push(f.enqueue(&q, group.into_iter().fold(task, |t, group| t.in_group(group))).await);
    }
    let held = f.claim_held(&q, 20).await;
    assert_eq!(ids(&held), [all[0], all[1], all[3], all[4], all[5]]);
    let claim = f.claim(&q, 20).await;
    assert_eq!((claim.tasks.len(), claim.next_due), (0, Some(millis(100))));
    // An end makes no room.
    f.end(&held[0], Outcome::Done).await;
    f.claim_none(&q).await;
    // What did not start does, in its own group.
    f.end(&held[4], Outcome::Release { at: Some(When::After(secs(999))), started: false }).await;
    assert_eq!(f.claim_ids(&q, 20).await, [all[6]]);
    f.advance(millis(100));
    assert_eq!(f.claim_ids(&q, 20).await, [all[2]]);
    f.claim_none(&q).await;
}

pub(super) async fn verb_rate_passes_many_tasks_of_an_exhausted_group(f: &mut Fixture) {
    let q = per_group(f, 1).await;
    let busy = (0..700).map(|_| task("x").in_group("busy").at_priority(-1)).collect();
    let busy = f.enqueue_all(&q, busy).await;
    let others = (0..6).map(|n| task("x").in_group(["a", "b", "c"][n % 3])).collect();
    let others = f.enqueue_all(&q, others).await;
    assert_eq!(f.claim_ids(&q, 10).await, [busy[0], others[0], others[1], others[2]]);
    f.claim_none(&q).await;
    f.advance(millis(100));
    assert_eq!(f.claim_ids(&q, 10).await, [busy[1], others[3], others[4], others[5]]);
    f.claim_none(&q).await;
}

pub(super) async fn verb_rate_waits_for_no_clock_that_was_wrong(f: &mut Fixture) {
    let q = rated(f, 2).await;
    let r = f
        .queue_with("r", |s| {
            s.rate = Some(Some(Rate::new(10, secs(1))));
            s.burst = Some(Some(2));
            s.rate_per = Some(Per::Group);
        })
        .await;
    for queue in [&q, &r] {
        f.enqueue_all(queue, plain(9)).await;
    }
    let right = f.now();
    f.clock.set_wall(right.after(secs(7200)));
    let ahead = [f.claim_held(&q, 9).await, f.claim_held(&r, 9).await].concat();
    assert_eq!(ahead.len(), 4);
    f.clock.set_wall(right);
    for held in &ahead {
        f.end(held, Outcome::Done).await;
    }
    // What a clock that is ahead stamped means an empty bucket, and no more.
    for queue in [&q, &r] {
        let claim = f.claim(queue, 9).await;
        assert_eq!((claim.tasks.len(), claim.next_due), (0, Some(millis(100))));
    }
    f.advance(millis(100));
    assert_eq!((f.claim_ids(&q, 9).await.len(), f.claim_ids(&r, 9).await.len()), (1, 1));
}

pub(super) async fn verb_rate_survives_a_kill(f: &mut Fixture) {
    let q = rated(f, 3).await;
    let r = f
        .queue_with("r", |s| {
            s.rate = Some(Some(Rate::new(10, secs(1))));
            s.burst = Some(Some(1));
            s.rate_per = Some(Per::Group);
        })
        .await;
    f.enqueue_all(&q, plain(9)).await;
    f.enqueue_all(&r, (0..6).map(|n| task("x").in_group(["a", "b"][n % 2])).collect()).await;
    let held = f.claim_held(&q, 9).await;
    assert_eq!((held.len(), f.claim_ids(&r, 9).await.len()), (3, 2));
    if !f.kill().await {
        return;
    }
    f.claim_none(&q).await;
    f.claim_none(&r).await;
    f.end(&held[0], Outcome::Release { at: None, started: false }).await;
    if !f.kill().await {
        return;
    }
    assert_eq!(f.claim_ids(&q, 9).await, [held[0].id], "what was given back is kept too");
    f.claim_none(&r).await;
    f.advance(millis(100));
    assert_eq!((f.claim_ids(&q, 9).await.len(), f.claim_ids(&r, 9).await.len()), (1, 2));
}

pub(super) async fn verb_rate_and_concurrency_hold_together(f: &mut Fixture) {
    let q = f
        .queue_with("q", |s| {
            s.rate = Some(Some(Rate::new(10, secs(1))));
            s.burst = Some(Some(4));
            s.concurrency = Some(Some(2));
            s.concurrency_per = Some(Per::Group);
        })
        .await;
    f.enqueue_all(&q, (0..12).map(|n| task("x").in_group(["a", "b"][n % 2])).collect()).await;
    let held = f.claim_held(&q, 3).await;
    assert_eq!(held.len(), 3);
    assert_eq!(f.claim_ids(&q, 9).await.len(), 1, "two of each group");
    f.end(&held[0], Outcome::Done).await;
    f.claim_none(&q).await;
    f.advance(secs(1));
    assert_eq!(f.claim_ids(&q, 9).await.len(), 1, "one of the group that has room");
    f.claim_none(&q).await;
}

pub(super) async fn verb_rate_can_change_while_tasks_wait(f: &mut Fixture) {
    let q = rated(f, 2).await;
    f.enqueue_all(&q, plain(30)).await;
    assert_eq!(f.claim_ids(&q, 9).await.len(), 2);
    f.override_with(&q, |s| {
        s.rate = Some(None);
        s.burst = Some(None);
    })
    .await;
    assert_eq!(f.claim_ids(&q, 9).await.len(), 9, "no limit");
    // What no single value shows is refused, and changes nothing.
    let burst = gristmill_core::SettingsPatch {
        burst: Some(Some(5)),
        ..gristmill_core::SettingsPatch::default()
    };
    assert!(f.store.override_queue(&q, burst, "operator").await.is_err());
    f.override_with(&q, |s| {
        s.rate = Some(Some(Rate::new(1, secs(10))));
        s.burst = Some(Some(1));
    })
    .await;
    f.advance(secs(20));
    assert_eq!(f.claim_ids(&q, 9).await.len(), 1);
    assert_eq!(f.claim(&q, 9).await.next_due, Some(secs(10)));
}

pub(super) async fn verb_rate_holds_when_claims_race(f: &mut Fixture) {
    let q = rated(f, 7).await;
    f.enqueue_all(&q, plain(100)).await;
    let handles = f.handles().await;
    for round in 0..4 {
        let claimed: Arc<AtomicUsize> = Arc::default();
        let mut workers = Vec::new();
        for n in 0..9 {
            let (handle, q) = (handles[n % handles.len()].clone(), q.clone());
            let claimed = claimed.clone();
            workers.push(tokio::spawn(async move {
                for turn in 0..6 {
                    let held = handle.claim_held(&q, 1 + turn % 3).await;
                    claimed.fetch_add(held.len(), Ordering::SeqCst);
                }
            }));
        }
        for worker in workers {
            worker.await.expect("a worker");
        }
        assert_eq!(claimed.load(Ordering::SeqCst), if round == 0 { 7 } else { 3 });
        f.advance(millis(300));
    }
}
