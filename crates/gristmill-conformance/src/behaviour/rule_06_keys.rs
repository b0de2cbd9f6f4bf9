//! Rule 6, keys: two places a key, what a put in each situation becomes, and
//! what is free when a task ends.

use gristmill_core::{PutAnswer, QueueName, StandingPlace, State, TaskId, Unique};

use crate::fixture::Fixture;
use crate::handle::Held;
use crate::shape::{Shape, plain, secs, task};
use gristmill_core::{Action, OperationAnswer, Outcome, When};

pub(super) async fn rule_06_a_put_of_a_waiting_key_is_a_duplicate(f: &mut Fixture) {
    let q = f.queue("q").await;
    let first = task("one").keyed("k").of_source("shop").delayed(30);
    let id = f.enqueue(&q, first).await;
    let standing = f.the(id).await;
    let duplicate =
        PutAnswer::Duplicate { id, run_at: Some(standing.run_at), source: Some("shop".to_owned()) };
    f.advance(secs(1));
    assert_eq!(f.put(&q, task("two").keyed("k")).await, duplicate);
    assert_eq!(f.the(id).await, standing, "skip changes nothing");
    // Also against its neighbours in one put, and against the store.
    let bulk = vec![task("x").keyed("k"), task("y").keyed("new"), task("z").keyed("new")];
    let answers = f.put_all(&q, bulk).await;
    assert_eq!(answers[0], duplicate);
    assert!(answers[1].is_enqueued());
    assert!(matches!(&answers[2], PutAnswer::Duplicate { id, .. } if Some(*id) == answers[1].id()));
    assert_eq!(f.stats(&q).await.counters.duplicate, 3);
}

pub(super) async fn rule_06_keys_are_compared_exactly_and_by_queue(f: &mut Fixture) {
    let (q, r) = (f.queue("q").await, f.queue("r").await);
    let long = "k".repeat(512);
    let keys = ["k", "K", " k", "k ", "é", "e\u{301}", "k%", "k_", "0", "00", "1e0", long.as_str()];
    for key in keys {
        f.enqueue(&q, task("x").keyed(key)).await;
        f.enqueue(&r, task("x").keyed(key)).await;
    }
    for key in keys {
        let again = f.put(&q, task("x").keyed(key)).await;
        assert!(matches!(again, PutAnswer::Duplicate { .. }), "{key:?}: {again:?}");
        assert_eq!(f.places(&q, key).await.len(), 1);
    }
}

pub(super) async fn rule_06_tasks_without_a_key_never_meet(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.unique = Some(Unique::Active)).await;
    f.enqueue_all(&q, vec![task("same"); 20]).await;
    f.claim(&q, 10).await;
    f.enqueue_all(&q, vec![task("same"); 20]).await;
    assert_eq!(f.stats(&q).await.blocked, 0);
}

pub(super) async fn rule_06_an_event_that_arrives_mid_run_is_not_lost(f: &mut Fixture) {
    let q = f.queue("q").await;
    let running = f.enqueue(&q, task("one").keyed("k")).await;
    let held = f.claim_one(&q).await;
    let waiting = f.enqueue(&q, task("two").keyed("k")).await;
    assert!(f.the(waiting).await.blocked);
    assert_eq!(f.stats(&q).await.blocked, 1);
    let places = [(running, StandingPlace::InFlight), (waiting, StandingPlace::Waiting)];
    assert_eq!(f.places(&q, "k").await, places);
    // The waiting place is taken: a third one is a duplicate of it.
    let third = f.put(&q, task("three").keyed("k")).await;
    assert_eq!(third.id(), Some(waiting));
    f.claim_none(&q).await;
    f.end(&held, Outcome::Done).await;
    let next = f.claim_one(&q).await;
    assert_eq!(next.id, waiting, "it runs afterwards");
    assert_eq!(next.task.payload, task("two").payload);
}

/// A task in flight and one that waits behind it.
async fn pair(f: &Fixture, q: &QueueName) -> (Held, TaskId) {
    f.enqueue(q, task("one").keyed("k")).await;
    let held = f.claim_one(q).await;
    let waiting = f.enqueue(q, task("two").keyed("k")).await;
    f.claim_none(q).await;
    (held, waiting)
}

pub(super) async fn rule_06_a_task_that_came_back_still_blocks_its_key(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.max_attempts = Some(None)).await;
    let (mut held, waiting) = pair(f, &q).await;
    let at = When::After(secs(10));
    let back = [
        Outcome::Error("wrong".to_owned()),
        Outcome::TimedOut(secs(900)),
        Outcome::Retry { at, reason: None },
        Outcome::Release { at: Some(at), started: true },
    ];
    for outcome in back {
        f.end(&held, outcome.clone()).await;
        let places = [(held.id, StandingPlace::InFlight), (waiting, StandingPlace::Waiting)];
        assert_eq!(f.places(&q, "k").await, places, "{outcome:?}");
        f.advance(secs(3600));
        held = f.claim_one(&q).await;
        assert_ne!(held.id, waiting, "{outcome:?}: the one in flight goes first");
        f.claim_none(&q).await;
    }
    // An expired lease is no end either.
    f.advance(secs(61));
    f.reclaim().await;
    assert_eq!(f.claim_one(&q).await.id, held.id);
    f.claim_none(&q).await;
}

/// Asserts that the waiting task is free now, without anybody's help.
async fn freed(f: &Fixture, q: &QueueName, waiting: TaskId) {
    assert!(!f.the(waiting).await.blocked);
    let stats = f.stats(q).await;
    assert_eq!((stats.blocked, stats.ready), (0, 1));
    assert_eq!(f.claim_one(q).await.id, waiting);
}

pub(super) async fn rule_06_done_frees_the_key(f: &mut Fixture) {
    let q = f.queue("q").await;
    let (held, waiting) = pair(f, &q).await;
    f.end(&held, Outcome::Done).await;
    freed(f, &q, waiting).await;
}

pub(super) async fn rule_06_fail_frees_the_key(f: &mut Fixture) {
    let q = f.queue("q").await;
    let (held, waiting) = pair(f, &q).await;
    f.end(&held, Outcome::Fail("never".to_owned())).await;
    freed(f, &q, waiting).await;
}

pub(super) async fn rule_06_used_up_attempts_free_the_key(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.max_attempts = Some(Some(1))).await;
    let (held, waiting) = pair(f, &q).await;
    f.end(&held, Outcome::Error("wrong".to_owned())).await;
    freed(f, &q, waiting).await;
    f.renew().await;
    let q = f.queue_with("q", |s| s.max_attempts = Some(Some(1))).await;
    let (held, waiting) = pair(f, &q).await;
    f.advance(secs(61));
    f.reclaim().await;
    assert_eq!(f.the(held.id).await.state, State::Failed);
    freed(f, &q, waiting).await;
}

pub(super) async fn rule_06_a_cancelled_run_frees_the_key(f: &mut Fixture) {
    let q = f.queue("q").await;
    let (held, waiting) = pair(f, &q).await;
    let asked = f.operate_one(Action::Cancel, held.id).await;
    assert_eq!(asked, OperationAnswer::CancelRequested);
    assert!(f.the(waiting).await.blocked, "it still runs");
    f.end(&held, Outcome::Cancelled).await;
    freed(f, &q, waiting).await;
}

pub(super) async fn rule_06_cancelling_a_task_that_came_back_frees_the_key(f: &mut Fixture) {
    let q = f.queue("q").await;
    let (held, waiting) = pair(f, &q).await;
    f.end(&held, Outcome::Error("wrong".to_owned())).await;
    assert_eq!(f.operate_one(Action::Cancel, held.id).await, OperationAnswer::Moved);
    freed(f, &q, waiting).await;
}

pub(super) async fn rule_06_cancelling_the_waiting_task_frees_its_place(f: &mut Fixture) {
    let q = f.queue("q").await;
    let (held, waiting) = pair(f, &q).await;
    assert_eq!(f.operate_one(Action::Cancel, waiting).await, OperationAnswer::Moved);
    assert_eq!(f.stats(&q).await.blocked, 0);
    let next = f.enqueue(&q, task("three").keyed("k")).await;
    f.end(&held, Outcome::Done).await;
    assert_eq!(f.claim_one(&q).await.id, next);
}

pub(super) async fn rule_06_a_freed_task_keeps_its_time(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue(&q, task("one").keyed("k")).await;
    let held = f.claim_one(&q).await;
    let waiting = f.enqueue(&q, task("two").keyed("k").delayed(600)).await;
    f.end(&held, Outcome::Done).await;
    let stats = f.stats(&q).await;
    assert_eq!((stats.blocked, stats.delayed, stats.ready), (0, 1, 0));
    f.claim_none(&q).await;
    f.advance(secs(600));
    assert_eq!(f.claim_one(&q).await.id, waiting);
}

pub(super) async fn rule_06_a_follow_up_may_take_its_own_key(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue(&q, task("one").keyed("k")).await;
    let held = f.claim_one(&q).await;
    f.settle_then(&held, Outcome::Done, &q, vec![task("two").keyed("k")]).await;
    let next = f.claim_one(&q).await;
    assert_eq!(next.task.payload, task("two").payload);
}

pub(super) async fn rule_06_unique_active_is_a_duplicate_of_either_place(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.unique = Some(Unique::Active)).await;
    let id = f.enqueue(&q, task("one").keyed("k")).await;
    assert_eq!(f.the(id).await.unique, Unique::Active);
    let again = || task("two").keyed("k");
    let stands = |answer: PutAnswer| {
        assert!(
            matches!(answer, PutAnswer::Duplicate { id: first, .. } if first == id),
            "{answer:?}"
        );
    };
    stands(f.put(&q, again()).await);
    let held = f.claim_one(&q).await;
    stands(f.put(&q, again()).await);
    f.end(&held, Outcome::Error("wrong".to_owned())).await;
    stands(f.put(&q, again()).await);
    f.advance(secs(3600));
    f.claim_one(&q).await;
    f.advance(secs(61));
    f.reclaim().await;
    stands(f.put(&q, again()).await);
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Done).await;
    f.enqueue(&q, again()).await;
}

pub(super) async fn rule_06_unique_active_is_free_again_after_an_end(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.unique = Some(Unique::Active)).await;
    for outcome in [Outcome::Done, Outcome::Fail("never".to_owned()), Outcome::Cancelled] {
        f.enqueue(&q, task("x").keyed("k")).await;
        let held = f.claim_one(&q).await;
        f.end(&held, outcome).await;
    }
    let id = f.enqueue(&q, task("x").keyed("k")).await;
    f.operate(Action::Cancel, &[id]).await;
    f.enqueue(&q, task("x").keyed("k")).await;
}

pub(super) async fn rule_06_the_policy_of_the_put_is_the_tasks_for_life(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.unique = Some(Unique::Active)).await;
    let old = f.enqueue(&q, task("old").keyed("k")).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Fail("never".to_owned())).await;
    // Put and in flight under the later policy, beside the failed one.
    f.override_with(&q, |s| s.unique = Some(Unique::Pending)).await;
    let new = f.enqueue(&q, task("new").keyed("k")).await;
    f.claim_one(&q).await;
    assert_eq!(f.the(old).await.unique, Unique::Active);
    assert_eq!(f.the(new).await.unique, Unique::Pending);
    // The failed one was put to be the only one of its key, and stays so.
    let answer = f.operate_one(Action::Retry, old).await;
    assert_eq!(answer, OperationAnswer::DuplicateOf(new));
}

pub(super) async fn rule_06_failed_tasks_never_block_and_many_may_stand(f: &mut Fixture) {
    for unique in [Unique::Pending, Unique::Active] {
        f.renew().await;
        let q = f.queue_with("q", |s| s.unique = Some(unique)).await;
        let mut failed = Vec::new();
        for n in 0..5 {
            let id = f.enqueue(&q, task(&n.to_string()).keyed("k")).await;
            let held = f.claim_one(&q).await;
            f.end(&held, Outcome::Fail("never".to_owned())).await;
            failed.push((id, StandingPlace::Failed));
        }
        assert_eq!(f.places(&q, "k").await, failed);
        let waiting = f.enqueue(&q, task("x").keyed("k")).await;
        assert_eq!(f.claim_one(&q).await.id, waiting);
        f.enqueue_all(&q, plain(1)).await;
    }
}
