//! Rule 10, time: the store's clock decides, to the microsecond, and a jump of
//! the wall clock takes nobody's lease.

use std::time::Duration;

use gristmill_core::{NewTask, Outcome, Start, State, Timestamp};

use crate::fixture::Fixture;
use crate::shape::{Shape, secs, task};

pub(super) async fn rule_10_a_task_is_claimable_from_its_instant_on(f: &mut Fixture) {
    let q = f.queue("q").await;
    let run_at = f.now().after(secs(10));
    let at = f.enqueue(&q, NewTask { start: Start::At(run_at), ..task("at") }).await;
    let after = f.enqueue(&q, task("after").delayed(10)).await;
    f.advance(secs(10) - Duration::from_micros(1));
    f.claim_none(&q).await;
    f.advance(Duration::from_micros(1));
    assert_eq!(f.claim_ids(&q, 10).await, [at, after]);
}

pub(super) async fn rule_10_nothing_runs_before_its_time_whatever_the_priority(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue(&q, task("urgent").at_priority(i16::MIN).delayed(1)).await;
    f.enqueue(&q, task("keyed").keyed("k").delayed(1)).await;
    f.enqueue(&q, task("of a source").of_source("s").delayed(1)).await;
    f.claim_none(&q).await;
    let mut request = f.request(&q, 10);
    request.source = Some("s".to_owned());
    assert!(f.take(request).await.tasks.is_empty());
}

pub(super) async fn rule_10_an_empty_claim_says_when_to_look_again(f: &mut Fixture) {
    let q = f.queue("q").await;
    assert_eq!(f.claim(&q, 1).await.next_due, None);
    f.enqueue(&q, task("later").delayed(90)).await;
    f.enqueue(&q, task("sooner").delayed(40).at_priority(7)).await;
    f.advance(secs(10));
    assert_eq!(f.claim(&q, 1).await.next_due, Some(secs(30)), "a duration");
}

pub(super) async fn rule_10_the_far_future_does_not_wrap_into_the_past(f: &mut Fixture) {
    let q = f.queue("q").await;
    let never = [
        Start::After(Duration::MAX),
        Start::At(Timestamp::MAX),
        Start::At(Timestamp::from_micros(i64::MAX)),
    ];
    for start in never {
        let id = f.enqueue(&q, NewTask { start, ..task("never") }).await;
        assert_eq!(f.the(id).await.run_at, Timestamp::MAX, "{start:?}");
    }
    f.advance(secs(365 * 24 * 3600));
    f.claim_none(&q).await;
    // And the distant past is simply due.
    let start = Start::At(Timestamp::from_micros(i64::MIN));
    let id = f.enqueue(&q, NewTask { start, ..task("old") }).await;
    assert_eq!(f.the(id).await.run_at, Timestamp::EPOCH);
    assert_eq!(f.claim_one(&q).await.id, id);
}

pub(super) async fn rule_10_every_instant_is_the_stores(f: &mut Fixture) {
    let q = f.queue("q").await;
    let put = f.now();
    let id = f.enqueue(&q, task("x")).await;
    f.advance(secs(5));
    let claimed = f.now();
    let claim = f.claim(&q, 1).await;
    assert_eq!(claim.lease, secs(60), "a duration, for the worker's clock may be wrong");
    assert_eq!(f.the(id).await.lease.map(|lease| lease.until), Some(claimed.after(secs(60))));
    f.advance(secs(7));
    f.settle_as(id, claim.token, Outcome::Fail("never".to_owned())).await;
    let shown = f.the(id).await;
    assert_eq!((shown.created_at, shown.run_at), (put, put));
    assert_eq!((shown.claimed_at, shown.failed_at), (Some(claimed), Some(f.now())));
    assert_eq!(shown.history[0].claimed_at, claimed);
    assert_eq!(shown.history[0].ended_at, f.now());
}

pub(super) async fn rule_10_a_jump_of_the_wall_clock_takes_no_lease_at_once(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("x")).await;
    let held = f.claim_one(&q).await;
    // An hour forward without any time passing: the holder is alive and will
    // say so within a heartbeat.
    f.clock.set_wall(f.now().after(secs(3600)));
    assert_eq!(f.reclaim().await, 0);
    f.claim_none(&q).await;
    f.advance(secs(19));
    assert_eq!(f.store.sweep().await.expect("a sweep").reclaimed, 0);
    f.extend(held.token, secs(60)).await;
    f.advance(secs(30));
    assert_eq!(f.reclaim().await, 0, "it was extended in time");
    f.advance(secs(31));
    assert_eq!(f.reclaim().await, 1, "and then not any more");
    assert_eq!(f.the(id).await.state, State::Pending);
}

pub(super) async fn rule_10_a_lost_worker_is_found_one_heartbeat_after_a_jump(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue(&q, task("x")).await;
    f.claim_one(&q).await;
    f.clock.set_wall(f.now().after(secs(3600)));
    assert_eq!(f.reclaim().await, 0);
    f.advance(secs(20));
    assert_eq!(f.reclaim().await, 1);
}

pub(super) async fn rule_10_a_jump_back_leaves_leases_and_tasks_as_they_are(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue(&q, task("x")).await;
    let held = f.claim_one(&q).await;
    let late = f.enqueue(&q, task("y").delayed(5)).await;
    f.clock.set_wall(f.now().before(secs(3600)));
    f.claim_none(&q).await;
    assert_eq!(f.reclaim().await, 0);
    f.end(&held, Outcome::Done).await;
    f.advance(secs(3605));
    assert_eq!(f.claim_one(&q).await.id, late);
}
