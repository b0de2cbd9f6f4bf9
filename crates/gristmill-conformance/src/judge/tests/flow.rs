//! Order, whole puts, follow-ups and schedules.

use super::*;

#[test]
fn order() {
    let at = |task, run_at| Given { run_at, ..given(task, 1) };
    let two = |tasks: Vec<Given>| {
        let mut tale = tale();
        tale.puts(1, "plain", 1).puts(2, "plain", 2);
        tale.claim(10, "plain", "a", tasks).done(20, 1, "a").done(21, 2, "a");
        tale
    };
    two(vec![at(1, 1), at(2, 2)]).is_sound();
    two(vec![at(2, 2), at(1, 1)]).breaks("order");
    two(vec![at(1, 1), Given { priority: -1, ..at(2, 2) }]).breaks("order");
    let mut more = tale();
    let tasks: Vec<Given> = (1..=10).map(|task| at(task, 1)).collect();
    for task in 1..=10 {
        more.puts(1, "plain", task);
    }
    more.claim(10, "plain", "a", tasks).breaks("order");

    let passed = |first, second, overlapping: bool| {
        let mut tale = tale();
        tale.puts(1, "plain", 1).puts(2, "plain", 2);
        if overlapping {
            let call = Call::Claim {
                queue: "plain".to_owned(),
                max: 1,
                token: "c".to_owned(),
                source: None,
            };
            let nothing =
                Answer::Claim { tasks: Vec::new(), lease_ms: 1, token: None, failed: Vec::new() };
            tale.says(9, call, Some((15, nothing)));
        }
        tale.claim(10, "plain", "a", vec![first]).claim(30, "plain", "b", vec![second]);
        for (task, token) in [(1, "a"), (1, "b"), (2, "a"), (2, "b")] {
            tale.settle(50, task, token, How::Done, None);
        }
        tale
    };
    passed(at(1, 1), at(2, 2), false).is_sound();
    passed(at(2, 2), at(1, 1), false).breaks("order");
    passed(at(2, 2), at(1, 1), true).is_sound();
}

#[test]
fn too_early_and_stopped() {
    let mut early = tale();
    early.puts(1, "plain", 1);
    early.claim(10, "plain", "a", vec![Given { run_at: 90_000, ..given(1, 1) }]);
    early.done(20, 1, "a").breaks("too early");
    let pause = |paused| Call::Pause { queue: "plain".to_owned(), paused };
    let mut stopped = tale();
    stopped.puts(1, "plain", 1).says(3, pause(true), Some((4, Answer::Fine)));
    stopped.claim(10, "plain", "a", vec![given(1, 1)]).done(20, 1, "a").breaks("stopped");
    stopped.says(5, pause(false), None).is_sound();
}

#[test]
fn torn_put() {
    let three = || vec![wanted("p1"), wanted("p2"), wanted("p3")];
    let unknown = |seen: Vec<i64>| {
        let mut tale = tale();
        tale.put_all(1, "plain", three(), None);
        tale.claim(10, "plain", "a", seen.iter().map(|task| given(*task, 1)).collect());
        for task in seen {
            tale.done(20, task, "a");
        }
        tale
    };
    unknown(vec![]).is_sound();
    unknown(vec![1, 2, 3]).is_sound();
    unknown(vec![1, 3]).breaks("torn put");
    // One that an operator cancelled, and of which nobody knows the payload.
    unknown(vec![1, 3]).operate(5, "cancel", 2, Some("moved")).is_sound();
    let atomic = |said: Vec<PutSaid>| {
        let mut tale = tale();
        let call = Call::Put {
            queue: "plain".to_owned(),
            tasks: vec![wanted("p1"), wanted("p2")],
            atomic: true,
            transaction: None,
        };
        tale.says(1, call, Some((2, Answer::Put(said))));
        tale.stands(1, "plain", "failed").stands(2, "plain", "failed");
        tale
    };
    let refused = || PutSaid::Refused("undone".to_owned());
    atomic(vec![PutSaid::Enqueued(1), refused()]).breaks("torn put");
    atomic(vec![PutSaid::Enqueued(1)]).breaks("torn put");
}

#[test]
fn follow_ups() {
    let follow = |n: i64| Follow { queue: "plain".to_owned(), task: wanted(&format!("p{n}")) };
    let settled = |said: Option<SettleSaid>| {
        let mut tale = running("plain");
        tale.settle_with(20, 1, "a", How::Done, vec![follow(2), follow(3)], said);
        tale
    };
    let run = |tale: &mut Tale, tasks: &[i64]| {
        tale.claim(100, "plain", "b", tasks.iter().map(|task| given(*task, 1)).collect());
        for task in tasks {
            tale.done(110, *task, "b");
        }
    };
    let both = |first, second| {
        let follow_ups = vec![first, second];
        Some(SettleSaid::Recorded { went: Went::Done, follow_ups })
    };
    let mut fine = settled(both(PutSaid::Enqueued(2), PutSaid::Enqueued(3)));
    run(&mut fine, &[2, 3]);
    fine.is_sound();
    settled(both(PutSaid::Enqueued(2), PutSaid::Enqueued(3))).breaks("lost");
    settled(both(PutSaid::Enqueued(2), PutSaid::Refused(String::new()))).breaks("follow-ups");
    // Refused, and put all the same.
    let mut refused = settled(Some(SettleSaid::LeaseLost));
    run(&mut refused, &[2]);
    refused.breaks("follow-ups");
    // Unknown: both, or neither.
    let mut unknown = settled(None);
    run(&mut unknown, &[2, 3]);
    unknown.is_sound();
    let mut half = settled(None);
    run(&mut half, &[2]);
    half.breaks("follow-ups");
    settled(None).breaks("follow-ups");
    let mut goes_on = settled(None);
    run(&mut goes_on, &[2, 3]);
    goes_on.claim(800, "plain", "c", vec![given(1, 2)]).done(810, 1, "c").breaks("follow-ups");
    settled(None).claim(800, "plain", "c", vec![given(1, 2)]).done(810, 1, "c").is_sound();
}

#[test]
fn schedules() {
    let fire = |tale: &mut Tale, at: u64, instant: i64, answer: Option<Answer>| {
        let call = Call::Fire {
            schedule: "tick".to_owned(),
            queue: "plain".to_owned(),
            instant,
            payload: format!("p{instant}"),
        };
        tale.says(at, call, answer.map(|answer| (at + 1, answer)));
    };
    let fired = |task| Some(Answer::Put(vec![PutSaid::Enqueued(task)]));
    let every = i64::try_from(crate::judge::plan::EVERY.as_micros()).unwrap();
    let mut twice = tale();
    fire(&mut twice, 1, every, fired(every));
    fire(&mut twice, 2, every, fired(2));
    for task in [every, 2] {
        let payload = format!("p{every}");
        twice
            .claim(10, "plain", "a", vec![Given { payload, ..given(task, 1) }])
            .done(20, task, "a");
    }
    twice.breaks("fired twice");
    // What a wrong clock had decided ahead is fired again.
    twice.fault(1, FaultKind::Clock).is_sound();
    let mut passed = tale();
    fire(&mut passed, 1, every, fired(1));
    fire(&mut passed, 2, 3 * every, fired(3));
    passed.breaks("passed over");
    let mut fine = tale();
    fire(&mut fine, 1, every, Some(Answer::NotFired("already decided".to_owned())));
    fire(&mut fine, 2, 2 * every, None);
    fine.is_sound();
}
