//! From a step to a call: what "the lease before last" is in this history.

use std::time::Duration;

use gristmill_core::{
    Assignment, Backoff, ClaimRequest, Clock, ContractChange, Extension, Fire, FollowUp,
    ManualClock, Missed, NewTask, OnDuplicate, Operation, Outcome, Overlap, Payload, Progress,
    PutRequest, QueueName, Rule, ScheduleDeclaration, ScheduleName, Selection, SettingsPatch,
    Settlement, Share, Start, TaskFilter, TaskId, TaskProgress, TaskSettings, Timestamp, Token,
    Unique, When, WorkerId, WorkerReport,
};

use super::call::{Answer, Call};
use super::step::{
    Begin, Change, End, Ending, GROUPS, KEYS, Meant, QUEUES, SOURCES, Shown, Sketch, Step, WORKERS,
};
use crate::shape::{Shape, name, secs, worker};

/// What has happened so far, as later steps may refer to it.
#[derive(Debug, Default)]
pub(super) struct Past {
    tasks: Vec<TaskId>,
    leases: Vec<(TaskId, Token)>,
    tokens: u64,
}

fn queue(index: u8) -> QueueName {
    name(QUEUES[usize::from(index)])
}

fn who(index: u8) -> WorkerId {
    worker(WORKERS[usize::from(index)])
}

fn text(names: &[&str], index: Option<u8>) -> Option<String> {
    index.map(|index| names[usize::from(index)].to_owned())
}

fn wait(seconds: u16) -> Duration {
    secs(u64::from(seconds))
}

impl Past {
    /// The call that the step means now; none when it refers to what is not
    /// there yet.
    pub(super) fn call(&mut self, step: &Step, clock: &ManualClock) -> Option<Call> {
        let now = clock.now();
        Some(match step {
            Step::Advance(_) => return None,
            Step::Put { queue: q, tasks, atomic } => Call::Put(PutRequest {
                queue: queue(*q),
                tasks: tasks.iter().map(|sketch| new_task(sketch, now)).collect(),
                atomic: *atomic,
            }),
            Step::Claim { queue: q, max, worker, source, lease } => Call::Claim(ClaimRequest {
                queue: queue(*q),
                max: usize::from(*max),
                lease: lease.map(wait),
                worker: who(*worker),
                source: text(&SOURCES, *source),
                token: self.token(),
            }),
            Step::Settle(endings) => {
                let found = endings.iter().filter_map(|ending| self.settlement(ending, now));
                Call::Settle(found.collect())
            }
            Step::Extend { lease, token, seconds, told } => {
                let (_, own) = lease.of(&self.leases)?;
                let token = self.shown(*token, own);
                let told = told.iter().filter_map(|(back, done)| {
                    let (id, _) = back.of(&self.leases)?;
                    Some(TaskProgress { id, progress: far(*done) })
                });
                let progress = told.collect();
                Call::Extend(vec![Extension { token, lease: wait(*seconds), progress }])
            }
            Step::Reclaim => Call::Reclaim,
            Step::Sweep => Call::Sweep,
            Step::Operate { action, meant, limit, note } => Call::Operate(Operation {
                action: *action,
                selection: self.selection(meant),
                limit: match meant {
                    Meant::Tasks(_) => 1_000,
                    Meant::Matching { .. } => usize::from(*limit),
                },
                by: "operator".to_owned(),
                note: note.then(|| "because".to_owned()),
                // Those with a note run later.
                start: if *note { Start::After(wait(7)) } else { Start::Now },
            }),
            Step::Pause { queue: q, paused } => Call::Pause(queue(*q), *paused),
            Step::Override { queue: q, change } => {
                Call::Override(queue(*q), Box::new(patch(*change)))
            }
            Step::Reset { queue: q } => Call::Reset(queue(*q)),
            Step::Find { queue: q } => Call::Find(queue(*q), KEYS.map(str::to_owned).to_vec()),
            Step::Minutes { queue: q, back } => Call::Minutes(queue(*q), wait(*back)),
            Step::Contract { queue: q, text, replaces, breaking } => {
                Call::Contract(ContractChange {
                    queue: queue(*q),
                    text: format!("version {text}"),
                    replaces: replaces.map(|version| format!("version {version}")),
                    breaking: *breaking,
                })
            }
            Step::Schedule { overlap_skip, queue: q } => {
                Call::Schedule(Box::new(declaration(queue(*q), *overlap_skip)))
            }
            Step::Unschedule => Call::Unschedule(schedule()),
            Step::PauseSchedule(paused) => Call::PauseSchedule(schedule(), *paused),
            Step::Fire { behind, tasks, by_hand } => Call::Fire(Fire {
                schedule: schedule(),
                instant: Timestamp::from_micros(now.as_micros() + i64::from(*behind) * 1_000_000),
                tasks: tasks.iter().map(|sketch| new_task(sketch, now)).collect(),
                by_hand: *by_hand,
            }),
            Step::Campaign { who: w, hold } => Call::Campaign(who(*w), wait(*hold)),
            Step::Resign { who: w } => Call::Resign(who(*w)),
            Step::Publish { term } => Call::Publish(Assignment {
                term: u64::from(*term),
                shares: vec![Share { worker: who(0), queue: queue(0), processors: 2 }],
                published_at: Timestamp::EPOCH,
            }),
            Step::Report { who: w } => Call::Report(Box::new(report(who(*w)))),
            Step::Forget { who: w } => Call::Forget(who(*w)),
        })
    }

    /// Remembers what later steps may refer to.
    pub(super) fn learn(&mut self, answer: &Answer) {
        match answer {
            Answer::Put(report) => self.tasks.extend(report.answers.iter().filter_map(|a| a.id())),
            Answer::Claim(claim) => {
                self.leases.extend(claim.tasks.iter().map(|task| (task.id, claim.token)));
                self.tasks.extend(claim.tasks.iter().map(|task| task.id));
            }
            _ => {}
        }
    }

    fn token(&mut self) -> Token {
        self.tokens += 1;
        let bits = u128::from(self.tokens).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        Token::from_bytes(bits.to_be_bytes())
    }

    fn shown(&mut self, shown: Shown, own: Token) -> Token {
        match shown {
            Shown::Own => own,
            Shown::Of(back) => back.of(&self.leases).map_or(own, |(_, token)| token),
            Shown::Unknown => self.token(),
        }
    }

    fn settlement(&mut self, ending: &Ending, now: Timestamp) -> Option<Settlement> {
        let (id, own) = ending.lease.of(&self.leases)?;
        let follow_ups = ending
            .follow_ups
            .iter()
            .map(|(q, sketch)| FollowUp { queue: queue(*q), task: new_task(sketch, now) });
        Some(Settlement {
            id,
            token: self.shown(ending.token, own),
            outcome: outcome(ending.end),
            follow_ups: follow_ups.collect(),
            result: None,
        })
    }

    fn selection(&self, meant: &Meant) -> Selection {
        match meant {
            Meant::Tasks(list) => {
                let mut ids: Vec<_> = list.iter().filter_map(|b| b.of(&self.tasks)).collect();
                ids.sort();
                ids.dedup();
                Selection::Ids(ids)
            }
            Meant::Matching { queue: q, state, key, source } => Selection::Matching {
                filter: TaskFilter {
                    queue: q.map(queue),
                    state: *state,
                    key: text(&KEYS, *key),
                    source: text(&SOURCES, *source),
                    ..TaskFilter::default()
                },
                after: None,
            },
        }
    }
}

fn far(done: u8) -> Progress {
    let total = done.is_multiple_of(2).then_some(100);
    Progress::new(u64::from(done), total, if done.is_multiple_of(3) { "rows" } else { "" })
}

fn new_task(sketch: &Sketch, now: Timestamp) -> NewTask {
    NewTask {
        payload: match sketch.payload {
            // Bytes that are no text, among them.
            0 => Payload::raw(vec![0xff, 0x00, 0xc3, 0x28]),
            n => Payload::json(format!("payload {n}")),
        },
        key: if sketch.invalid { Some(String::new()) } else { text(&KEYS, sketch.key) },
        group: text(&GROUPS, sketch.group),
        source: text(&SOURCES, sketch.source),
        priority: sketch.priority,
        start: match sketch.begin {
            Begin::Now => Start::Now,
            Begin::In(seconds) => Start::After(wait(seconds)),
            Begin::At(seconds) => Start::At(now.after(wait(seconds))),
            Begin::Ago(seconds) => Start::At(now.before(wait(seconds))),
        },
        id: sketch.id.map(|id| format!("id {id}")),
        settings: own_attempts(sketch.attempts),
        ..NewTask::default()
    }
    .with_header("payload", &sketch.payload.to_string())
}

/// A task's own attempts, and with them a wait of its own.
fn own_attempts(attempts: Option<u8>) -> TaskSettings {
    let mut own = TaskSettings::default();
    if let Some(attempts) = attempts {
        own.set_max_attempts(Some(u32::from(attempts)).filter(|attempts| *attempts > 0));
        own.set_backoff(Backoff { base: secs(5), ..Backoff::default() });
    }
    own
}

fn outcome(end: End) -> Outcome {
    let after = |seconds| When::After(wait(seconds));
    match end {
        End::Done => Outcome::Done,
        End::Error => Outcome::Error("wrong".to_owned()),
        End::TimedOut => Outcome::TimedOut(secs(900)),
        End::RetryIn(seconds) => Outcome::Retry { at: after(seconds), reason: None },
        End::Fail => Outcome::Fail("never".to_owned()),
        End::Release => Outcome::Release { at: None, started: false },
        End::ReleaseStarted => Outcome::Release { at: None, started: true },
        End::ReleaseIn(seconds) => Outcome::Release { at: Some(after(seconds)), started: true },
        End::Cancelled => Outcome::Cancelled,
    }
}

fn patch(change: Change) -> SettingsPatch {
    let mut patch = SettingsPatch::default();
    match change {
        Change::MaxAttempts(max) => patch.max_attempts = Some(max),
        Change::Unique(true) => patch.unique = Some(Unique::Active),
        Change::Unique(false) => patch.unique = Some(Unique::Pending),
        Change::OnDuplicate(n) => {
            let all = [OnDuplicate::Skip, OnDuplicate::Replace, OnDuplicate::Postpone];
            patch.on_duplicate = Some(all[usize::from(n)]);
        }
        Change::Capacity(capacity) => patch.capacity = Some(capacity),
        Change::KeepDone(keep) => patch.keep_done = Some(keep.map(wait)),
        Change::KeepFailed(keep) => patch.keep_failed = Some(keep.map(wait)),
        Change::Lease(seconds) => patch.lease = Some(wait(seconds)),
        Change::IdWindow(seconds) => patch.id_window = Some(wait(seconds)),
        Change::UniqueFor(window) => patch.unique_for = Some(window.map(wait)),
    }
    patch
}

fn schedule() -> ScheduleName {
    ScheduleName::new("schedule").expect("a schedule's name")
}

/// The one schedule of a history.
pub(super) fn declaration(queue: QueueName, overlap_skip: bool) -> ScheduleDeclaration {
    ScheduleDeclaration {
        name: schedule(),
        queue,
        rule: Rule::Every(secs(30)),
        zone: "UTC".to_owned(),
        payload: Some(Payload::json("{}")),
        options: Default::default(),
        missed: Missed::All,
        overlap: if overlap_skip { Overlap::Skip } else { Overlap::Allow },
    }
}

fn report(id: WorkerId) -> WorkerReport {
    WorkerReport {
        id,
        host: "host".to_owned(),
        pid: 7,
        version: "0.1.0".to_owned(),
        queues: vec![queue(0)],
        processors: Vec::new(),
        handled: Vec::new(),
        follows_term: None,
        stopping: false,
    }
}
