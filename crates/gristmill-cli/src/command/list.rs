//! `list`: tasks by queue, state and key, a page at a time.

use comfy_table::Cell;
use gristmill::port::{ListRequest, Order, State, TaskFilter};
use gristmill::{Mill, QueueName, Task, Timestamp};

use super::{Session, text};
use crate::args::ListArgs;
use crate::contracts::Contracts;
use crate::failure::Failure;
use crate::output::task::{TaskJson, payload_text, progress_text, standing};
use crate::output::{count, cut, last_line, table, time};
use crate::progress;
use crate::store::Missing;

/// Show the tasks that match.
#[derive(Debug)]
pub(crate) struct List {
    filter: TaskFilter,
    /// What the payload has in it, as it is shown.
    payload: Option<String>,
    limit: usize,
}

/// Narrows to a state, or to one of the words that `stats` has for pending.
fn state(filter: TaskFilter, word: &str) -> Result<TaskFilter, Failure> {
    match word {
        "ready" => return Ok(filter.ready(time::now())),
        "delayed" => return Ok(filter.delayed(time::now())),
        "blocked" => return Ok(filter.blocked()),
        _ => {}
    }
    word.parse().map(|state| TaskFilter { state: Some(state), ..filter }).map_err(|_| {
        Failure::usage(format!(
            "'{word}' is not a state: use pending, ready, delayed, blocked, processing, failed or \
             done"
        ))
    })
}

impl List {
    pub(crate) fn meant(args: ListArgs) -> Result<Self, Failure> {
        if args.limit == 0 {
            return Err(Failure::usage("--limit 0 shows nothing: give a number from 1"));
        }
        let mut filter = TaskFilter {
            queue: args.queue.as_deref().map(QueueName::new).transpose()?,
            key: args.key.map(|key| text("--key", key)).transpose()?,
            ..TaskFilter::default()
        };
        if let Some(word) = &args.state {
            filter = state(filter, word)?;
        }
        Ok(List { filter, payload: args.payload, limit: args.limit })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        if let Some(queue) = &self.filter.queue {
            // An empty list would hide a misspelt name.
            mill.inspect().queue(queue.as_str()).await?;
        }
        let contracts = Contracts::of(&mill).await?;
        let shown = self.show(&mill, &contracts, session).await;
        mill.close().await?;
        shown
    }

    /// Shows what is found as it is found: memory holds a page, however many are wanted.
    async fn show(
        &self,
        mill: &Mill,
        contracts: &Contracts,
        session: &Session,
    ) -> Result<(), Failure> {
        let now = time::now();
        let page = mill.store().limits().page;
        let bar = progress::looking("looking for tasks");
        let failed = self.filter.state == Some(State::Failed);
        let (mut waiting, mut shown, mut after) = (Vec::new(), 0, None);
        let mut list = Growing { session, contracts, now, failed, begun: false };
        loop {
            let wanted = self.limit.saturating_sub(shown + waiting.len()).saturating_add(1);
            let request = ListRequest {
                filter: self.filter.clone(),
                order: Order::Oldest,
                after,
                // Few of them may have it: then a page is looked through at a time.
                limit: if self.payload.is_some() { page } else { wanted.min(page) },
            };
            let mut found = mill.inspect().list(request).await?;
            if let Some(part) = &self.payload {
                found.tasks.retain(|task| payload_text(task, contracts).contains(part));
            }
            waiting.extend(found.tasks);
            after = found.next;
            let more = shown + waiting.len() > self.limit;
            if more {
                waiting.truncate(self.limit - shown);
            }
            let last = more || after.is_none();
            if last || waiting.len() >= page {
                bar.finish_and_clear();
                list.add(&waiting)?;
                shown += waiting.len();
                waiting.clear();
            }
            if last {
                return list.end(shown, more);
            }
        }
    }
}

/// A list that is shown in parts.
struct Growing<'a> {
    session: &'a Session,
    contracts: &'a Contracts,
    now: Timestamp,
    failed: bool,
    /// Something was shown.
    begun: bool,
}

impl Growing<'_> {
    fn add(&mut self, tasks: &[Task]) -> Result<(), Failure> {
        let output = self.session.output;
        if tasks.is_empty() {
            return Ok(());
        }
        if !output.json {
            self.begun = true;
            return output.line(rows(tasks, self.contracts, self.now, self.failed));
        }
        let mut text = String::new();
        for task in tasks {
            text.push(if self.begun { ',' } else { '[' });
            self.begun = true;
            text.push_str(&output.text(&TaskJson::of(task, self.contracts))?);
        }
        output.bytes(text.as_bytes())
    }

    fn end(self, shown: usize, more: bool) -> Result<(), Failure> {
        let output = self.session.output;
        match (output.json, self.begun) {
            (true, true) => output.line("]"),
            (true, false) => output.line("[]"),
            (false, false) => output.line(nothing(self.failed)),
            (false, true) if more => output.line(there_are_more(shown)),
            (false, true) => Ok(()),
        }
    }
}

const fn nothing(failed: bool) -> &'static str {
    if failed { "nothing failed" } else { "no tasks" }
}

fn there_are_more(shown: usize) -> String {
    let shown = count(shown as u64, "task");
    format!("({shown} shown, there are more: see --limit)")
}

/// Shows tasks, and says whether there are more.
pub(super) fn show(
    tasks: &[Task],
    more: bool,
    contracts: &Contracts,
    now: Timestamp,
    failed: bool,
    session: &Session,
) -> Result<(), Failure> {
    if session.output.json {
        let all: Vec<TaskJson<'_>> =
            tasks.iter().map(|task| TaskJson::of(task, contracts)).collect();
        return session.output.value(&all);
    }
    if tasks.is_empty() {
        return session.output.line(nothing(failed));
    }
    session.output.line(rows(tasks, contracts, now, failed))?;
    if more {
        session.output.line(there_are_more(tasks.len()))?;
    }
    Ok(())
}

fn rows(tasks: &[Task], contracts: &Contracts, now: Timestamp, failed: bool) -> String {
    let last = if failed { "error" } else { "payload" };
    let when = if failed { "failed" } else { "runs" };
    let mut columns = vec![">id", "queue", "state", "key", ">priority", ">attempts", when, last];
    // Only where one of them says how far it is.
    let progress = tasks.iter().any(|task| progress_text(task).is_some());
    if progress {
        columns.insert(7, "progress");
    }
    let mut table = table::new(&columns);
    for task in tasks {
        let instant = if failed { task.failed_at.unwrap_or(task.run_at) } else { task.run_at };
        let text = match &task.damaged {
            _ if failed => last_line(task.error.as_deref().unwrap_or_default()).to_owned(),
            Some(why) => format!("damaged: {why}"),
            None => payload_text(task, contracts),
        };
        let mut row = vec![
            Cell::new(task.id),
            Cell::new(&task.queue),
            Cell::new(standing(task, now)),
            Cell::new(cut(task.key.as_deref().unwrap_or("-"), 24)),
            Cell::new(task.priority),
            Cell::new(task.attempts),
            Cell::new(time::relative(instant, now)),
            Cell::new(cut(&text, 60)),
        ];
        if progress {
            row.insert(7, Cell::new(progress_text(task).as_deref().unwrap_or("-")));
        }
        table.add_row(row);
    }
    table::text(&table)
}
