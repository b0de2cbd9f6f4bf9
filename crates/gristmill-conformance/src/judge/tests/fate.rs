//! Nothing is lost, nothing comes back, nothing stands that nobody put.

use super::*;

#[test]
fn lost() {
    tale().puts(1, "plain", 1).breaks("lost");
    running("plain").breaks("lost");
    // Released: it is back, so it cannot be gone.
    let mut released = running("plain");
    released.settle(20, 1, "a", How::Release, Some(recorded(Went::Pending))).breaks("lost");
    // A settlement without an answer may have happened.
    running("plain").settle(20, 1, "a", How::Done, None).is_sound();
    // An operator took it out, or may have.
    tale().puts(1, "plain", 1).operate(9, "cancel", 1, Some("moved")).is_sound();
    tale().puts(1, "plain", 1).operate(9, "cancel", 1, None).is_sound();
    tale().puts(1, "plain", 1).operate(9, "cancel", 1, Some("wrong_state")).breaks("lost");
    // A put without an answer promised nothing.
    tale().put_all(1, "plain", vec![wanted("p1")], None).is_sound();
    // A duplicate names a task that stands.
    tale().put(1, "plain", keyed("x"), PutSaid::Duplicate(7)).breaks("lost");
}

#[test]
fn a_repeated_claim_number_after_a_server_crash_is_no_loss() {
    // Claims that did not wait for the disk are made again; settlements are told by
    // their token, not by that number.
    let mut tale = running("plain");
    tale.settle(20, 1, "a", How::Done, None)
        .fault(30, FaultKind::ServerKill)
        .claim(40, "plain", "b", vec![given(1, 1)])
        .done(50, 1, "b")
        .is_sound();
}

#[test]
fn came_back() {
    running("plain").done(20, 1, "a").stands(1, "plain", "pending").breaks("came back");
    let mut again = running("plain");
    again.done(20, 1, "a").claim(30, "plain", "b", vec![given(1, 2)]).breaks("came back");
    let mut cancelled = tale();
    cancelled.puts(1, "plain", 1).operate(5, "cancel", 1, Some("moved"));
    cancelled.claim(30, "plain", "b", vec![given(1, 1)]).done(40, 1, "b").breaks("came back");
}

#[test]
fn failed_is_kept() {
    let failed = || {
        let mut tale = running("plain");
        tale.settle(20, 1, "a", How::Fail, Some(recorded(Went::Failed)));
        tale
    };
    failed().stands(1, "plain", "failed").is_sound();
    failed().stands(1, "plain", "pending").breaks("failed is kept");
    failed().breaks("lost");
    failed().operate(30, "discard", 1, Some("moved")).is_sound();
    running("plain").stands(1, "plain", "failed").breaks("failed by nobody");
    running("limited").stands(1, "limited", "failed").is_sound();
}

#[test]
fn strangers_and_twins() {
    tale().stands(1, "plain", "failed").breaks("stranger");
    let mut twins = running("plain");
    twins.claim(12, "plain", "b", vec![Given { payload: "p1".to_owned(), ..given(2, 1) }]);
    twins.done(20, 1, "a").done(21, 2, "b").breaks("twins");
    let mut other = tale();
    other.puts(1, "plain", 1).puts(2, "plain", 2);
    other.claim(10, "plain", "a", vec![Given { payload: "p2".to_owned(), ..given(1, 1) }]);
    other.done(20, 1, "a").breaks("other payload");
}

#[test]
fn refused_and_stands() {
    let refused = |said: Option<Answer>| {
        let mut tale = tale();
        let call = Call::Put {
            queue: "plain".to_owned(),
            tasks: vec![wanted("p1")],
            atomic: false,
            transaction: None,
        };
        tale.says(1, call, said.map(|said| (2, said)));
        tale.claim(10, "plain", "a", vec![given(1, 1)]).done(20, 1, "a");
        tale
    };
    let full = Answer::Put(vec![PutSaid::Refused("queue_full".to_owned())]);
    refused(Some(full)).breaks("refused and stands");
    let error = |unknown| Answer::Error { unknown, words: String::new() };
    refused(Some(error(false))).breaks("refused and stands");
    refused(Some(error(true))).is_sound();
    refused(None).is_sound();
    // A duplicate does not stand, but where it is put again by itself.
    let mut duplicate = tale();
    duplicate.put(1, "plain", keyed("p1"), PutSaid::Enqueued(1));
    let key = |task| Given { key: Some("k".to_owned()), ..given(task, 1) };
    duplicate.put(10, "plain", keyed("p2"), PutSaid::Duplicate(1));
    duplicate.claim(20, "plain", "a", vec![key(1)]).done(30, 1, "a");
    duplicate.claim(50, "plain", "b", vec![key(2)]).done(60, 2, "b").is_sound();
    assert_eq!(duplicate.verdict().tally.put_again, 1);
    let elsewhere = Plan { store: "sqlite".to_owned(), ..plan() };
    let verdict = judge(&duplicate.history, &elsewhere, &duplicate.standing);
    assert!(verdict.counted.contains_key("refused and stands"), "{verdict:?}");
}
