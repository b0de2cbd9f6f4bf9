//! Rule 3, fenced: every outcome under a token that is not the task's current
//! one is refused, and nothing changes.

use gristmill_core::{ExtendAnswer, Outcome, SettleAnswer, When};

use crate::fixture::Fixture;
use crate::handle::Held;
use crate::shape::{Shape, plain, secs, task};

/// Settles with tokens that were never, are not yet, or are no longer the
/// task's own, and compares everything before and after.
async fn refuses(f: &mut Fixture, outcome: Outcome) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a").keyed("k")).await;
    f.enqueue(&q, task("another")).await;

    // Nobody claimed it yet.
    lost(f, id, f.token(), &outcome).await;
    let first = f.claim_one(&q).await;
    assert_eq!(first.id, id);
    let other = f.claim_one(&q).await;

    // It is another's, with a token that is valid for other tasks or for none.
    lost(f, id, other.token, &outcome).await;
    lost(f, id, f.token(), &outcome).await;

    // It was taken back: pending again.
    f.advance(secs(61));
    f.reclaim().await;
    lost(f, id, first.token, &outcome).await;

    // It has a new holder.
    let second = f.claim_one(&q).await;
    assert_eq!(second.id, id);
    lost(f, id, first.token, &outcome).await;

    // The holder is not disturbed by any of that.
    f.end(&second, Outcome::Done).await;
    let gone = f.settle_as(id, first.token, outcome).await;
    assert_eq!(gone, SettleAnswer::Gone);
}

async fn lost(
    f: &Fixture,
    id: gristmill_core::TaskId,
    token: gristmill_core::Token,
    outcome: &Outcome,
) {
    let before = f.all().await;
    let answer = f.settle_as(id, token, outcome.clone()).await;
    assert_eq!(answer, SettleAnswer::LeaseLost, "{outcome:?} with a wrong token");
    assert_eq!(f.all().await, before, "{outcome:?} changed something");
}

pub(super) async fn rule_03_a_stale_done_is_refused(f: &mut Fixture) {
    refuses(f, Outcome::Done).await;
}

pub(super) async fn rule_03_a_stale_error_is_refused(f: &mut Fixture) {
    refuses(f, Outcome::Error("late".to_owned())).await;
}

pub(super) async fn rule_03_a_stale_timeout_is_refused(f: &mut Fixture) {
    refuses(f, Outcome::TimedOut(secs(900))).await;
}

pub(super) async fn rule_03_a_stale_retry_is_refused(f: &mut Fixture) {
    refuses(f, Outcome::Retry { at: When::After(secs(5)), reason: None }).await;
}

pub(super) async fn rule_03_a_stale_fail_is_refused(f: &mut Fixture) {
    refuses(f, Outcome::Fail("late".to_owned())).await;
}

pub(super) async fn rule_03_a_stale_release_is_refused(f: &mut Fixture) {
    refuses(f, Outcome::Release { at: None, started: true }).await;
    f.renew().await;
    refuses(f, Outcome::Release { at: Some(When::After(secs(5))), started: false }).await;
}

pub(super) async fn rule_03_a_stale_cancelled_is_refused(f: &mut Fixture) {
    refuses(f, Outcome::Cancelled).await;
}

pub(super) async fn rule_03_a_stale_extension_is_refused(f: &mut Fixture) {
    let f = &*f;
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    let stale = |token| async move {
        let before = f.all().await;
        assert_eq!(f.extend(token, secs(600)).await, ExtendAnswer::LeaseLost);
        assert_eq!(f.all().await, before, "a stale extension changed something");
    };
    stale(f.token()).await;
    let first = f.claim_one(&q).await;
    stale(f.token()).await;
    f.advance(secs(61));
    f.reclaim().await;
    stale(first.token).await;
    let second = f.claim_one(&q).await;
    assert_eq!(second.id, id);
    stale(first.token).await;
    f.end(&second, Outcome::Done).await;
    stale(second.token).await;
}

pub(super) async fn rule_03_a_refused_settlement_puts_no_follow_ups(f: &mut Fixture) {
    let (q, next) = (f.queue("q").await, f.queue("next").await);
    f.enqueue(&q, task("a")).await;
    let first = f.claim_one(&q).await;
    f.advance(secs(61));
    let second = f.claim_one(&q).await;
    let late = f.settle_then(&first, Outcome::Done, &next, plain(2)).await;
    assert_eq!(late, SettleAnswer::LeaseLost);
    assert_eq!(f.stats(&next).await.total(), 0);
    f.end(&second, Outcome::Done).await;
    let gone = f.settle_then(&second, Outcome::Done, &next, plain(2)).await;
    assert_eq!(gone, SettleAnswer::Gone);
    assert_eq!(f.stats(&next).await.total(), 0);
}

/// Every outcome after which the task's row is still there.
fn staying() -> Vec<Outcome> {
    let at = When::After(secs(5));
    vec![
        Outcome::Error("wrong".to_owned()),
        Outcome::TimedOut(secs(900)),
        Outcome::Retry { at, reason: Some("later".to_owned()) },
        Outcome::Release { at: None, started: true },
        Outcome::Release { at: Some(at), started: false },
        Outcome::Fail("never".to_owned()),
    ]
}

pub(super) async fn rule_03_a_repeated_settlement_is_already_recorded(f: &mut Fixture) {
    let (q, next) = (f.queue("q").await, f.queue("next").await);
    for outcome in staying() {
        f.enqueue(&q, task("a")).await;
        let held = f.claim_one(&q).await;
        f.settle_then(&held, outcome.clone(), &next, plain(1)).await;
        let before = (f.all().await, f.stats(&q).await);
        let again = f.settle_then(&held, outcome.clone(), &next, plain(1)).await;
        assert_eq!(again, SettleAnswer::AlreadyRecorded, "{outcome:?}");
        assert_eq!((f.all().await, f.stats(&q).await), before, "{outcome:?} twice");
        // The same token with another outcome cannot change what is recorded.
        for other in [Outcome::Done, Outcome::Fail("no".to_owned())] {
            let answer = f.settle(&held, other).await;
            assert_eq!(answer, SettleAnswer::AlreadyRecorded, "{outcome:?}");
        }
        assert_eq!((f.all().await, f.stats(&q).await), before, "{outcome:?} first");
        f.operate(gristmill_core::Action::Cancel, &[held.id]).await;
    }
}

pub(super) async fn rule_03_a_repeat_after_the_task_is_gone_answers_gone(f: &mut Fixture) {
    let q = f.queue("q").await;
    for outcome in [Outcome::Done, Outcome::Cancelled] {
        f.enqueue(&q, task("a")).await;
        let held = f.claim_one(&q).await;
        f.end(&held, outcome.clone()).await;
        let before = f.stats(&q).await;
        for again in [outcome, Outcome::Error("late".to_owned())] {
            assert_eq!(f.settle(&held, again).await, SettleAnswer::Gone);
        }
        assert_eq!(f.stats(&q).await, before);
    }
}

pub(super) async fn rule_03_a_task_that_never_was_is_gone(f: &mut Fixture) {
    let never = gristmill_core::TaskId(4_711);
    let answer = f.settle_as(never, f.token(), Outcome::Done).await;
    assert_eq!(answer, SettleAnswer::Gone);
}

pub(super) async fn rule_03_a_kept_done_task_answers_already_recorded(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.keep_done = Some(Some(secs(3600)))).await;
    f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Done).await;
    let before = f.the(held.id).await;
    assert_eq!(f.settle(&held, Outcome::Done).await, SettleAnswer::AlreadyRecorded);
    let stale = f.settle_as(held.id, f.token(), Outcome::Done).await;
    assert_eq!(stale, SettleAnswer::LeaseLost);
    assert_eq!(f.the(held.id).await, before);
}

pub(super) async fn rule_03_a_late_settlement_holds_while_nobody_took_the_task(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    f.advance(secs(3600));
    f.end(&held, Outcome::Done).await;
    assert_eq!(f.reclaim().await, 0, "there is nothing left to take back");
}

pub(super) async fn rule_03_a_stale_token_does_not_undo_its_neighbours(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue_all(&q, plain(3)).await;
    let held = f.claim_held(&q, 3).await;
    let settle =
        |held: &Held, token| gristmill_core::Settlement::new(held.id, token, Outcome::Done);
    let mixed = vec![
        settle(&held[0], held[0].token),
        settle(&held[1], f.token()),
        settle(&held[0], held[0].token),
        settle(&held[2], held[2].token),
    ];
    let answers = f.store.settle(mixed).await.expect("settlements");
    assert!(answers[0].is_recorded() && answers[3].is_recorded(), "{answers:?}");
    assert_eq!(answers[1..3], [SettleAnswer::LeaseLost, SettleAnswer::Gone]);
    let left: Vec<_> = f.all().await.iter().map(|task| task.id).collect();
    assert_eq!(left, [held[1].id]);
}

pub(super) async fn rule_03_of_many_that_settle_one_is_recorded(f: &mut Fixture) {
    let (q, next) = (f.queue("q").await, f.queue("next").await);
    let handles = f.handles().await;
    for round in 0..10 {
        f.enqueue(&q, task("a")).await;
        let held = f.claim_one(&q).await;
        let mut racing = Vec::new();
        for n in 0..16 {
            let (handle, held, next) =
                (handles[n % handles.len()].clone(), held.clone(), next.clone());
            racing.push(tokio::spawn(async move {
                handle.settle_then(&held, Outcome::Done, &next, plain(1)).await
            }));
        }
        let mut recorded = 0;
        for answer in racing {
            recorded += usize::from(answer.await.expect("an answer").is_recorded());
        }
        assert_eq!(recorded, 1);
        assert_eq!(f.stats(&next).await.total(), round + 1, "its follow-up once");
    }
}

pub(super) async fn rule_03_a_settlement_that_races_a_reclaim_has_one_winner(f: &mut Fixture) {
    let q = f.queue("q").await;
    let handles = f.handles().await;
    for _ in 0..20 {
        f.enqueue(&q, task("a")).await;
        let held = f.claim_one(&q).await;
        f.advance(secs(61));
        let (one, two) = (handles[0].clone(), handles[handles.len() - 1].clone());
        let mine = held.clone();
        let settling = tokio::spawn(async move { one.settle(&mine, Outcome::Done).await });
        let reclaiming = tokio::spawn(async move { two.reclaim().await });
        let (answer, back) = (settling.await.expect("a"), reclaiming.await.expect("b"));
        assert_eq!(answer.is_recorded(), back == 0, "{answer:?}, {back} taken back");
        assert_eq!(f.get(held.id).await.is_none(), back == 0);
        f.operate(gristmill_core::Action::Cancel, &[held.id]).await;
    }
}

pub(super) async fn rule_03_lost_leases_are_counted(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    f.claim_one(&q).await;
    for _ in 0..3 {
        f.settle_as(id, f.token(), Outcome::Done).await;
    }
    assert_eq!(f.stats(&q).await.counters.lease_lost, 3);
}
