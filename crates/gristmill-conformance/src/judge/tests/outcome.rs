//! What an end became, how attempts are counted, and what is given out.

use super::*;

#[test]
fn outcome() {
    let ended = |queue: &str, how, went| {
        let mut tale = running(queue);
        tale.settle(20, 1, "a", how, Some(recorded(went)));
        if went != Went::Done && went != Went::Cancelled {
            let back = tale.claim(900, queue, "b", vec![Given { attempt: 2, ..given(1, 2) }]);
            if went == Went::Failed {
                back.history.lines.truncate(back.history.lines.len() - 2);
                back.stands(1, queue, "failed");
            } else {
                back.done(910, 1, "b");
            }
        }
        tale
    };
    ended("plain", How::Retry, Went::Pending).is_sound();
    ended("plain", How::Retry, Went::Failed).breaks("outcome");
    ended("limited", How::Error, Went::Failed).is_sound();
    ended("plain", How::Error, Went::Failed).breaks("outcome");
    ended("plain", How::Fail, Went::Failed).is_sound();
    ended("plain", How::Fail, Went::Pending).breaks("outcome");
    ended("plain", How::Release, Went::Cancelled).breaks("outcome");
    ended("plain", How::Done, Went::Pending).breaks("outcome");
    // An operator wanted its end.
    let mut cancelled = ended("plain", How::Release, Went::Cancelled);
    cancelled.operate(5, "cancel", 1, Some("cancel_requested")).is_sound();
}

#[test]
fn attempts_are_counted() {
    let again = |how: Option<How>, attempt: u32| {
        let mut tale = running("plain");
        if let Some(how) = how {
            tale.settle(20, 1, "a", how, Some(recorded(Went::Pending)));
        }
        tale.claim(800, "plain", "b", vec![Given { attempt, ..given(1, 2) }]).done(810, 1, "b");
        tale
    };
    again(None, 2).is_sound();
    again(None, 1).breaks("attempts");
    again(Some(How::Release), 1).is_sound();
    again(Some(How::Release), 2).breaks("attempts");
    again(Some(How::Retry), 2).is_sound();
    again(Some(How::Retry), 1).breaks("attempts");
    // An operator's retry begins anew.
    again(None, 1).operate(5, "retry", 1, None).is_sound();
}

#[test]
fn other_task() {
    let mut tale = tale();
    tale.put(1, "plain", Wanted { priority: -1, ..wanted("p1") }, PutSaid::Enqueued(1));
    tale.claim(10, "plain", "a", vec![given(1, 1)]).done(20, 1, "a").breaks("other task");
    let mut keyless = super::tale();
    keyless.put(1, "plain", keyed("p1"), PutSaid::Enqueued(1));
    keyless.claim(10, "plain", "a", vec![given(1, 1)]).done(20, 1, "a").breaks("other task");
}

#[test]
fn a_delay_is_waited_out() {
    let delayed = |at: u64| {
        let mut tale = tale();
        tale.put(1, "plain", Wanted { delay_ms: 100, ..wanted("p1") }, PutSaid::Enqueued(1));
        tale.claim(at, "plain", "a", vec![given(1, 1)]).done(at + 5, 1, "a");
        tale
    };
    delayed(50).breaks("too early");
    delayed(110).is_sound();
}

#[test]
fn not_replaced() {
    let mut tale = tale();
    tale.put(1, "replace", keyed("p1"), PutSaid::Enqueued(1));
    tale.put(5, "replace", keyed("p2"), PutSaid::Duplicate(1));
    let key = Some("k".to_owned());
    tale.claim(10, "replace", "a", vec![Given { key, ..given(1, 1) }]).done(20, 1, "a");
    tale.breaks("not replaced");
}
