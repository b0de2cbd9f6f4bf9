//! Brings lines together: each call with its answer, each task with what happened
//! to it.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::case::{
    Act, Case, ClaimTry, Effect, EndTry, ExtendTry, FireTry, PauseTry, PutTry, Span, Take, Trouble,
};
use super::event::{Answer, Call, Phase, PutSaid, SettleSaid, Wanted};
use super::journal::History;
use super::plan::Plan;
use super::standing::Standing;

/// The case of a run.
pub(crate) fn gather<'a>(history: &'a History, plan: &'a Plan, standing: &'a Standing) -> Case<'a> {
    let mut case = Case {
        history,
        plan,
        standing,
        puts: Vec::new(),
        claims: Vec::new(),
        takes: Vec::new(),
        ends: Vec::new(),
        extends: HashMap::new(),
        pauses: Vec::new(),
        fires: Vec::new(),
        lives: BTreeMap::new(),
        troubles: Vec::new(),
        stands: standing.tasks.iter().map(|task| (task.task, task)).collect(),
        seen: HashMap::new(),
        blind_acts: Vec::new(),
    };
    let mut answers: HashMap<(usize, u64), usize> = HashMap::new();
    for (at, placed) in history.lines.iter().enumerate() {
        if placed.line.answer.is_some() {
            answers.insert((placed.who, placed.line.n), at);
        }
        trouble(&mut case, at);
    }
    let commits = commits(history, &answers);
    for (at, placed) in history.lines.iter().enumerate() {
        let Some(call) = &placed.line.call else { continue };
        let answer = answers.get(&(placed.who, placed.line.n)).copied();
        let heard = answer.map_or(u64::MAX, |at| history.lines[at].line.t);
        let span = Span { call: at, answer, called: placed.line.t, heard };
        let said = answer.and_then(|at| history.lines[at].line.answer.as_ref());
        let wall = answer.map_or(0, |at| history.lines[at].line.w);
        case.add(call, said, span, wall, |transaction| {
            commits.get(&(placed.who, transaction)).copied().unwrap_or(Commit::NOTHING)
        });
    }
    case.bring_together();
    case
}

fn trouble(case: &mut Case<'_>, at: usize) {
    let line = &case.history.lines[at].line;
    let Some(fault) = &line.fault else { return };
    match fault.phase {
        Phase::Begin => {
            case.troubles.push(Trouble { kind: fault.kind, from: line.t, to: u64::MAX });
        }
        Phase::End => {
            let open = case.troubles.iter_mut().rev();
            let mut open = open.filter(|one| one.kind == fault.kind && one.to == u64::MAX);
            if let Some(open) = open.next() {
                open.to = line.t;
            }
        }
        Phase::Whole => {
            case.troubles.push(Trouble { kind: fault.kind, from: line.t, to: line.t });
        }
    }
}

/// What became of a caller's transaction.
#[derive(Debug, Clone, Copy)]
struct Commit {
    effect: Effect,
    called: u64,
    answer: Option<usize>,
    heard: u64,
}

impl Commit {
    /// Neither committed nor asked to be: whoever died took it along.
    const NOTHING: Commit =
        Commit { effect: Effect::Nothing, called: u64::MAX, answer: None, heard: u64::MAX };
}

fn commits(
    history: &History,
    answers: &HashMap<(usize, u64), usize>,
) -> HashMap<(usize, u64), Commit> {
    let mut commits = HashMap::new();
    for placed in &history.lines {
        let Some(Call::Commit { transaction }) = &placed.line.call else { continue };
        let answer = answers.get(&(placed.who, placed.line.n)).copied();
        let said = answer.and_then(|at| history.lines[at].line.answer.as_ref());
        let commit = Commit {
            effect: effect(said),
            called: placed.line.t,
            answer,
            heard: answer.map_or(u64::MAX, |at| history.lines[at].line.t),
        };
        commits.insert((placed.who, *transaction), commit);
    }
    commits
}

fn effect(said: Option<&Answer>) -> Effect {
    match said {
        None | Some(Answer::Error { unknown: true, .. }) => Effect::Unknown,
        Some(Answer::Error { unknown: false, .. }) => Effect::Nothing,
        Some(_) => Effect::Told,
    }
}

impl Case<'_> {
    fn add(
        &mut self,
        call: &Call,
        said: Option<&Answer>,
        span: Span,
        wall: i64,
        commit: impl Fn(u64) -> Commit,
    ) {
        let told = effect(said);
        match call {
            Call::Put { queue, tasks, atomic, transaction } => {
                let (mut told, mut span, mut committing) = (told, span, None);
                if let Some(commit) = transaction.map(commit) {
                    if told == Effect::Told {
                        told = commit.effect;
                    } else {
                        // An error undid the whole transaction.
                        told = Effect::Nothing;
                    }
                    (span.answer, span.heard) = (commit.answer.or(span.answer), commit.heard);
                    committing = Some(commit.called);
                }
                self.add_puts(queue, tasks, *atomic, put_answers(said), told, span, committing);
            }
            Call::Fire { schedule, queue, instant, payload } => {
                let fired = put_answers(said);
                self.fires.push(FireTry {
                    schedule: schedule.clone(),
                    instant: *instant,
                    payload: payload.clone(),
                    span,
                    effect: told,
                    fired: fired.is_some(),
                });
                // Not fired: as if nothing had been put.
                let told =
                    if told == Effect::Told && fired.is_none() { Effect::Nothing } else { told };
                let task = Wanted { payload: payload.clone(), ..Wanted::default() };
                self.add_puts(queue, &[task], false, fired, told, span, None);
            }
            Call::Claim { queue, max, token, source } => {
                self.add_claim(queue, *max, token, source.clone(), said, span, wall);
            }
            Call::Settle { endings } => {
                let answers = match said {
                    Some(Answer::Settle(answers)) => Some(answers),
                    _ => None,
                };
                let whole = told;
                for (nth, ending) in endings.iter().enumerate() {
                    let said = answers.and_then(|answers| answers.get(nth)).cloned();
                    let puts = match &said {
                        Some(SettleSaid::Recorded { follow_ups, .. }) => Some(follow_ups),
                        _ => None,
                    };
                    // Refused: as if nothing had been put.
                    let told =
                        if told == Effect::Told && puts.is_none() { Effect::Nothing } else { told };
                    for (nth, follow) in ending.follow_ups.iter().enumerate() {
                        let said = puts.and_then(|puts| puts.get(nth)).cloned();
                        let said = said.map(|said| vec![said]);
                        let task = std::slice::from_ref(&follow.task);
                        self.add_puts(&follow.queue, task, false, said.as_ref(), told, span, None);
                    }
                    self.ends.push(EndTry { ending: ending.clone(), span, effect: whole, said });
                }
            }
            Call::Extend { token, lease_ms } => {
                let lasts = match said {
                    Some(Answer::Extended { .. }) => Some(true),
                    Some(Answer::LeaseLost | Answer::Error { unknown: false, .. }) => Some(false),
                    _ => None,
                };
                let one = ExtendTry { lease: lease_ms * 1_000, span, lasts };
                self.extends.entry(token.clone()).or_default().push(one);
            }
            Call::Operate { action, tasks, queue } => {
                self.add_acts(action, tasks, queue.as_ref(), said, told, span);
            }
            Call::Pause { queue, paused } => {
                let (queue, paused) = (queue.clone(), *paused);
                self.pauses.push(PauseTry { queue, paused, span, effect: told });
            }
            Call::Sweep {} => {
                if let Some(Answer::Swept { failed }) = said {
                    for task in failed {
                        self.lives.entry(*task).or_default().expired.push(span.heard);
                    }
                }
            }
            Call::Commit { .. } | Call::Rollback { .. } | Call::Reclaim {} => {}
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one line of a journal, taken apart")]
    fn add_puts(
        &mut self,
        queue: &str,
        tasks: &[Wanted],
        atomic: bool,
        answers: Option<&Vec<PutSaid>>,
        effect: Effect,
        span: Span,
        committing: Option<u64>,
    ) {
        let batch = self.puts.len();
        for (nth, wanted) in tasks.iter().enumerate() {
            let said = answers.and_then(|answers| answers.get(nth)).cloned();
            self.puts.push(PutTry {
                queue: queue.to_owned(),
                wanted: wanted.clone(),
                span,
                effect,
                said,
                batch,
                atomic,
                committing,
            });
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one line of a journal, taken apart")]
    fn add_claim(
        &mut self,
        queue: &str,
        max: usize,
        token: &str,
        source: Option<String>,
        said: Option<&Answer>,
        span: Span,
        wall: i64,
    ) {
        let mut takes = Vec::new();
        if let Some(Answer::Claim { tasks, lease_ms, token: chosen, failed }) = said {
            let token = chosen.as_deref().unwrap_or(token);
            for given in tasks {
                takes.push(self.takes.len());
                self.takes.push(Take {
                    queue: queue.to_owned(),
                    token: token.to_owned(),
                    given: given.clone(),
                    span,
                    lease: lease_ms * 1_000,
                    wall,
                });
            }
            for task in failed {
                self.lives.entry(*task).or_default().expired.push(span.heard);
            }
        }
        let queue = queue.to_owned();
        self.claims.push(ClaimTry { queue, max, source, span, effect: effect(said), takes });
    }

    fn add_acts(
        &mut self,
        action: &str,
        tasks: &[i64],
        queue: Option<&String>,
        said: Option<&Answer>,
        told: Effect,
        span: Span,
    ) {
        let act = |said: Option<String>| Act { action: action.to_owned(), span, said };
        match said {
            Some(Answer::Operate(answers)) => {
                for (task, word) in answers {
                    let act = act(Some(word.clone()));
                    self.lives.entry(*task).or_default().acts.push(act);
                }
            }
            _ if told == Effect::Nothing => {}
            _ if tasks.is_empty() => self.blind_acts.push((queue.cloned(), act(None))),
            _ => {
                for task in tasks {
                    self.lives.entry(*task).or_default().acts.push(act(None));
                }
            }
        }
    }

    fn bring_together(&mut self) {
        for (at, put) in self.puts.iter().enumerate() {
            let named = put.said.as_ref().and_then(PutSaid::task);
            if let (Effect::Told, Some(task)) = (put.effect, named) {
                self.lives.entry(task).or_default().puts.push(at);
            }
            if let Some(task) = put.enqueued() {
                let seen: &mut HashSet<i64> =
                    self.seen.entry(put.wanted.payload.clone()).or_default();
                seen.insert(task);
            }
        }
        for (at, take) in self.takes.iter().enumerate() {
            self.lives.entry(take.given.task).or_default().takes.push(at);
            self.seen.entry(take.given.payload.clone()).or_default().insert(take.given.task);
        }
        for (at, end) in self.ends.iter().enumerate() {
            self.lives.entry(end.ending.task).or_default().ends.push(at);
        }
        for task in &self.standing.tasks {
            self.lives.entry(task.task).or_default();
            self.seen.entry(task.payload.clone()).or_default().insert(task.task);
        }
    }
}

fn put_answers(said: Option<&Answer>) -> Option<&Vec<PutSaid>> {
    match said {
        Some(Answer::Put(answers)) => Some(answers),
        _ => None,
    }
}
