//! Settlements, tokens, the numbers of claims, leases and slots.

use super::*;

#[test]
fn second_settlement() {
    let mut twice = running("plain");
    twice.done(20, 1, "a").done(30, 1, "a").breaks("second settlement");
    let mut other = running("plain");
    other.claim(800, "plain", "b", vec![given(1, 2)]);
    other.done(810, 1, "b").done(820, 1, "a").breaks("second settlement");
    let failed = |retried: bool| {
        let mut tale = running("plain");
        tale.settle(20, 1, "a", How::Fail, Some(recorded(Went::Failed)));
        if retried {
            tale.operate(30, "retry", 1, Some("moved"));
        }
        tale.claim(40, "plain", "b", vec![given(1, 2)]).done(50, 1, "b");
        tale
    };
    failed(false).breaks("second settlement");
    failed(true).is_sound();
    // Repeated, and answered as it must be.
    let mut repeated = running("plain");
    repeated.done(20, 1, "a").settle(30, 1, "a", How::Done, Some(SettleSaid::Gone)).is_sound();
}

#[test]
fn a_settlement_that_is_heard_of_late_is_no_second_one() {
    // Its client stood still between the answer and its hearing.
    let mut tale = running("plain");
    let ending = Ending { task: 1, token: "a".to_owned(), how: How::Retry, follow_ups: Vec::new() };
    let answer = Answer::Settle(vec![recorded(Went::Pending)]);
    tale.says(20, Call::Settle { endings: vec![ending] }, Some((900, answer)));
    tale.claim(30, "plain", "b", vec![given(1, 2)]).done(40, 1, "b").is_sound();
}

#[test]
fn tokens() {
    running("plain").done(20, 1, "nobody's").breaks("foreign token");
    let stale = |queue: &str| {
        let mut tale = running(queue);
        tale.claim(800, queue, "b", vec![given(1, 2)]);
        tale
    };
    stale("plain").done(810, 1, "a").breaks("stale token");
    stale("plain")
        .settle(810, 1, "a", How::Done, Some(SettleSaid::LeaseLost))
        .done(820, 1, "b")
        .is_sound();
    // The second claim was forgotten with the server, and the first holds again;
    // not where claims are kept.
    stale("plain").fault(805, FaultKind::ServerKill).done(810, 1, "a").is_sound();
    stale("fenced").fault(805, FaultKind::ServerKill).done(810, 1, "a").breaks("stale token");
}

#[test]
fn stale_extension() {
    let extend = |tale: &mut Tale, at: u64, answer: Answer| {
        let call = Call::Extend { token: "a".to_owned(), lease_ms: LEASE_MS };
        tale.says(at, call, Some((at + 1, answer)));
    };
    let lasts = || Answer::Extended { cancelled: Vec::new(), lost: Vec::new() };
    let mut settled = running("plain");
    settled.done(20, 1, "a");
    extend(&mut settled, 30, lasts());
    settled.breaks("stale extension");
    let mut lost = running("plain");
    lost.claim(800, "plain", "b", vec![given(1, 2)]);
    extend(&mut lost, 810, lasts());
    lost.done(820, 1, "b").breaks("stale extension");
    let mut fine = running("plain");
    extend(&mut fine, 15, lasts());
    fine.done(20, 1, "a");
    extend(&mut fine, 30, Answer::LeaseLost);
    fine.is_sound();
}

#[test]
fn claims_and_attempts() {
    let again = |queue: &str, claims: u32| {
        let mut tale = running(queue);
        tale.fault(750, FaultKind::Kill).claim(800, queue, "b", vec![given(1, claims)]);
        tale.done(810, 1, "b");
        tale
    };
    again("plain", 2).is_sound();
    again("plain", 1).breaks("claims");
    again("plain", 1).fault(700, FaultKind::ServerKill).is_sound();
    again("fenced", 1).fault(700, FaultKind::ServerKill).breaks("claims");
    let mut fourth = tale();
    fourth.puts(1, "limited", 1);
    fourth.claim(10, "limited", "a", vec![Given { attempt: 4, ..given(1, 4) }]);
    fourth.done(20, 1, "a").breaks("attempts");
    let mut odd = tale();
    odd.puts(1, "plain", 1).claim(10, "plain", "a", vec![Given { attempt: 2, ..given(1, 1) }]);
    odd.done(20, 1, "a").breaks("attempts");
}

#[test]
fn two_leases() {
    let second = |at: u64| {
        let mut tale = running("plain");
        tale.claim(at, "plain", "b", vec![given(1, 2)]).done(at + 5, 1, "b");
        tale
    };
    second(300).breaks("two leases");
    second(720).is_sound();
    // Given back before.
    second(300).settle(100, 1, "a", How::Retry, Some(recorded(Went::Pending))).is_sound();
    // Extended: it lasts longer.
    let call = Call::Extend { token: "a".to_owned(), lease_ms: LEASE_MS };
    let lasts = Answer::Extended { cancelled: Vec::new(), lost: Vec::new() };
    second(720).says(600, call, Some((601, lasts))).breaks("two leases");
    // Forgotten with the server.
    second(300).fault(200, FaultKind::ServerKill).is_sound();
    // After a jump of the clock it has a heartbeat's time.
    second(300).fault(200, FaultKind::Clock).breaks("two leases");
    second(500).fault(200, FaultKind::Clock).is_sound();
    // Back and forth: who did not look in between saw no jump.
    second(300).fault(200, FaultKind::Clock).fault(250, FaultKind::Clock).is_sound();
    // The store's own record.
    let mut by_the_store = running("plain");
    by_the_store.settle(20, 1, "a", How::Fail, Some(recorded(Went::Failed)));
    by_the_store.stands(1, "plain", "failed").is_sound();
    by_the_store.standing.tasks[0].runs = vec![(10, 30), (20, 40)];
    by_the_store.breaks("two leases");
}

#[test]
fn a_client_that_stood_still_is_not_blamed() {
    // It asked at 10 and was given the task at 900, after another had had it.
    let mut tale = tale();
    tale.puts(1, "plain", 1);
    let call =
        Call::Claim { queue: "plain".to_owned(), max: 9, token: "a".to_owned(), source: None };
    let answer = Answer::Claim {
        tasks: vec![given(1, 2)],
        lease_ms: LEASE_MS,
        token: None,
        failed: Vec::new(),
    };
    tale.says(10, call, Some((900, answer)));
    tale.claim(20, "plain", "b", vec![given(1, 1)]).done(910, 1, "a").is_sound();
}

#[test]
fn slots() {
    let slot =
        |task, slot| Given { slot: Some(slot), group: Some("g".to_owned()), ..given(task, 1) };
    let two = |first, second| {
        let mut tale = tale();
        for task in [1, 2] {
            let group = Some("g".to_owned());
            let wanted = Wanted { group, ..wanted(&format!("p{task}")) };
            tale.put(1, "slots", wanted, PutSaid::Enqueued(task));
        }
        tale.claim(10, "slots", "a", vec![slot(1, first)]);
        tale.claim(20, "slots", "b", vec![slot(2, second)]);
        tale.done(30, 1, "a").done(40, 2, "b");
        tale
    };
    two(0, 0).breaks("slots");
    two(0, 2).breaks("slots");
    two(0, 1).is_sound();
}

#[test]
fn a_slot_that_was_taken_back_is_free() {
    let slot = |task, claims| Given { slot: Some(0), ..given(task, claims) };
    let mut tale = tale();
    tale.puts(1, "slots", 1).puts(2, "slots", 2);
    // This one stood still after it had asked, and was given its task at 600.
    let call =
        Call::Claim { queue: "slots".to_owned(), max: 9, token: "a".to_owned(), source: None };
    let tasks = vec![slot(1, 1)];
    let answer = Answer::Claim { tasks, lease_ms: LEASE_MS, token: None, failed: Vec::new() };
    tale.says(10, call, Some((600, answer)));
    let lasts = Answer::Extended { cancelled: Vec::new(), lost: Vec::new() };
    let call = Call::Extend { token: "a".to_owned(), lease_ms: LEASE_MS };
    tale.says(601, call, Some((602, lasts))).done(1_400, 1, "a");
    // Meanwhile another had the slot, lost it after a jump, and somebody ended its task.
    tale.claim(20, "slots", "b", vec![slot(2, 1)]).fault(100, FaultKind::Clock);
    tale.claim(500, "slots", "c", vec![slot(2, 2)]).done(510, 2, "c").is_sound();
}
