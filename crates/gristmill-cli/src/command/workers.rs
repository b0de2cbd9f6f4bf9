//! `workers`: who works, on what, and whose word they follow.

use std::collections::HashMap;

use comfy_table::Cell;
use gristmill::port::{Assignment, ListRequest, Order, State, TaskFilter, WorkerView};
use gristmill::{Mill, StoreError, Task};
use serde_json::{Value, json};

use super::Session;
use crate::failure::Failure;
use crate::output::task::{ProgressJson, progress_text};
use crate::output::{count, table, time};
use crate::store::Missing;
use gristmill_contract::duration;

/// Running tasks of which it is shown how far they are: each comes with its payload.
const RUNNING: usize = 200;

/// Show the workers heard of lately.
#[derive(Debug)]
pub(crate) struct Workers;

impl Workers {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        let (workers, word) = (mill.inspect().workers().await?, mill.inspect().assignment().await?);
        let orders = match mill.worker_orders().await {
            Ok(orders) => orders,
            // Who may look need not be told what is wanted of workers.
            Err(gristmill::Error::Store(StoreError::Permission(_))) => HashMap::new(),
            Err(error) => return Err(error.into()),
        };
        let quiet = |view: &WorkerView| orders.get(&view.report.id).is_some_and(|one| one.quiet);
        let running = running(&mill).await?;
        mill.close().await?;
        if session.output.json {
            let as_json = |view| as_json(view, word.as_ref(), quiet(view), &running);
            return session.output.value(&workers.iter().map(as_json).collect::<Vec<Value>>());
        }
        if workers.is_empty() {
            return session.output.line("no workers lately: 'gristmill up' or 'gristmill work'");
        }
        session.output.line(text(&workers, &quiet))?;
        if running.iter().any(|task| progress_text(task).is_some()) {
            session.output.line(format_args!("\n{}", progress(&running)))?;
        }
        match word {
            Some(word) => session.output.line(format_args!("\n{}", word_text(&word))),
            None => Ok(()),
        }
    }
}

/// Tasks that run now: the oldest, as far as one page goes.
async fn running(mill: &Mill) -> Result<Vec<Task>, Failure> {
    let filter = TaskFilter { state: Some(State::Processing), ..TaskFilter::default() };
    let request = ListRequest { filter, order: Order::Oldest, after: None, limit: RUNNING };
    Ok(mill.inspect().list(request).await?.tasks)
}

/// Who is how far with what, where handlers say so.
fn progress(running: &[Task]) -> String {
    let mut table = table::new(&["worker", ">task", "queue", "progress", "said"]);
    for task in running {
        let said = task.lease.as_ref().and_then(|lease| Some((lease, lease.progress.as_ref()?)));
        if let (Some((lease, said)), Some(text)) = (said, progress_text(task)) {
            table.add_row(vec![
                Cell::new(&lease.worker),
                Cell::new(task.id),
                Cell::new(&task.queue),
                Cell::new(text),
                Cell::new(time::relative(said.at, time::now())),
            ]);
        }
    }
    table::text(&table)
}

/// How many processors serve each queue alone, and how many rotate.
fn serving(view: &WorkerView) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for processor in &view.report.processors {
        let post = processor.queue.as_ref().map_or("rotating", |queue| queue.as_str());
        match counts.iter_mut().find(|(known, _)| *known == post) {
            Some((_, count)) => *count += 1,
            None => counts.push((post, 1)),
        }
    }
    let parts: Vec<String> = counts.iter().map(|(post, n)| format!("{n} {post}")).collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }
}

fn held(view: &WorkerView) -> u64 {
    view.report.processors.iter().map(|processor| u64::from(processor.holding)).sum()
}

fn text(workers: &[WorkerView], quiet: &dyn Fn(&WorkerView) -> bool) -> String {
    let mut table = table::new(&[
        "worker",
        "host",
        ">pid",
        "queues",
        ">processors",
        "serving",
        ">held",
        ">term",
        "heard",
        "",
    ]);
    for view in workers {
        let report = &view.report;
        let queues: Vec<&str> = report.queues.iter().map(|queue| queue.as_str()).collect();
        table.add_row(vec![
            Cell::new(&report.id),
            Cell::new(&report.host),
            Cell::new(report.pid),
            Cell::new(queues.join(", ")),
            Cell::new(report.processors.len()),
            Cell::new(serving(view)),
            Cell::new(held(view)),
            Cell::new(report.follows_term.map_or_else(|| "-".to_owned(), |term| term.to_string())),
            Cell::new(format!("{} ago", duration::show(view.silent_for))),
            table::warning(match (report.stopping, quiet(view)) {
                (true, _) => "stopping",
                (false, true) => "quiet",
                (false, false) => "",
            }),
        ]);
    }
    table::text(&table)
}

/// The manager's last word in one sentence.
fn word_text(word: &Assignment) -> String {
    let mut queues: Vec<(&str, u32)> = Vec::new();
    for share in &word.shares {
        match queues.iter_mut().find(|(known, _)| *known == share.queue.as_str()) {
            Some((_, processors)) => *processors += share.processors,
            None => queues.push((share.queue.as_str(), share.processors)),
        }
    }
    let told: Vec<String> = queues
        .iter()
        .map(|(queue, n)| format!("{} for {queue}", count(u64::from(*n), "processor")))
        .collect();
    let told = if told.is_empty() { "all processors rotate".to_owned() } else { told.join(", ") };
    let when = time::relative(word.published_at, time::now());
    format!("the manager of term {} said {when}: {told}", word.term)
}

fn as_json(view: &WorkerView, word: Option<&Assignment>, quiet: bool, running: &[Task]) -> Value {
    let report = &view.report;
    let millis = |span: std::time::Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let queues: Vec<&str> = report.queues.iter().map(|queue| queue.as_str()).collect();
    let processors: Vec<Value> = report
        .processors
        .iter()
        .map(|processor| {
            json!({
                "queue": processor.queue.as_ref().map(|queue| queue.as_str()),
                "holding": processor.holding,
                "cycle_ms": millis(processor.cycle),
            })
        })
        .collect();
    let shares = word.map_or(&[][..], |word| &word.shares);
    let assigned: Vec<Value> = shares
        .iter()
        .filter(|share| share.worker == report.id)
        .map(|share| json!({ "queue": share.queue.as_str(), "processors": share.processors }))
        .collect();
    let of_this = |task: &&Task| task.lease.as_ref().is_some_and(|l| l.worker == report.id);
    let progress: Vec<Value> = running
        .iter()
        .filter(of_this)
        .filter_map(|task| {
            let progress = ProgressJson::of(task)?;
            Some(json!({ "task": task.id.0, "queue": task.queue.as_str(), "progress": progress }))
        })
        .collect();
    json!({
        "worker": report.id.as_str(),
        "host": report.host,
        "pid": report.pid,
        "version": report.version,
        "queues": queues,
        "processors": processors,
        "holding": held(view),
        "running": progress,
        "follows_term": report.follows_term,
        "assigned": assigned,
        "manager_term": word.map(|word| word.term),
        "stopping": report.stopping,
        "quiet": quiet,
        "since": view.since.to_string(),
        "silent_ms": millis(view.silent_for),
    })
}
