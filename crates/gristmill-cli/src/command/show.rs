//! `show`: one task with all its attempts.

use std::fmt::Write as _;

use gristmill::{Task, TaskId, Timestamp};

use super::Session;
use crate::args::ShowArgs;
use crate::contracts::Contracts;
use crate::failure::{Exit, Failure};
use crate::output::task::{TaskJson, payload_text, standing};
use crate::output::{cut, last_line, time};
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
        mill.close().await?;
        match task {
            Some(task) if session.output.json => {
                session.output.value(&TaskJson::of(&task, &contracts))
            }
            Some(task) => session.output.line(text(&task, &contracts, time::now())),
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

fn text(task: &Task, contracts: &Contracts, now: Timestamp) -> String {
    let mut lines = vec![
        ("task", task.id.to_string()),
        ("queue", task.queue.to_string()),
        ("state", standing(task, now).to_owned()),
    ];
    let instant = |at: Timestamp| format!("{} ({at})", time::relative(at, now));
    let optional = [("key", &task.key), ("group", &task.group), ("source", &task.source)];
    lines.extend(optional.into_iter().filter_map(|(name, text)| Some((name, text.clone()?))));
    lines.push(("priority", task.priority.to_string()));
    lines.push(("attempts", format!("{} ({} claims)", task.attempts, task.claims)));
    lines.push(("put", instant(task.created_at)));
    lines.push(("runs", instant(task.run_at)));
    if let Some(lease) = &task.lease {
        let slot = lease.slot.map_or_else(String::new, |slot| format!(", slot {slot}"));
        let until = time::relative(lease.until, now);
        let worker = cut(lease.worker.as_str(), 80);
        lines.push(("lease", format!("worker {worker}, ends {until}{slot}")));
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
