//! Limits, windows and results.

use super::*;

#[test]
fn too_many_at_once() {
    let three = |claimed: u64| {
        let mut tale = tale();
        for task in 1..=3 {
            tale.puts(1, "abreast", task);
        }
        tale.claim(10, "abreast", "a", vec![given(1, 1), given(2, 1)]);
        tale.claim(claimed, "abreast", "b", vec![given(3, 1)]);
        tale
    };
    let ended = |mut tale: Tale, at: u64| {
        tale.done(at, 1, "a").done(at + 2, 2, "a").done(900, 3, "b");
        tale
    };
    ended(three(20), 400).breaks("too many at once");
    // One was settled meanwhile, perhaps: nobody heard of that yet.
    ended(three(20), 15).is_sound();
    let mut unheard = three(20);
    unheard.settle(15, 1, "a", How::Done, None).done(400, 2, "a").done(900, 3, "b").is_sound();
    // Its lease ran out, and its task was taken back.
    let mut expired = three(LEASE_MS + 20);
    expired.settle(LEASE_MS + 30, 1, "a", How::Done, Some(SettleSaid::LeaseLost));
    expired.claim(LEASE_MS + 40, "abreast", "c", vec![given(1, 2), given(2, 2)]);
    expired.done(LEASE_MS + 50, 1, "c").done(LEASE_MS + 52, 2, "c");
    expired.done(LEASE_MS + 60, 3, "b").breaks("too many at once");
    let mut clock = three(20);
    clock.fault(5, FaultKind::Clock);
    ended(clock, 400).is_sound();
}

#[test]
fn too_fast() {
    // Two at once, and ten a second: one more each 100 ms.
    let paced = |times: &[u64], how: How| {
        let mut tale = tale();
        for (task, at) in (1..).zip(times) {
            tale.puts(1, "paced", task);
            tale.claim(*at, "paced", &format!("t{task}"), vec![given(task, 1)]);
            let token = format!("t{task}");
            if how == How::Done || task > 1 {
                tale.done(at + 3, task, &token);
            } else {
                tale.settle(at + 3, task, &token, how, Some(recorded(Went::Pending)));
                // A release takes the attempt back.
                let attempt = if how == How::Release { 1 } else { 2 };
                let task = Given { attempt, ..given(task, 2) };
                tale.claim(at + 5, "paced", "again", vec![task]);
                tale.done(at + 7, 1, "again");
            }
        }
        tale
    };
    paced(&[10, 20, 120, 220, 320], How::Done).is_sound();
    paced(&[10, 20, 30, 40, 50], How::Done).breaks("too fast");
    paced(&[10, 500, 510, 520, 530, 540], How::Done).breaks("too fast");
    // A release gives its token back, an error does not.
    paced(&[10, 20, 30], How::Release).is_sound();
    paced(&[10, 20, 30], How::Retry).breaks("too fast");
    paced(&[10, 20, 30, 40, 50], How::Done).fault(5, FaultKind::Clock).is_sound();
}

#[test]
fn limits_of_groups() {
    let of = |task: i64, group: &str| Given { group: Some(group.to_owned()), ..given(task, 1) };
    let run = |tale: &mut Tale, task: i64, group: &str, from: u64, to: u64| {
        let token = format!("t{task}");
        let wanted = Wanted { group: Some(group.to_owned()), ..wanted(&format!("p{task}")) };
        tale.put(1, "grouped", wanted, PutSaid::Enqueued(task));
        tale.claim(from, "grouped", &token, vec![of(task, group)]).done(to, task, &token);
    };
    let two = |other: &str| {
        let mut tale = tale();
        run(&mut tale, 1, "a", 10, 400);
        run(&mut tale, 2, other, 20, 410);
        tale
    };
    two("b").is_sound();
    two("a").breaks("too many at once");
    let fast = |groups: [&str; 4]| {
        let mut tale = tale();
        for ((task, group), at) in (1..).zip(groups).zip([10, 20, 30, 40]) {
            run(&mut tale, task, group, at, at + 3);
        }
        tale
    };
    fast(["a", "b", "a", "b"]).is_sound();
    fast(["a", "a", "a", "a"]).breaks("too fast");
}

#[test]
fn whoever_has_no_turn_is_passed_by() {
    let passed = |queue: &str| {
        let mut tale = tale();
        tale.puts(1, queue, 1).puts(2, queue, 2);
        tale.claim(10, queue, "a", vec![given(2, 1)]).claim(30, queue, "b", vec![given(1, 1)]);
        tale.done(50, 1, "b").done(52, 2, "a");
        tale
    };
    passed("turns").is_sound();
    passed("plain").breaks("order");
}

#[test]
fn windows() {
    let of = |task: i64| keyed(&format!("p{task}"));
    // The window lasts 100 ms.
    let twice = |second: u64| {
        let mut tale = tale();
        tale.put(1, "throttled", of(1), PutSaid::Enqueued(1));
        let task = Given { key: Some("k".to_owned()), ..given(1, 1) };
        tale.claim(10, "throttled", "a", vec![task]).done(20, 1, "a");
        tale.put(second, "throttled", of(2), PutSaid::Enqueued(2));
        let task = Given { key: Some("k".to_owned()), ..given(2, 1) };
        tale.claim(second + 10, "throttled", "b", vec![task]).done(second + 20, 2, "b");
        tale
    };
    twice(60).breaks("window");
    twice(110).is_sound();
    twice(60).fault(5, FaultKind::Clock).is_sound();
    let ended = |how: How, went: Went| {
        let mut tale = tale();
        tale.put(1, "throttled", of(1), PutSaid::Enqueued(1));
        let task = Given { key: Some("k".to_owned()), ..given(1, 1) };
        tale.claim(10, "throttled", "a", vec![task]);
        tale.settle(20, 1, "a", how, Some(recorded(went)));
        tale.put(60, "throttled", of(2), PutSaid::Enqueued(2));
        tale.stands(1, "throttled", "failed").operate(70, "discard", 1, Some("moved"));
        tale.standing.tasks.clear();
        let task = Given { key: Some("k".to_owned()), ..given(2, 1) };
        tale.claim(80, "throttled", "b", vec![task]).done(90, 2, "b");
        tale
    };
    ended(How::Fail, Went::Failed).is_sound();
    // Kept out by one that is gone: right within the window, and only there.
    let kept_out = |queue: &str, at: u64| {
        let mut tale = tale();
        tale.put(1, queue, of(1), PutSaid::Enqueued(1));
        let task = Given { key: Some("k".to_owned()), ..given(1, 1) };
        tale.claim(10, queue, "a", vec![task]).done(20, 1, "a");
        tale.put(at, queue, of(2), PutSaid::Duplicate(1));
        tale
    };
    kept_out("throttled", 60).is_sound();
    kept_out("throttled", 300).breaks("false duplicate");
    kept_out("plain", 60).breaks("false duplicate");
}

#[test]
fn results() {
    let kept = |task: i64, result: Option<&str>| {
        let mut tale = tale();
        tale.puts(1, "returning", 1).claim(10, "returning", "a", vec![given(1, 1)]);
        tale.claim(LEASE_MS + 20, "returning", "b", vec![given(1, 2)]);
        tale.settle(LEASE_MS + 30, 1, "a", How::Done, Some(SettleSaid::LeaseLost));
        tale.standing.results.push((task, result.map(str::to_owned)));
        tale
    };
    kept(1, Some("b")).done(LEASE_MS + 40, 1, "b").is_sound();
    kept(1, Some("a")).done(LEASE_MS + 40, 1, "b").breaks("result");
    kept(1, None).done(LEASE_MS + 40, 1, "b").breaks("result");
    kept(1, Some("b")).settle(LEASE_MS + 40, 1, "b", How::Done, None).is_sound();
    kept(1, Some("a")).settle(LEASE_MS + 40, 1, "b", How::Done, None).breaks("result");
    kept(1, None).settle(LEASE_MS + 40, 1, "b", How::Done, None).is_sound();
}
