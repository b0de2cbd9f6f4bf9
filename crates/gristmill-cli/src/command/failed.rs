//! `failed`: what was given up, what failed last first; or how often of which error.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use comfy_table::Cell;
use gristmill::port::{ListRequest, Order, State, TaskFilter};
use gristmill::{Mill, QueueName, Task, TaskId, Timestamp, error_shape};
use serde::Serialize;

use super::cause::Cause;
use super::{Session, list, text};
use crate::args::FailedArgs;
use crate::contracts::Contracts;
use crate::failure::Failure;
use crate::output::{count, cut, table, time};
use crate::progress;
use crate::store::Missing;

/// Failed tasks that are looked at to find those that failed last. With more, what was
/// put last has to do, unless all have to be looked at anyway.
const LOOKED_AT: u64 = 50_000;

/// Most errors that are told apart.
const ERRORS: usize = 10_000;
/// What the others are counted as.
const OTHERS: &str = "(other errors)";

/// Show what failed.
#[derive(Debug)]
pub(crate) struct Failed {
    filter: TaskFilter,
    cause: Cause,
    by_error: bool,
    limit: usize,
}

/// Failures of one shape.
#[derive(Debug)]
struct Group {
    count: u64,
    first: Timestamp,
    last: Timestamp,
    queues: BTreeSet<QueueName>,
    /// The one that failed last.
    example: TaskId,
}

/// The same under its stable names.
#[derive(Serialize)]
struct GroupJson<'a> {
    error: &'a str,
    count: u64,
    first: String,
    last: String,
    queues: Vec<&'a str>,
    example: i64,
}

impl Failed {
    pub(crate) fn meant(args: FailedArgs) -> Result<Self, Failure> {
        match args.state.as_deref() {
            None | Some("failed") => {}
            Some(other) => {
                return Err(Failure::usage(format!(
                    "'failed' lists failed tasks only: use 'gristmill list --state {other}'"
                )));
            }
        }
        if args.limit == 0 {
            return Err(Failure::usage("--limit 0 shows nothing: give a number from 1"));
        }
        let cause = Cause::meant(args.cause)?;
        let filter = TaskFilter {
            queue: args.queue.as_deref().map(QueueName::new).transpose()?,
            state: Some(State::Failed),
            key: args.key.map(|key| text("--key", key)).transpose()?,
            error_contains: cause.contained().map(str::to_owned),
            ..TaskFilter::default()
        };
        Ok(Failed { filter, cause, by_error: args.by_error, limit: args.limit })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        let stand = match &self.filter.queue {
            // An empty list would hide a misspelt name.
            Some(queue) => mill.inspect().queue(queue.as_str()).await?.failed,
            None => mill.inspect().stats().await?.iter().map(|queue| queue.failed).sum(),
        };
        let shown = if self.by_error {
            self.by_error(&mill, stand, session).await
        } else {
            self.tasks(&mill, stand, session).await
        };
        mill.close().await?;
        shown
    }

    /// Every failed task that is meant, a page at a time.
    async fn each(
        &self,
        mill: &Mill,
        stand: u64,
        now: Timestamp,
        mut meant: impl FnMut(Task) -> bool,
    ) -> Result<(), Failure> {
        let bar = progress::of_tasks(stand);
        let mut request = ListRequest {
            filter: self.filter.clone(),
            order: Order::Newest,
            after: None,
            limit: mill.store().limits().page,
        };
        loop {
            let page = mill.inspect().list(request.clone()).await?;
            bar.inc(page.tasks.len() as u64);
            for task in page.tasks {
                if self.cause.matches(&task, now) && !meant(task) {
                    bar.finish_and_clear();
                    return Ok(());
                }
            }
            request.after = page.next;
            if request.after.is_none() {
                bar.finish_and_clear();
                return Ok(());
            }
        }
    }

    async fn tasks(&self, mill: &Mill, stand: u64, session: &Session) -> Result<(), Failure> {
        let now = time::now();
        // All are looked at in the order they were put; what failed last is kept.
        let by_time = stand <= LOOKED_AT || !self.cause.is_any() || self.filter.key.is_some();
        let mut found: BTreeMap<Reverse<(Timestamp, TaskId)>, Task> = BTreeMap::new();
        self.each(mill, stand, now, |task| {
            let failed = task.failed_at.unwrap_or(task.run_at);
            found.insert(Reverse((failed, task.id)), task);
            if found.len() <= self.limit.saturating_add(1) {
                return true;
            }
            if by_time {
                found.pop_last();
            }
            by_time
        })
        .await?;
        let mut tasks: Vec<Task> = found.into_values().collect();
        if !by_time {
            tasks.sort_by_key(|task| Reverse(task.id));
        }
        let more = tasks.len() > self.limit;
        tasks.truncate(self.limit);
        let contracts = Contracts::of(mill).await?;
        if !by_time && !session.output.json {
            let all = count(stand, "task");
            session.output.warn(&format!(
                "{all} failed: what was put last comes first; --since 1h looks at when each failed"
            ));
        }
        list::show(&tasks, more, &contracts, now, true, session)
    }

    async fn by_error(&self, mill: &Mill, stand: u64, session: &Session) -> Result<(), Failure> {
        let now = time::now();
        let mut groups: BTreeMap<String, Group> = BTreeMap::new();
        self.each(mill, stand, now, |task| {
            let mut shape = error_shape(task.error.as_deref().unwrap_or_default());
            if groups.len() >= ERRORS && !groups.contains_key(&shape) {
                shape = OTHERS.to_owned();
            }
            let failed = task.failed_at.unwrap_or(task.run_at);
            let group = groups.entry(shape).or_insert_with(|| Group {
                count: 0,
                first: failed,
                last: failed,
                queues: BTreeSet::new(),
                example: task.id,
            });
            group.count += 1;
            group.first = group.first.min(failed);
            if failed >= group.last {
                (group.last, group.example) = (failed, task.id);
            }
            group.queues.insert(task.queue);
            true
        })
        .await?;
        let mut groups: Vec<(String, Group)> = groups.into_iter().collect();
        groups.sort_by_key(|(_, group)| Reverse((group.count, group.last)));
        let errors = groups.len();
        groups.truncate(self.limit);
        if session.output.json {
            let all: Vec<GroupJson<'_>> = groups.iter().map(as_json).collect();
            return session.output.value(&all);
        }
        if groups.is_empty() {
            return session.output.line("nothing failed");
        }
        let mut shown = table::new(&[">failed", "first", "last", "queue", ">example", "error"]);
        for (error, group) in &groups {
            let queues: Vec<&str> = group.queues.iter().map(QueueName::as_str).collect();
            shown.add_row(vec![
                Cell::new(group.count),
                Cell::new(time::relative(group.first, now)),
                Cell::new(time::relative(group.last, now)),
                Cell::new(cut(&queues.join(", "), 40)),
                Cell::new(group.example),
                Cell::new(if error.is_empty() { "(no error text)" } else { error }),
            ]);
        }
        session.output.line(table::text(&shown))?;
        if errors > groups.len() {
            let shown = groups.len();
            session.output.line(format_args!("({shown} of {errors} errors shown: see --limit)"))?;
        }
        Ok(())
    }
}

fn as_json<'a>((error, group): &'a (String, Group)) -> GroupJson<'a> {
    GroupJson {
        error,
        count: group.count,
        first: group.first.to_string(),
        last: group.last.to_string(),
        queues: group.queues.iter().map(QueueName::as_str).collect(),
        example: group.example.0,
    }
}
