//! Tasks in the configuration that are put once.

use gristmill::Payload;
use gristmill::port::name::did_you_mean;
use gristmill::port::{Limits, NewTask, Start};

use gristmill_contract::yaml::{Fields, Mistakes, Node};

use super::{Config, Seed, contracts, own};
use gristmill_contract::duration;

const FIELDS: &[&str] = &[
    "queue",
    "payload",
    "id",
    "key",
    "group",
    "source",
    "priority",
    "delay",
    "at",
    "timeout",
    "max_attempts",
    "backoff",
];

/// Reads one task to seed.
pub(crate) fn read(node: &Node, config: &mut Config, mistakes: &mut Mistakes) {
    let Some(mut fields) = Fields::of(node, "a task to seed", mistakes) else { return };
    let before = mistakes.count();
    let queue = fields.required_text("queue", mistakes).and_then(|(name, at)| {
        let known = config.queues.iter().map(|queue| queue.name.clone());
        let found = known.clone().find(|queue| queue.as_str() == name);
        if found.is_none() {
            let names: Vec<String> = known.map(|name| name.to_string()).collect();
            let hint = did_you_mean(&name, names.iter().map(String::as_str))
                .map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
            mistakes.add(at, format!("there is no queue '{name}' in this file{hint}"));
        }
        found
    });
    let id = fields.required_text("id", mistakes);
    if fields.node("payload").is_none() {
        mistakes.add(node, "a task to seed needs a field 'payload'".to_owned());
    }
    let task = NewTask {
        payload: fields.node("payload").map_or_else(Payload::default, |node| {
            contracts::payload(node, queue.as_ref(), config, mistakes)
        }),
        id: id.as_ref().map(|(id, _)| id.clone()),
        key: fields.text("key", mistakes),
        group: fields.text("group", mistakes),
        source: fields.text("source", mistakes),
        priority: priority(&mut fields, mistakes),
        start: start(&mut fields, mistakes),
        settings: own::read(&fields, mistakes),
        ..NewTask::default()
    };
    fields.done(FIELDS, mistakes);
    if let Some(refusal) = Limits::default().refuse(&task) {
        mistakes.add(node, refusal.to_string());
    }
    if let (Some((id, at)), Some(queue)) = (&id, &queue)
        && config.seed.iter().any(|s| s.queue == *queue && s.task.id.as_ref() == Some(id))
    {
        mistakes.add(at, format!("id '{id}' is given to two tasks of queue '{queue}'"));
    }
    if let Some(queue) = queue
        && mistakes.count() == before
    {
        config.seed.push(Seed { queue, task });
    }
}

fn priority(fields: &mut Fields<'_>, mistakes: &mut Mistakes) -> i16 {
    let Some(node) = fields.node("priority") else { return 0 };
    node.scalar().and_then(|text| text.parse().ok()).unwrap_or_else(|| {
        let (least, most) = (i16::MIN, i16::MAX);
        mistakes.add(node, format!("priority wants a whole number from {least} to {most}"));
        0
    })
}

fn start(fields: &mut Fields<'_>, mistakes: &mut Mistakes) -> Start {
    let (delay, at) = (fields.node("delay"), fields.node("at"));
    match (delay, at) {
        (Some(_), Some(at)) => {
            mistakes.add(at, "a task starts after a delay or at a time: choose one".to_owned());
            Start::Now
        }
        (Some(node), None) => {
            let text = node.scalar().unwrap_or_default();
            duration::parse(&text).map_or_else(
                |why| {
                    mistakes.add(node, format!("delay: {why}"));
                    Start::Now
                },
                Start::After,
            )
        }
        (None, Some(node)) => {
            let text = node.scalar().unwrap_or_default();
            text.parse().map_or_else(
                |why| {
                    mistakes.add(node, format!("at: {why}"));
                    Start::Now
                },
                Start::At,
            )
        }
        (None, None) => Start::Now,
    }
}
