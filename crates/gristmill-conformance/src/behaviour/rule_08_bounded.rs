//! Rule 8, bounded: capacity is asked by puts from outside only, and every
//! batch, page and claim has a limit.

use gristmill_core::{
    Action, ListRequest, NewTask, OnDuplicate, OperationAnswer, Outcome, Payload, PutAnswer,
    QueueName, Refusal, SettleAnswer, Settlement, StoreError,
};

use crate::fixture::Fixture;
use crate::shape::{Shape, plain, secs, task};

async fn of_capacity(f: &Fixture, capacity: u64) -> QueueName {
    f.queue_with("q", |s| s.capacity = Some(Some(capacity))).await
}

fn full(capacity: u64) -> PutAnswer {
    PutAnswer::Refused(Refusal::QueueFull { capacity })
}

pub(super) async fn rule_08_a_full_queue_refuses_puts(f: &mut Fixture) {
    let q = of_capacity(f, 3).await;
    assert!(f.stats(&q).await.can_accept());
    let answers = f.put_all(&q, plain(5)).await;
    assert!(answers[..3].iter().all(PutAnswer::is_enqueued), "{answers:?}");
    assert_eq!(answers[3..], [full(3), full(3)]);
    assert_eq!(f.put(&q, task("x")).await, full(3));
    let stats = f.stats(&q).await;
    assert!(!stats.can_accept());
    assert_eq!((stats.capacity, stats.pending()), (Some(3), 3));
    assert_eq!(stats.counters.refused, 3);
}

pub(super) async fn rule_08_capacity_counts_pending_tasks_only(f: &mut Fixture) {
    let q = of_capacity(f, 3).await;
    // One delayed, one ready, one blocked: all of them pending.
    f.enqueue(&q, task("running").keyed("k")).await;
    let running = f.claim_one(&q).await;
    f.enqueue(&q, task("blocked").keyed("k")).await;
    f.enqueue(&q, task("delayed").delayed(60)).await;
    f.enqueue(&q, task("ready")).await;
    assert_eq!(f.put(&q, task("x")).await, full(3));
    // A claim makes room; failed and processing tasks do not take any.
    let ready = f.claim_one(&q).await;
    f.end(&ready, Outcome::Fail("never".to_owned())).await;
    f.enqueue(&q, task("another")).await;
    assert_eq!(f.put(&q, task("x")).await, full(3));
    f.end(&running, Outcome::Done).await;
    assert_eq!(f.put(&q, task("x")).await, full(3), "un-blocking makes no room");
}

pub(super) async fn rule_08_a_duplicate_needs_no_room(f: &mut Fixture) {
    let q = of_capacity(f, 1).await;
    let id = f.enqueue(&q, task("x").keyed("k").with_id("one")).await;
    assert_eq!(f.put(&q, task("y").keyed("k")).await.id(), Some(id));
    assert_eq!(f.put(&q, task("x").with_id("one")).await.id(), Some(id));
    f.override_with(&q, |s| s.on_duplicate = Some(OnDuplicate::Replace)).await;
    assert_eq!(f.put(&q, task("y").keyed("k")).await, PutAnswer::Replaced { id });
}

pub(super) async fn rule_08_an_atomic_put_that_does_not_fit_leaves_nothing(f: &mut Fixture) {
    let q = of_capacity(f, 3).await;
    let answers = f.put_as(&q, plain(4), true).await;
    assert_eq!(answers[3], full(3));
    assert_eq!(answers[0], PutAnswer::Refused(Refusal::Undone { because: 3 }));
    assert_eq!(f.stats(&q).await.pending(), 0);
    let answers = f.put_as(&q, plain(3), true).await;
    assert!(answers.iter().all(PutAnswer::is_enqueued), "{answers:?}");
}

pub(super) async fn rule_08_returns_are_never_refused(f: &mut Fixture) {
    let q = of_capacity(f, 2).await;
    let at = || gristmill_core::When::After(secs(5));
    let back = [
        Outcome::Error("wrong".to_owned()),
        Outcome::TimedOut(secs(900)),
        Outcome::Retry { at: at(), reason: None },
        Outcome::Release { at: None, started: false },
        Outcome::Release { at: Some(at()), started: true },
    ];
    let mut running = Vec::new();
    for outcome in back {
        f.enqueue(&q, task("x")).await;
        running.push((f.claim_one(&q).await, outcome));
    }
    f.enqueue(&q, task("to expire")).await;
    f.claim_one(&q).await;
    f.enqueue_all(&q, plain(2)).await;
    for (n, (held, outcome)) in running.iter().enumerate() {
        f.end(held, outcome.clone()).await;
        assert_eq!(f.stats(&q).await.pending(), 3 + n as u64);
    }
    f.advance(secs(61));
    assert_eq!(f.reclaim().await, 1);
    assert_eq!(f.stats(&q).await.pending(), 8, "over the capacity, and nothing lost");
    assert_eq!(f.put(&q, task("x")).await, full(2));
}

pub(super) async fn rule_08_follow_ups_are_never_refused(f: &mut Fixture) {
    let q = of_capacity(f, 1).await;
    f.enqueue(&q, task("x")).await;
    let held = f.claim_one(&q).await;
    f.enqueue(&q, task("fills it")).await;
    let answer = f.settle_then(&held, Outcome::Done, &q, plain(5)).await;
    let SettleAnswer::Recorded { follow_ups, .. } = answer else { panic!("{answer:?}") };
    assert!(follow_ups.iter().all(PutAnswer::is_enqueued), "{follow_ups:?}");
    assert_eq!(f.stats(&q).await.pending(), 6);
}

pub(super) async fn rule_08_an_operators_retry_is_never_refused(f: &mut Fixture) {
    let q = of_capacity(f, 1).await;
    f.enqueue(&q, task("x")).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Fail("never".to_owned())).await;
    f.enqueue(&q, task("fills it")).await;
    assert_eq!(f.operate_one(Action::Retry, held.id).await, OperationAnswer::Moved);
    assert_eq!(f.stats(&q).await.pending(), 2);
}

pub(super) async fn rule_08_capacity_holds_when_puts_race(f: &mut Fixture) {
    let q = of_capacity(f, 20).await;
    let handles = f.handles().await;
    let mut racing = Vec::new();
    for n in 0..32 {
        let (handle, q) = (handles[n % handles.len()].clone(), q.clone());
        racing.push(tokio::spawn(async move { handle.put_all(&q, plain(3)).await }));
    }
    let mut enqueued = 0;
    for racer in racing {
        let answers = racer.await.expect("a put");
        enqueued += answers.iter().filter(|answer| answer.is_enqueued()).count();
    }
    // Where capacity is not exact, puts in flight may overrun it, each by its
    // own size at most.
    let most = if f.capabilities().exact_capacity { 20 } else { 20 + 32 * 3 };
    assert!((20..=most).contains(&enqueued), "{enqueued} enqueued");
    assert_eq!(f.stats(&q).await.pending(), enqueued as u64);
}

pub(super) async fn rule_08_a_claim_is_limited_in_tasks_and_bytes(f: &mut Fixture) {
    f.limit(|limits| {
        limits.claim_tasks = 4;
        limits.claim_bytes = 100;
    })
    .await;
    let q = f.queue("q").await;
    let sized = |bytes: usize| NewTask::new(Payload::raw(vec![7; bytes]));
    let sizes = [40, 40, 40, 300, 10, 10, 10, 10, 10];
    let ids = f.enqueue_all(&q, sizes.into_iter().map(sized).collect()).await;
    assert_eq!(f.claim_ids(&q, 100).await, ids[..2], "80 of 100 bytes");
    assert_eq!(f.claim_ids(&q, 100).await, ids[2..3]);
    assert_eq!(f.claim_ids(&q, 100).await, ids[3..4], "one is always given");
    assert_eq!(f.claim_ids(&q, 100).await, ids[4..8], "four tasks");
}

pub(super) async fn rule_08_pages_and_settlements_are_limited(f: &mut Fixture) {
    f.limit(|limits| {
        limits.page = 3;
        limits.settlements = 2;
    })
    .await;
    let q = f.queue("q").await;
    f.enqueue_all(&q, plain(7)).await;
    let request = ListRequest { limit: 1_000_000, ..ListRequest::default() };
    let page = f.store.list(request).await.expect("a page");
    assert!(page.tasks.len() <= 3 && page.next.is_some());
    assert_eq!(f.all().await.len(), 7, "all of it, page by page");
    let held = f.claim_held(&q, 3).await;
    let settle = |n: usize| Settlement::new(held[n].id, held[n].token, Outcome::Done);
    let answer = f.store.settle((0..3).map(settle).collect()).await;
    assert!(matches!(answer, Err(StoreError::Invalid(_))), "{answer:?}");
    assert_eq!(f.stats(&q).await.processing, 3, "nothing of it happened");
    assert!(f.store.settle((0..2).map(settle).collect()).await.is_ok());
}
