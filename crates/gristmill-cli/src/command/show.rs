//! `show`: one task with all its attempts.

use std::fmt::Write as _;
use std::time::Duration;

use gristmill::port::{Ending, State};
use gristmill::{Payload, Task, TaskId, Timestamp};
use serde::Serialize;

use super::Session;
use crate::args::ShowArgs;
use crate::contracts::Contracts;
use crate::failure::{Exit, Failure};
use crate::output::task::{
    EndingJson, TaskJson, payload_text, progress_text, result_text, standing,
};
use crate::output::{count, cut, last_line, time};
use crate::store::Missing;
use gristmill_contract::{duration, task_settings};
use serde_json::Value;

/// Show this task.
#[derive(Debug)]
pub(crate) struct Show {
    id: TaskId,
}

impl Show {
    pub(crate) fn meant(args: &ShowArgs) -> Result<Self, Failure> {
        Ok(Show { id: args.id.parse().map_err(Failure::usage)? })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        let task = mill.inspect().task(self.id).await?;
        let contracts = Contracts::of(&mill).await?;
        let ending = match &task {
            Some(task) if task.state != State::Done => Ending::NotKnown,
            _ => mill.wait_ending(self.id, Duration::ZERO).await?,
        };
        mill.close().await?;
        match task {
            Some(task) if session.output.json => {
                let json = TaskJson::of(&task, &contracts).with_result(ending.value());
                session.output.value(&json)
            }
            Some(task) => session.output.line(text(&task, ending.value(), &contracts, time::now())),
            None if ending != Ending::NotKnown && session.output.json => {
                let (id, ending) = (self.id.0, EndingJson::of(&ending));
                session.output.value(&EndedJson { id, ending })
            }
            None if ending != Ending::NotKnown => session.output.line(ended(self.id, &ending)),
            None => Err(Failure::new(
                Exit::Refused,
                "no_such_task",
                format!(
                    "there is no task {}: it is done, or was never put; 'gristmill list' shows \
                     what stands",
                    self.id
                ),
            )),
        }
    }
}

/// What came of a task that does not stand any more.
#[derive(Serialize)]
struct EndedJson {
    id: i64,
    #[serde(flatten)]
    ending: EndingJson,
}

fn ended(id: TaskId, ending: &Ending) -> String {
    let mut shown = format!("task      {id}\nstate     {}", ending.as_str());
    if let Some(value) = ending.value() {
        // Writing to a string cannot fail.
        let _ = write!(shown, "\nresult    {}", cut(&result_text(value), 2_000));
    }
    if let Some(error) = ending.error() {
        let _ = write!(shown, "\nerror");
        for line in error.lines() {
            let _ = write!(shown, "\n          {}", cut(line, line.len()));
        }
    }
    shown
}

fn text(task: &Task, result: Option<&Payload>, contracts: &Contracts, now: Timestamp) -> String {
    let mut lines = vec![
        ("task", task.id.to_string()),
        ("queue", task.queue.to_string()),
        ("state", standing(task, now).to_owned()),
    ];
    let instant = |at: Timestamp| format!("{} ({at})", time::relative(at, now));
    let optional = [("key", &task.key), ("group", &task.group), ("source", &task.source)];
    lines.extend(optional.into_iter().filter_map(|(name, text)| Some((name, text.clone()?))));
    lines.push(("priority", task.priority.to_string()));
    lines.push((
        "attempts",
        format!("{} ({})", task.attempts, count(u64::from(task.claims), "claim")),
    ));
    lines.push(("put", instant(task.created_at)));
    lines.push(("runs", instant(task.run_at)));
    if let Some(lease) = &task.lease {
        let slot = lease.slot.map_or_else(String::new, |slot| format!(", slot {slot}"));
        let until = time::relative(lease.until, now);
        let worker = cut(lease.worker.as_str(), 80);
        lines.push(("lease", format!("worker {worker}, ends {until}{slot}")));
        if let Some((said, text)) = lease.progress.as_ref().zip(progress_text(task)) {
            let when = time::relative(said.at, now);
            lines.push(("progress", format!("{text} (said {when})")));
        }
    }
    if task.cancel_requested {
        lines.push(("cancel", "asked for; its worker hears at the next heartbeat".to_owned()));
    }
    lines.extend(task.failed_at.map(|at| ("failed", instant(at))));
    if let Some(note) = &task.note {
        lines.push(("note", format!("{} (by {})", note.text, note.by)));
    }
    if let Some(by) = &task.resolved_by {
        lines.push(("resolved", format!("by {by}")));
    }
    let own = task_settings::shown(&task.settings).into_iter();
    let own: Vec<String> = own.map(|(name, value)| format!("{name} {}", plain(&value))).collect();
    if !own.is_empty() {
        lines.push(("own", own.join(", ")));
    }
    for (name, value) in &task.headers {
        lines.push(("header", format!("{name}: {value}")));
    }
    if let Some(kept) = &task.checkpoint {
        let text = std::str::from_utf8(kept).unwrap_or("no text");
        lines.push(("kept", format!("{} bytes: {}", kept.len(), cut(text, 500))));
    }
    lines.push(("payload", cut(&payload_text(task, contracts), 2_000)));
    if let Some(result) = result {
        lines.push(("result", cut(&result_text(result), 2_000)));
    }
    if let Some(why) = &task.damaged {
        lines.push(("damaged", format!("{}; it is not handed out", cut(why, 500))));
    }
    let mut shown = String::new();
    for (name, value) in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(shown, "{name:<9} {value}");
    }
    if let Some(error) = &task.error {
        let _ = writeln!(shown, "error");
        for line in error.lines() {
            // All of it: the store keeps no more than can be read.
            let _ = writeln!(shown, "          {}", cut(line, line.len()));
        }
    }
    for attempt in &task.history {
        let _ = writeln!(
            shown,
            "attempt   {} {} after {} by {}{}",
            time::relative(attempt.claimed_at, now),
            attempt.end.as_str(),
            duration::show(attempt.ended_at.since(attempt.claimed_at)),
            cut(attempt.worker.as_str(), 80),
            attempt
                .error
                .as_deref()
                .map_or_else(String::new, |e| format!(": {}", cut(last_line(e), 200)))
        );
    }
    shown.truncate(shown.trim_end().len());
    shown
}

/// A setting's value as people read it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(parts) => {
            let parts = parts.iter().map(|(name, value)| format!("{name}={}", plain(value)));
            parts.collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}
