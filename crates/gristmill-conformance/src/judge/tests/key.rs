//! Keys, duplicates and callers' ids.

use super::*;

#[test]
fn keys() {
    let key = |task, claims| Given { key: Some("k".to_owned()), ..given(task, claims) };
    let two = |at: u64| {
        let mut tale = tale();
        tale.put(1, "plain", keyed("p1"), PutSaid::Enqueued(1));
        tale.claim(10, "plain", "a", vec![key(1, 1)]);
        tale.put(15, "plain", keyed("p2"), PutSaid::Enqueued(2));
        tale.claim(at, "plain", "b", vec![key(2, 1)]).done(at + 5, 2, "b");
        tale
    };
    two(20).done(50, 1, "a").breaks("two of a key");
    two(60).done(50, 1, "a").is_sound();
    // In flight also while it is back for another run.
    let mut back = two(60);
    back.settle(50, 1, "a", How::Retry, Some(recorded(Went::Pending)));
    back.stands(1, "plain", "failed").breaks("two of a key");

    let put_twice = |queue: &str, claimed: u64, second: u64| {
        let mut tale = tale();
        tale.put(1, queue, keyed("p1"), PutSaid::Enqueued(1));
        tale.claim(claimed, queue, "a", vec![key(1, 1)]).done(90, 1, "a");
        tale.put(second, queue, keyed("p2"), PutSaid::Enqueued(2));
        tale.claim(200, queue, "b", vec![key(2, 1)]).done(210, 2, "b");
        tale
    };
    put_twice("plain", 20, 10).breaks("key taken twice");
    put_twice("plain", 20, 30).is_sound();
    put_twice("active", 20, 30).breaks("key taken twice");
    put_twice("active", 20, 100).is_sound();
}

#[test]
fn false_duplicate() {
    let key = |task, claims| Given { key: Some("k".to_owned()), ..given(task, claims) };
    let duplicate = |queue: &str, at: u64| {
        let mut tale = tale();
        tale.put(1, queue, keyed("p1"), PutSaid::Enqueued(1));
        tale.claim(20, queue, "a", vec![key(1, 1)]).done(90, 1, "a");
        tale.put(at, queue, keyed("p2"), PutSaid::Duplicate(1));
        tale
    };
    duplicate("plain", 10).is_sound();
    duplicate("plain", 30).breaks("false duplicate");
    duplicate("active", 30).is_sound();
    duplicate("active", 100).breaks("false duplicate");
    // An operator may have brought it back.
    duplicate("plain", 30).operate(25, "retry", 1, None).is_sound();
    let mut other = running("plain");
    other.put(5, "plain", keyed("p2"), PutSaid::Duplicate(1)).done(20, 1, "a");
    other.breaks("false duplicate");
}

#[test]
fn replaced_in_vain() {
    let replaced = |payload: &str| {
        let mut tale = tale();
        tale.put(1, "replace", keyed("p1"), PutSaid::Enqueued(1));
        tale.put(5, "replace", keyed("new"), PutSaid::Replaced(1));
        let key = Some("k".to_owned());
        let run = Given { payload: payload.to_owned(), key, ..given(1, 1) };
        tale.claim(10, "replace", "a", vec![run]).done(20, 1, "a");
        tale
    };
    replaced("new").is_sound();
    replaced("p1").breaks("replaced in vain");
}

#[test]
fn ids() {
    let with_id = |payload: &str| Wanted { id: Some("x".to_owned()), ..wanted(payload) };
    let repeated = |second: PutSaid| {
        let mut tale = tale();
        tale.put(1, "plain", with_id("p1"), PutSaid::Enqueued(1));
        tale.put(5, "plain", with_id("p1"), second);
        tale.claim(10, "plain", "a", vec![given(1, 1)]).done(20, 1, "a");
        tale
    };
    repeated(PutSaid::Duplicate(1)).is_sound();
    repeated(PutSaid::Duplicate(2)).breaks("ids");
    repeated(PutSaid::Enqueued(2)).breaks("ids");
}

#[test]
fn no_run_follows() {
    let key = |task, claims| Given { key: Some("k".to_owned()), ..given(task, claims) };
    let committed = |at: u64| {
        let mut tale = tale();
        tale.put(1, "plain", keyed("p1"), PutSaid::Enqueued(1));
        let call = Call::Put {
            queue: "plain".to_owned(),
            tasks: vec![keyed("p2")],
            atomic: false,
            transaction: Some(1),
        };
        tale.says(5, call, Some((6, Answer::Put(vec![PutSaid::Duplicate(1)]))));
        tale.claim(10, "plain", "a", vec![key(1, 1)]).done(20, 1, "a");
        tale.says(at, Call::Commit { transaction: 1 }, Some((at + 1, Answer::Fine)));
        tale
    };
    committed(8).is_sound();
    committed(30).breaks("no run follows");
    let again = Given { payload: "p2".to_owned(), ..key(2, 1) };
    committed(30).claim(40, "plain", "b", vec![again]).done(50, 2, "b").is_sound();
    // What was rolled back promised nothing.
    let mut rolled_back = committed(30);
    rolled_back.history.lines.retain(|placed| placed.line.t < 30_000);
    rolled_back.says(30, Call::Rollback { transaction: 1 }, Some((31, Answer::Fine))).is_sound();
}
