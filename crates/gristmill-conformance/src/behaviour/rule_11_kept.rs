//! Rule 11, nothing is dropped silently: what leaves the store, when, and how
//! it is counted.

use gristmill_core::{
    Action, ExtendAnswer, OperationAnswer, Outcome, SettleAnswer, State, TaskFilter, Unique,
};

use crate::fixture::Fixture;
use crate::shape::{Shape, plain, secs, task};

const YEAR: u64 = 365 * 24 * 3600;

async fn sweep(f: &Fixture) -> gristmill_core::SweepReport {
    f.store.sweep().await.expect("a sweep")
}

pub(super) async fn rule_11_work_that_has_not_run_is_never_removed_by_age(f: &mut Fixture) {
    let q = f
        .queue_with("q", |s| {
            s.keep_done = Some(Some(secs(1)));
            s.keep_failed = Some(Some(secs(1)));
        })
        .await;
    f.enqueue_all(&q, plain(5)).await;
    f.enqueue(&q, task("delayed").delayed(3 * YEAR)).await;
    let before = f.all().await;
    for _ in 0..5 {
        f.advance(secs(2 * YEAR));
        sweep(f).await;
    }
    assert_eq!(f.all().await, before);
    assert_eq!(f.claim_ids(&q, 10).await.len(), 6);
}

pub(super) async fn rule_11_done_is_deleted_and_counted(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue_all(&q, plain(4)).await;
    for held in f.claim_held(&q, 4).await {
        f.end(&held, Outcome::Done).await;
        assert_eq!(f.get(held.id).await, None);
    }
    let stats = f.stats(&q).await;
    assert_eq!((stats.total(), stats.done_kept, stats.counters.done), (0, 0, 4));
}

pub(super) async fn rule_11_kept_done_tasks_can_be_read_for_their_time(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.keep_done = Some(Some(secs(600)))).await;
    let id = f.enqueue(&q, task("x").keyed("k")).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Done).await;
    let kept = f.the(id).await;
    assert_eq!((kept.state, kept.resolved_at), (State::Done, Some(f.now())));
    assert_eq!(kept.payload, task("x").payload);
    let stats = f.stats(&q).await;
    assert_eq!((stats.done_kept, stats.total()), (1, 0));
    f.advance(secs(599));
    assert_eq!(sweep(f).await.pruned_done, 0);
    f.advance(secs(1));
    assert_eq!(sweep(f).await.pruned_done, 1);
    assert_eq!(f.get(id).await, None);
    assert_eq!(f.stats(&q).await.done_kept, 0);
}

pub(super) async fn rule_11_kept_done_tasks_are_in_nobodys_way(f: &mut Fixture) {
    let q = f
        .queue_with("q", |s| {
            s.keep_done = Some(Some(secs(600)));
            s.unique = Some(Unique::Active);
            s.capacity = Some(Some(1));
        })
        .await;
    for _ in 0..3 {
        f.enqueue(&q, task("x").keyed("k")).await;
        let held = f.claim_one(&q).await;
        f.end(&held, Outcome::Done).await;
        f.claim_none(&q).await;
        assert!(f.places(&q, "k").await.is_empty());
    }
    assert_eq!(f.list(TaskFilter::default()).await, [], "listed only when asked for");
    let done = TaskFilter { state: Some(State::Done), ..TaskFilter::default() };
    let done = f.list(done).await;
    assert_eq!(done.len(), 3);
    for action in Action::ALL {
        let answer = f.operate_one(action, done[0].id).await;
        assert_eq!(answer, OperationAnswer::WrongState(State::Done), "{action:?}");
    }
}

pub(super) async fn rule_11_failed_tasks_stay_for_ever_unless_set(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("x")).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Fail("never".to_owned())).await;
    let before = f.the(id).await;
    for _ in 0..3 {
        f.advance(secs(10 * YEAR));
        sweep(f).await;
    }
    assert_eq!(f.the(id).await, before);
    f.override_with(&q, |s| s.keep_failed = Some(Some(secs(60)))).await;
    assert_eq!(sweep(f).await.pruned_failed, 1);
    assert_eq!(f.get(id).await, None);
    assert_eq!(f.stats(&q).await.counters.discarded, 1, "and it is counted");
}

pub(super) async fn rule_11_a_failed_task_is_kept_as_long_as_its_queue_says(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.keep_failed = Some(Some(secs(60)))).await;
    f.enqueue(&q, task("x")).await;
    let held = f.claim_one(&q).await;
    f.advance(secs(50));
    f.end(&held, Outcome::Fail("never".to_owned())).await;
    f.advance(secs(59));
    assert_eq!(sweep(f).await.pruned_failed, 0, "since it failed");
    f.advance(secs(1));
    assert_eq!(sweep(f).await.pruned_failed, 1);
}

pub(super) async fn rule_11_tasks_of_a_paused_queue_wait(f: &mut Fixture) {
    let q = f.queue("q").await;
    let ids = f.enqueue_all(&q, plain(2)).await;
    f.pause(&q, true).await;
    f.advance(secs(YEAR));
    sweep(f).await;
    f.claim_none(&q).await;
    f.pause(&q, false).await;
    assert_eq!(f.claim_ids(&q, 10).await, ids);
}

pub(super) async fn rule_11_a_cancelled_pending_task_is_deleted_and_counted(f: &mut Fixture) {
    let q = f.queue("q").await;
    let ready = f.enqueue(&q, task("ready")).await;
    let delayed = f.enqueue(&q, task("delayed").delayed(60)).await;
    for id in [ready, delayed] {
        assert_eq!(f.operate_one(Action::Cancel, id).await, OperationAnswer::Moved);
        assert_eq!(f.get(id).await, None);
        assert_eq!(f.operate_one(Action::Cancel, id).await, OperationAnswer::Gone);
    }
    assert_eq!(f.stats(&q).await.counters.cancelled, 2);
}

pub(super) async fn rule_11_a_running_task_hears_of_its_cancel(f: &mut Fixture) {
    let q = f.queue("q").await;
    let ids = f.enqueue_all(&q, plain(3)).await;
    let held = f.claim_held(&q, 3).await;
    let asked = f.operate_one(Action::Cancel, ids[1]).await;
    assert_eq!(asked, OperationAnswer::CancelRequested);
    let shown = f.the(ids[1]).await;
    assert!(shown.cancel_requested);
    assert_eq!(shown.state, State::Processing, "its handler still runs");
    for _ in 0..2 {
        let answer = f.extend(held[0].token, secs(60)).await;
        let wanted = ExtendAnswer::Extended { cancelled: vec![ids[1]], lost: Vec::new() };
        assert_eq!(answer, wanted, "at every heartbeat until it is settled");
    }
    let answer = f.settle(&held[1], Outcome::Cancelled).await;
    let became = gristmill_core::Became::Cancelled;
    assert_eq!(answer, SettleAnswer::Recorded { became, follow_ups: Vec::new() });
    assert_eq!(f.get(ids[1]).await, None);
    assert_eq!(f.stats(&q).await.counters.cancelled, 1);
    let answer = f.extend(held[0].token, secs(60)).await;
    assert_eq!(answer, ExtendAnswer::Extended { cancelled: Vec::new(), lost: Vec::new() });
}

pub(super) async fn rule_11_a_cancel_outlives_an_attempt_that_would_come_back(f: &mut Fixture) {
    let q = f.queue("q").await;
    let at = gristmill_core::When::After(secs(5));
    let back = [
        Some(Outcome::Error("wrong".to_owned())),
        Some(Outcome::TimedOut(secs(900))),
        Some(Outcome::Retry { at, reason: None }),
        Some(Outcome::Release { at: None, started: true }),
        None,
    ];
    for outcome in back {
        f.enqueue(&q, task("x")).await;
        let held = f.claim_one(&q).await;
        f.operate(Action::Cancel, &[held.id]).await;
        match outcome {
            Some(outcome) => f.end(&held, outcome).await,
            None => {
                f.advance(secs(61));
                f.reclaim().await;
            }
        }
        assert_eq!(f.get(held.id).await, None);
    }
    assert_eq!(f.stats(&q).await.counters.cancelled, 5);
    // What succeeded before the cancel was heard of has succeeded.
    f.enqueue(&q, task("x")).await;
    let held = f.claim_one(&q).await;
    f.operate(Action::Cancel, &[held.id]).await;
    f.end(&held, Outcome::Done).await;
    let counters = f.stats(&q).await.counters;
    assert_eq!((counters.done, counters.cancelled), (1, 5));
}

pub(super) async fn rule_11_a_cancel_ends_with_the_run_it_was_meant_for(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.keep_done = Some(Some(secs(600)))).await;
    for outcome in [Outcome::Done, Outcome::Fail("never".to_owned())] {
        f.enqueue(&q, task("x")).await;
        let held = f.claim_one(&q).await;
        f.operate(Action::Cancel, &[held.id]).await;
        f.end(&held, outcome.clone()).await;
        let shown = f.the(held.id).await;
        assert!(!shown.cancel_requested, "{outcome:?}: there is no worker left to hear it");
    }
}
