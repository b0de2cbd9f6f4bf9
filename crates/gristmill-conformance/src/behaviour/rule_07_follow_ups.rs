//! Rule 7, follow-ups: a task is done together with everything that follows
//! from it, or it is not done.

use gristmill_core::{
    Action, AttemptEnd, Became, FollowUp, NewTask, OnDuplicate, Outcome, PutAnswer, Refusal,
    SettleAnswer, Settlement, State, When,
};

use crate::fixture::Fixture;
use crate::handle::Held;
use crate::shape::{Shape, name, plain, secs, task};

const TO_NOBODY: &str = "the follow-up to 'nobody' was refused: there is no queue 'nobody'";

/// A settlement with follow-ups on several queues.
fn settlement(held: &Held, outcome: Outcome, follow_ups: Vec<(&str, NewTask)>) -> Settlement {
    let follow_up = |(queue, task)| FollowUp { queue: name(queue), task };
    Settlement {
        follow_ups: follow_ups.into_iter().map(follow_up).collect(),
        ..Settlement::new(held.id, held.token, outcome)
    }
}

fn undone(because: usize) -> PutAnswer {
    PutAnswer::Refused(Refusal::Undone { because })
}

fn to_nobody() -> PutAnswer {
    let name = "nobody".to_owned();
    PutAnswer::Refused(Refusal::UnknownQueue { name, suggestion: None })
}

pub(super) async fn rule_07_a_refused_follow_up_makes_done_an_error(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.keep_done = Some(Some(secs(60)))).await;
    f.enqueue(&q, task("x").keyed("k")).await;
    let held = f.claim_one(&q).await;
    let done = |held| settlement(held, Outcome::Done, vec![("nobody", task("next"))]);
    let answer = f.settle_full(done(&held)).await;
    let SettleAnswer::Recorded { became: Became::Pending { run_at }, follow_ups } = answer else {
        panic!("an error goes back: {answer:?}")
    };
    assert_eq!(follow_ups, [to_nobody()], "the reason is told");
    let back = f.the(held.id).await;
    assert_eq!((back.state, back.attempts, back.run_at), (State::Pending, 1, run_at));
    assert_eq!(back.error.as_deref(), Some(TO_NOBODY));
    let last = &back.history[0];
    assert_eq!((last.end, last.error.as_deref()), (AttemptEnd::Error, Some(TO_NOBODY)));
    let stats = f.stats(&q).await;
    assert_eq!((stats.counters.done, stats.counters.retried, stats.done_kept), (0, 1, 0));
    assert_eq!(f.settle_full(done(&held)).await, SettleAnswer::AlreadyRecorded);

    // Somebody declares the queue, and the next attempt brings both about.
    let nobody = f.queue("nobody").await;
    f.advance(secs(3600));
    let again = f.claim_one(&q).await;
    assert_eq!((again.id, again.task.attempt), (held.id, 2));
    let answer = f.settle_full(done(&again)).await;
    assert!(matches!(answer, SettleAnswer::Recorded { became: Became::Done, .. }), "{answer:?}");
    assert_eq!(f.stats(&nobody).await.ready, 1);
}

pub(super) async fn rule_07_a_follow_up_that_stays_refused_ends_in_failed(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.max_attempts = Some(Some(2))).await;
    let id = f.enqueue(&q, task("x")).await;
    for became in ["pending", "failed"] {
        f.advance(secs(3600));
        let held = f.claim_one(&q).await;
        f.settle_full(settlement(&held, Outcome::Done, vec![("nobody", task("next"))])).await;
        assert_eq!(f.the(id).await.state.as_str(), became);
    }
    let failed = f.the(id).await;
    assert_eq!(failed.error.as_deref(), Some(TO_NOBODY), "found where people look");
    assert_eq!(failed.history.len(), 2);
}

pub(super) async fn rule_07_a_follow_up_that_can_never_stand_makes_done_a_fail(f: &mut Fixture) {
    f.limit(|limits| limits.payload_bytes = 10).await;
    let (q, next) = (f.queue("q").await, f.queue("next").await);
    let first = f.enqueue(&next, task("first").with_id("used")).await;
    let long = task("eleven byte");
    let same_id =
        vec![("next", task("one").with_id("mine")), ("next", task("other").with_id("mine"))];
    let never = [
        (vec![("next", long.clone())], "the payload has 11 bytes and 10 are allowed".to_owned()),
        (vec![("next", task("x").keyed(""))], "the key is empty".to_owned()),
        (
            vec![("next", task("x").with_id("used"))],
            format!("this id was used for task {first} with another payload"),
        ),
        (same_id, "the id 'mine' is another follow-up's with another payload".to_owned()),
        // What can never stand is told before what may be cured.
        (
            vec![("nobody", task("x")), ("next", long)],
            "the payload has 11 bytes and 10 are allowed".to_owned(),
        ),
    ];
    for (n, (follow_ups, why)) in never.into_iter().enumerate() {
        let id = f.enqueue(&q, task("x")).await;
        let held = f.claim_one(&q).await;
        let answer = f.settle_full(settlement(&held, Outcome::Done, follow_ups)).await;
        let SettleAnswer::Recorded { became: Became::Failed, .. } = answer else {
            panic!("case {n}: no repeating cures it: {answer:?}")
        };
        let failed = f.the(id).await;
        let said = format!("the follow-up to 'next' was refused: {why}");
        assert_eq!((failed.state, failed.attempts), (State::Failed, 1), "case {n}");
        assert_eq!(failed.error.as_deref(), Some(said.as_str()), "case {n}");
        assert_eq!(failed.history[0].end, AttemptEnd::Fail, "case {n}");
        assert_eq!(failed.history[0].error.as_deref(), Some(said.as_str()), "case {n}");
    }
    assert_eq!(f.stats(&next).await.total(), 1, "nothing was put");
    assert_eq!(f.stats(&next).await.counters.put, 1);
    // The ids of what was taken back are free.
    f.enqueue(&next, task("third").with_id("mine")).await;
}

pub(super) async fn rule_07_a_refused_follow_up_takes_back_only_its_own_tasks(f: &mut Fixture) {
    let q = f.queue("q").await;
    let next = f.queue_with("next", |s| s.on_duplicate = Some(OnDuplicate::Replace)).await;
    let standing = f.enqueue(&next, task("old").keyed("k").at_priority(3)).await;
    let old = f.the(standing).await;
    f.enqueue_all(&q, plain(4)).await;
    let held = f.claim_held(&q, 4).await;
    let settlements = vec![
        settlement(&held[0], Outcome::Done, vec![("next", task("a"))]),
        settlement(
            &held[1],
            Outcome::Done,
            vec![
                ("next", task("b").with_id("mine").keyed("b")),
                ("next", task("new").keyed("k").at_priority(1)),
                ("nobody", task("c")),
                ("next", task("d")),
            ],
        ),
        settlement(&held[2], Outcome::Done, Vec::new()),
        settlement(&held[3], Outcome::Done, vec![("next", task("e")), ("q", task("f"))]),
    ];
    let answers = f.store.settle(settlements).await.expect("settlements");
    let became = |n: usize| match &answers[n] {
        SettleAnswer::Recorded { became, .. } => *became,
        other => panic!("recorded: {other:?}"),
    };
    assert_eq!((became(0), became(2), became(3)), (Became::Done, Became::Done, Became::Done));
    assert!(matches!(became(1), Became::Pending { .. }), "{answers:?}");
    let SettleAnswer::Recorded { follow_ups, .. } = &answers[1] else { unreachable!() };
    assert_eq!(follow_ups, &[undone(2), undone(2), to_nobody(), undone(2)]);
    let mut stand: Vec<String> = Vec::new();
    for shown in f.all().await.into_iter().filter(|shown| shown.queue == next) {
        stand.push(String::from_utf8_lossy(&shown.payload.bytes).into_owned());
    }
    assert_eq!(stand, ["old", "a", "e"]);
    assert_eq!(f.the(standing).await, old, "what it would have replaced is as before");
    let counters = f.stats(&next).await.counters;
    assert_eq!((counters.put, counters.replaced, counters.refused), (3, 0, 3));
    // Its key and its id are as free as before.
    f.enqueue(&next, task("other").keyed("b").with_id("mine")).await;
}

pub(super) async fn rule_07_a_refused_follow_up_leaves_other_outcomes_as_they_are(f: &mut Fixture) {
    let (q, next) = (f.queue("q").await, f.queue("next").await);
    let at = When::After(secs(5));
    let stays = [
        (Outcome::Error("wrong".to_owned()), "pending", Some("wrong; ")),
        (Outcome::TimedOut(secs(9)), "pending", Some("timed out after 9s; ")),
        (Outcome::Retry { at, reason: Some("later".to_owned()) }, "pending", Some("later; ")),
        (Outcome::Retry { at, reason: None }, "pending", Some("")),
        (Outcome::Release { at: Some(at), started: true }, "pending", Some("")),
        (Outcome::Fail("never".to_owned()), "failed", Some("never; ")),
        (Outcome::Cancelled, "gone", None),
    ];
    for (outcome, stands, said) in stays {
        let id = f.enqueue(&q, task("x")).await;
        let held = f.claim_one(&q).await;
        let follow_ups = vec![("next", task("a")), ("nobody", task("b"))];
        let answer = f.settle_full(settlement(&held, outcome.clone(), follow_ups)).await;
        let SettleAnswer::Recorded { follow_ups, .. } = answer else { panic!("{answer:?}") };
        assert_eq!(follow_ups, [undone(1), to_nobody()], "{outcome:?}");
        let shown = f.get(id).await;
        assert_eq!(shown.as_ref().map_or("gone", |task| task.state.as_str()), stands);
        if let (Some(shown), Some(said)) = (shown, said) {
            let said = format!("{said}{TO_NOBODY}");
            assert_eq!(shown.error.as_deref(), Some(said.as_str()), "{outcome:?}");
            assert_eq!(shown.history[0].end, outcome.end());
            assert_eq!(shown.history[0].error.as_deref(), Some(said.as_str()), "{outcome:?}");
        }
    }
    assert_eq!(f.stats(&next).await.total(), 0);

    // An operator's cancel outlives an attempt that would have come back.
    let id = f.enqueue(&q, task("x")).await;
    let held = f.claim_one(&q).await;
    f.operate(Action::Cancel, &[id]).await;
    let answer = f.settle_full(settlement(&held, Outcome::Done, vec![("nobody", task("b"))])).await;
    let SettleAnswer::Recorded { became, .. } = answer else { panic!("{answer:?}") };
    assert_eq!((became, f.get(id).await), (Became::Cancelled, None));
}

pub(super) async fn rule_07_a_duplicate_follow_up_is_no_refusal(f: &mut Fixture) {
    let (q, next) = (f.queue("q").await, f.queue("next").await);
    let by_key = f.enqueue(&next, task("standing").keyed("k")).await;
    let by_id = f.enqueue(&next, task("x").with_id("used")).await;
    f.enqueue(&q, task("x")).await;
    let held = f.claim_one(&q).await;
    let follow_ups = vec![
        ("next", task("y").keyed("k")),
        ("next", task("x").with_id("used")),
        ("next", task("z").with_id("mine")),
        ("next", task("z").with_id("mine")),
    ];
    let answer = f.settle_full(settlement(&held, Outcome::Done, follow_ups)).await;
    let SettleAnswer::Recorded { became: Became::Done, follow_ups } = answer else {
        panic!("it is done: {answer:?}")
    };
    let ids: Vec<_> = follow_ups.iter().map(PutAnswer::id).collect();
    assert_eq!(ids[..2], [Some(by_key), Some(by_id)]);
    assert!(follow_ups[2].is_enqueued() && ids[2] == ids[3], "{follow_ups:?}");
    assert!(!follow_ups[3].is_enqueued(), "{follow_ups:?}");
}
