//! The judge under test: for every rule a small history that breaks it and must be
//! found, and one beside it that does not and must pass.

mod fate;
mod flow;
mod key;
mod lease;
mod limit;
mod outcome;

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
        store: "postgres".to_owned(),
        lease_ms: LEASE_MS,
        queues: vec![
            queue("plain"),
            QueueRules { unique_active: true, ..queue("active") },
            QueueRules { replaces: true, ..queue("replace") },
            QueueRules { slots: Some(2), claims_durable: true, ..queue("slots") },
            QueueRules { claims_durable: true, ..queue("fenced") },
            QueueRules { max_attempts: Some(3), ..queue("limited") },
            QueueRules { concurrency: Some(2), claims_durable: true, ..queue("abreast") },
            QueueRules { rate: Some((10, 1_000_000)), burst: Some(2), ..queue("paced") },
            QueueRules {
                concurrency: Some(1),
                rate: Some((10, 1_000_000)),
                burst: Some(2),
                grouped: true,
                ..queue("grouped")
            },
            QueueRules { fair: true, ..queue("turns") },
            QueueRules { unique_for: Some(100_000), ..queue("throttled") },
            QueueRules { keeps_results: true, ..queue("returning") },
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
    Given { task, payload: format!("p{task}"), claims, attempt: claims, ..Given::default() }
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
