//! The judge under test: for every rule a small history that breaks it and must be
//! found, and one beside it that does not and must pass.

use super::event::{
    Answer, Call, Ending, Fault, FaultKind, Follow, Given, How, Line, Phase, PutSaid, SettleSaid,
    Wanted, Went,
};
use super::journal::{History, Placed};
use super::plan::{Plan, QueueRules};
use super::standing::{Counted, Standing, Stands};
use super::verdict::{Verdict, judge};

/// A history that is told line by line, in milliseconds.
#[derive(Default)]
struct Tale {
    history: History,
    standing: Standing,
    n: u64,
}

const LEASE_MS: u64 = 700;

fn plan() -> Plan {
    let queue = |name: &str| QueueRules { name: name.to_owned(), ..QueueRules::default() };
    Plan {
        lease_ms: LEASE_MS,
        queues: vec![
            queue("plain"),
            QueueRules { unique_active: true, ..queue("active") },
            QueueRules { replaces: true, ..queue("replace") },
            QueueRules { slots: Some(2), claims_durable: true, ..queue("slots") },
            QueueRules { claims_durable: true, ..queue("fenced") },
            QueueRules { max_attempts: Some(3), ..queue("limited") },
        ],
        ..Plan::default()
    }
}

fn wanted(payload: &str) -> Wanted {
    Wanted { payload: payload.to_owned(), ..Wanted::default() }
}

fn keyed(payload: &str) -> Wanted {
    Wanted { key: Some("k".to_owned()), ..wanted(payload) }
}

fn given(task: i64, claims: u32) -> Given {
    Given { task, payload: format!("p{task}"), claims, attempt: 1, ..Given::default() }
}

fn recorded(went: Went) -> SettleSaid {
    SettleSaid::Recorded { went, follow_ups: Vec::new() }
}

impl Tale {
    fn line(&mut self, ms: u64, line: impl FnOnce(&mut Line)) {
        if self.history.names.is_empty() {
            self.history.names.push("client".to_owned());
        }
        let mut told = Line {
            t: ms * 1_000,
            w: i64::try_from(ms).unwrap() * 1_000,
            n: self.n,
            call: None,
            answer: None,
            fault: None,
        };
        line(&mut told);
        self.history.lines.push(Placed { who: 0, line: told });
    }

    /// A call at one time and its answer at another, or none.
    fn says(&mut self, called: u64, call: Call, answer: Option<(u64, Answer)>) -> &mut Self {
        self.n += 1;
        self.line(called, |line| line.call = Some(call));
        if let Some((heard, answer)) = answer {
            self.line(heard, |line| line.answer = Some(answer));
        }
        self
    }

    fn put_all(
        &mut self,
        at: u64,
        queue: &str,
        tasks: Vec<Wanted>,
        said: Option<Vec<PutSaid>>,
    ) -> &mut Self {
        let call = Call::Put { queue: queue.to_owned(), tasks, atomic: false, transaction: None };
        self.says(at, call, said.map(|said| (at + 1, Answer::Put(said))))
    }

    fn put(&mut self, at: u64, queue: &str, task: Wanted, said: PutSaid) -> &mut Self {
        self.put_all(at, queue, vec![task], Some(vec![said]))
    }

    /// A task that was put, with the payload `p` and its number.
    fn puts(&mut self, at: u64, queue: &str, task: i64) -> &mut Self {
        self.put(at, queue, wanted(&format!("p{task}")), PutSaid::Enqueued(task))
    }

    fn claim(&mut self, at: u64, queue: &str, token: &str, tasks: Vec<Given>) -> &mut Self {
        let call =
            Call::Claim { queue: queue.to_owned(), max: 9, token: token.to_owned(), source: None };
        let answer = Answer::Claim { tasks, lease_ms: LEASE_MS, token: None, failed: Vec::new() };
        self.says(at, call, Some((at + 1, answer)))
    }

    fn settle(
        &mut self,
        at: u64,
        task: i64,
        token: &str,
        how: How,
        said: Option<SettleSaid>,
    ) -> &mut Self {
        self.settle_with(at, task, token, how, Vec::new(), said)
    }

    fn settle_with(
        &mut self,
        at: u64,
        task: i64,
        token: &str,
        how: How,
        follow_ups: Vec<Follow>,
        said: Option<SettleSaid>,
    ) -> &mut Self {
        let ending = Ending { task, token: token.to_owned(), how, follow_ups };
        let call = Call::Settle { endings: vec![ending] };
        self.says(at, call, said.map(|said| (at + 1, Answer::Settle(vec![said]))))
    }

    fn done(&mut self, at: u64, task: i64, token: &str) -> &mut Self {
        self.settle(at, task, token, How::Done, Some(recorded(Went::Done)))
    }

    fn operate(&mut self, at: u64, action: &str, task: i64, word: Option<&str>) -> &mut Self {
        let call = Call::Operate { action: action.to_owned(), tasks: vec![task], queue: None };
        self.says(
            at,
            call,
            word.map(|word| (at + 1, Answer::Operate(vec![(task, word.to_owned())]))),
        )
    }

    fn fault(&mut self, at: u64, kind: FaultKind) -> &mut Self {
        let fault = Fault { kind, target: String::new(), phase: Phase::Whole, jump_ms: 0 };
        self.line(at, |line| line.fault = Some(fault));
        self
    }

    fn stands(&mut self, task: i64, queue: &str, state: &str) -> &mut Self {
        self.standing.tasks.push(Stands {
            task,
            queue: queue.to_owned(),
            payload: format!("p{task}"),
            state: state.to_owned(),
            ..Stands::default()
        });
        self
    }

    fn verdict(&mut self) -> Verdict {
        self.history.sort();
        judge(&self.history, &plan(), &self.standing)
    }

    fn breaks(&mut self, rule: &str) {
        let verdict = self.verdict();
        let told: Vec<&str> = verdict.violations.iter().map(|one| one.rule.as_str()).collect();
        assert!(told.contains(&rule), "{rule} is not among {told:?}");
    }

    fn is_sound(&mut self) {
        let verdict = self.verdict();
        assert!(verdict.is_sound(), "{:#?}", verdict.violations);
    }
}

fn tale() -> Tale {
    Tale::default()
}

/// Put, claimed: the beginning of many tales.
fn running(queue: &str) -> Tale {
    let mut tale = tale();
    tale.puts(1, queue, 1).claim(10, queue, "a", vec![given(1, 1)]);
    tale
}

#[test]
fn an_honest_run_is_sound_and_is_counted() {
    let mut honest = running("plain");
    honest.done(20, 1, "a");
    let verdict = honest.verdict();
    assert!(verdict.is_sound(), "{verdict:#?}");
    let tally = verdict.tally;
    assert_eq!((tally.calls, tally.operations), (3, 3));
    assert_eq!((tally.enqueued, tally.taken, tally.settled), (1, 1, 1));
}

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
}

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
    second(300).settle(100, 1, "a", How::Release, Some(recorded(Went::Pending))).is_sound();
    // Extended: it lasts longer.
    let call = Call::Extend { token: "a".to_owned(), lease_ms: LEASE_MS };
    let lasts = Answer::Extended { cancelled: Vec::new(), lost: Vec::new() };
    second(720).says(600, call, Some((601, lasts))).breaks("two leases");
    // Forgotten with the server.
    second(300).fault(200, FaultKind::ServerKill).is_sound();
    // After a jump of the clock it has a heartbeat's time.
    second(300).fault(200, FaultKind::Clock).breaks("two leases");
    second(500).fault(200, FaultKind::Clock).is_sound();
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
        tale.puts(1, "slots", 1).puts(2, "slots", 2);
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
    let every = i64::try_from(super::plan::EVERY.as_micros()).unwrap();
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

#[test]
fn counts_and_counters() {
    let counted = |put, done, failed| Counted {
        queue: "plain".to_owned(),
        put,
        done,
        failed,
        ..Counted::default()
    };
    let with = |counted: Counted| {
        let mut tale = running("plain");
        tale.done(20, 1, "a");
        tale.standing.counts.push(counted);
        tale
    };
    with(counted(1, 1, 0)).is_sound();
    with(counted(1, 1, 1)).breaks("counts");
    with(counted(2, 1, 0)).breaks("counts");
    with(counted(2, 2, 0)).breaks("counters");
    with(counted(2, 2, 0)).put_all(30, "plain", vec![wanted("x")], None).breaks("counters");
}

#[test]
fn left_over() {
    tale().puts(1, "plain", 1).stands(1, "plain", "pending").breaks("left over");
    running("plain").stands(1, "plain", "processing").breaks("left over");
    let mut found = tale();
    found.standing.findings.push("a marker of nobody".to_owned());
    found.breaks("left over");
    let mut hung = tale();
    hung.standing.undrained = Some("the store is busy".to_owned());
    hung.breaks("left over");
}

#[test]
fn a_violation_is_told_as_a_story() {
    let mut tale = running("plain");
    let verdict = tale.done(20, 1, "a").done(30, 1, "a").verdict();
    let told = verdict.violations[0].to_string();
    assert!(told.starts_with("second settlement: task 1 was settled twice"), "{told}");
    let lines: Vec<&str> = told.lines().skip(1).collect();
    assert_eq!(lines.len(), 4, "{told}");
    assert!(lines[0].contains("client #3 calls {\"settle\""), "{told}");
}
