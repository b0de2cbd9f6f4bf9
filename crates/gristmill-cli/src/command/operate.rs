//! `retry`, `resolve`, `discard` and `cancel`: what operators do to tasks, in
//! bounded steps so that a million of them block nobody.

use std::collections::BTreeMap;

use gristmill::port::{
    Action, ListRequest, Operation, OperationAnswer, Order, Selection, Start, State, TaskFilter,
};
use gristmill::{Mill, QueueName, TaskId};
use serde_json::{Value, json};

use super::cause::Cause;
use super::{Session, tell, text, text_up_to, who};
use crate::args::{CauseArgs, OperateArgs};
use crate::failure::{Exit, Failure};
use crate::output::{count, time};
use crate::progress;
use crate::store::Missing;
use gristmill_server::Deed;

/// Most tasks that are named one by one in the answer.
const NAMED: usize = 100;

/// Do this to those tasks.
#[derive(Debug)]
pub(crate) struct Operate {
    action: Action,
    which: Which,
    cause: Cause,
    /// At most this many.
    limit: Option<u64>,
    note: Option<String>,
    by: String,
    /// When what is retried may run again.
    start: Start,
}

#[derive(Debug)]
enum Which {
    Ids(Vec<TaskId>),
    Matching(TaskFilter),
}

impl Operate {
    pub(crate) fn meant(
        action: Action,
        args: OperateArgs,
        cause: CauseArgs,
    ) -> Result<Self, Failure> {
        let cause = Cause::meant(cause)?;
        if args.limit == Some(0) {
            return Err(Failure::usage("--limit 0 does nothing: give a number from 1"));
        }
        if !args.ids.is_empty() && !cause.is_any() {
            return Err(Failure::usage("ids say which tasks: leave --error and --since out"));
        }
        let which = if !args.ids.is_empty() {
            let ids = args.ids.iter().map(|id| id.parse::<TaskId>()).collect::<Result<_, _>>();
            Which::Ids(ids.map_err(Failure::usage)?)
        } else if args.all || args.queue.is_some() || args.key.is_some() || !cause.is_any() {
            Which::Matching(TaskFilter {
                queue: args.queue.as_deref().map(QueueName::new).transpose()?,
                key: args.key.map(|key| text("--key", key)).transpose()?,
                error_contains: cause.contained().map(str::to_owned),
                ..TaskFilter::default()
            })
        } else {
            let by = if action == Action::Cancel { "" } else { "--error, --since, " };
            return Err(Failure::usage(format!(
                "which tasks? name ids, --queue, --key, {by}or, for everything, --all: \
                 'gristmill {} --help' has examples",
                verb(action)
            )));
        };
        let note = args.note.map(|note| text_up_to(4096, "--note", note)).transpose()?;
        let (by, start) = (who(args.by)?, Start::Now);
        Ok(Operate { action, which, cause, limit: args.limit, note, by, start })
    }

    /// The same, at a time.
    pub(crate) fn starting(self, start: Start) -> Self {
        Operate { start, ..self }
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        let mut result = Tally::default();
        match &self.which {
            Which::Ids(ids) => {
                for ids in ids.chunks(mill.store().limits().page) {
                    let selection = Selection::Ids(ids.to_vec());
                    self.step(&mill, selection, &mut result).await?;
                }
            }
            Which::Matching(filter) => self.matching(&mill, filter, &mut result).await?,
        }
        let queue = match &self.which {
            Which::Ids(_) => None,
            Which::Matching(filter) => filter.queue.as_ref().map(ToString::to_string),
        };
        let (moved, note) = (Some(result.moved), self.note.clone());
        let action = format!("tasks.{}", self.action.as_str());
        tell(&mill, &self.by, &action, Deed { queue, moved, note, ..Deed::default() }).await;
        mill.close().await?;
        session.output.either(&self.json(&result), self.sentence(&result))?;
        let by_id = matches!(self.which, Which::Ids(_));
        if by_id && !result.not_moved.is_empty() {
            let left: u64 = result.left();
            let (id, why) = result
                .not_moved
                .first()
                .map_or((TaskId(0), String::new()), |(id, a)| (*id, reason(*a)));
            let gone = matches!(result.not_moved.first(), Some((_, OperationAnswer::Gone)));
            let more = match (gone, self.action) {
                (false, _) => format!("'gristmill show {id}' tells more"),
                (true, Action::Cancel) => "'gristmill list' shows what stands".to_owned(),
                (true, _) => "'gristmill failed' shows what failed".to_owned(),
            };
            return Err(Failure::new(
                Exit::Refused,
                "not_moved",
                format!(
                    "{} not {}: task {id} {why}; {more}",
                    count(left, "task"),
                    done_word(self.action)
                ),
            ));
        }
        Ok(())
    }

    async fn matching(
        &self,
        mill: &Mill,
        filter: &TaskFilter,
        result: &mut Tally,
    ) -> Result<(), Failure> {
        if let Some(queue) = &filter.queue {
            mill.inspect().queue(queue.as_str()).await?;
        }
        let bar = progress::steps(self.action.as_str());
        let mut after = None;
        loop {
            after = if self.cause.is_only_contained() {
                let selection = Selection::Matching { filter: filter.clone(), after };
                self.step(mill, selection, result).await?
            } else {
                self.chosen(mill, filter, after, result).await?
            };
            bar.set_position(result.moved + result.left());
            if after.is_none() || self.room(result) == 0 {
                bar.finish_and_clear();
                return Ok(());
            }
        }
    }

    /// One step over failed tasks that no store can tell apart: they are looked at here,
    /// and moved by their ids.
    async fn chosen(
        &self,
        mill: &Mill,
        filter: &TaskFilter,
        after: Option<TaskId>,
        result: &mut Tally,
    ) -> Result<Option<TaskId>, Failure> {
        let now = time::now();
        let request = ListRequest {
            filter: TaskFilter { state: Some(State::Failed), ..filter.clone() },
            order: Order::Oldest,
            after,
            limit: mill.store().limits().page,
        };
        let page = mill.inspect().list(request).await?;
        let meant = page.tasks.iter().filter(|task| self.cause.matches(task, now));
        let mut ids: Vec<TaskId> = meant.map(|task| task.id).collect();
        // Some may not be movable: the others behind them are.
        while !ids.is_empty() && self.room(result) > 0 {
            let rest = ids.split_off(ids.len().min(self.room(result)));
            self.step(mill, Selection::Ids(std::mem::replace(&mut ids, rest)), result).await?;
        }
        Ok(page.next)
    }

    /// How many more may be moved.
    fn room(&self, result: &Tally) -> usize {
        let left = self.limit.map(|limit| limit.saturating_sub(result.moved));
        left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX))
    }

    async fn step(
        &self,
        mill: &Mill,
        selection: Selection,
        result: &mut Tally,
    ) -> Result<Option<TaskId>, Failure> {
        let report = mill
            .store()
            .operate(Operation {
                action: self.action,
                selection,
                limit: mill.store().limits().page.min(self.room(result)),
                by: self.by.clone(),
                note: self.note.clone(),
                start: self.start,
            })
            .await?;
        for (id, answer) in report.answers {
            result.take(id, answer);
        }
        Ok(report.next)
    }

    fn json(&self, result: &Tally) -> Value {
        let not_moved: Vec<Value> = result
            .not_moved
            .iter()
            .map(|(id, answer)| {
                let (duplicate_of, state) = match answer {
                    OperationAnswer::DuplicateOf(other) => (Some(other.0), None),
                    OperationAnswer::WrongState(state) => (None, Some(state.as_str())),
                    _ => (None, None),
                };
                json!({
                    "id": id.0, "reason": word(*answer), "duplicate_of": duplicate_of, "state": state,
                })
            })
            .collect();
        json!({
            "action": self.action.as_str(),
            "moved": result.moved,
            "counts": result.counts,
            "not_moved": not_moved,
        })
    }

    fn sentence(&self, result: &Tally) -> String {
        let mut sentence = format!("{} {}", count(result.moved, "task"), done_word(self.action));
        for (word, number) in &result.counts {
            match *word {
                "moved" => {}
                "cancel_requested" => {
                    sentence += &format!(" ({number} of them running: asked to stop)");
                }
                "duplicate" => {
                    sentence +=
                        &format!("; {number} stay failed behind a waiting task of their key");
                }
                "wrong_state" => sentence += &format!("; {number} in another state"),
                _ => sentence += &format!("; {number} not there"),
            }
        }
        sentence
    }
}

/// What all steps did together.
#[derive(Debug, Default)]
struct Tally {
    moved: u64,
    counts: BTreeMap<&'static str, u64>,
    not_moved: Vec<(TaskId, OperationAnswer)>,
}

impl Tally {
    fn take(&mut self, id: TaskId, answer: OperationAnswer) {
        *self.counts.entry(word(answer)).or_default() += 1;
        match answer {
            OperationAnswer::Moved | OperationAnswer::CancelRequested => self.moved += 1,
            _ if self.not_moved.len() < NAMED => self.not_moved.push((id, answer)),
            _ => {}
        }
    }

    /// Tasks that stayed as they were.
    fn left(&self) -> u64 {
        self.counts.values().sum::<u64>() - self.moved
    }
}

const fn word(answer: OperationAnswer) -> &'static str {
    match answer {
        OperationAnswer::Moved => "moved",
        OperationAnswer::CancelRequested => "cancel_requested",
        OperationAnswer::DuplicateOf(_) => "duplicate",
        OperationAnswer::WrongState(_) => "wrong_state",
        OperationAnswer::Held => "held",
        OperationAnswer::Gone => "gone",
    }
}

fn reason(answer: OperationAnswer) -> String {
    match answer {
        OperationAnswer::DuplicateOf(other) => format!("waits behind task {other} of its key"),
        OperationAnswer::WrongState(state) => format!("is {state}"),
        OperationAnswer::Held => {
            "is held by an open transaction; 'gristmill doctor' names it".to_owned()
        }
        _ => "is not there".to_owned(),
    }
}

/// The command's name.
const fn verb(action: Action) -> &'static str {
    match action {
        Action::RetryFresh => Action::Retry.as_str(),
        other => other.as_str(),
    }
}

const fn done_word(action: Action) -> &'static str {
    match action {
        Action::Retry | Action::RetryFresh => "retried",
        Action::Resolve => "resolved",
        Action::Discard => "discarded",
        Action::Cancel => "cancelled",
    }
}
