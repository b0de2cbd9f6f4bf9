//! A form that puts a task, new or as an edited copy of one that stands.

use gristmill::port::{Action, Operation, PutRequest, Selection};
use gristmill::{PutAnswer, QueueName, Task, TaskState, Timestamp};
use gristmill_contract::{Field, QueueContract, Scalar};
use maud::{Markup, html};
use serde_json::{Map, Value, value::RawValue};

use super::fields::Fields;
use super::layout::{self, Frame, Section};
use super::task::payload::editable;
use super::view::View;
use super::{flash, form};
use crate::call::Call;
use crate::known::Queues;
use crate::message::fields::{id, queue};
use crate::message::task::TaskIn;
use crate::problem::{Answer, FAULT, NO_TASK, Problem, READ_ONLY};
use crate::route::put::fitted;

/// What the form begins with.
#[derive(Default)]
struct Begin {
    queue: String,
    payload: String,
    key: String,
    group: String,
    source: String,
    priority: String,
    /// The task that it is a copy of, if that failed: it may be resolved with the put.
    resolves: Option<String>,
    copied: Option<String>,
    /// The fields of its queue's contract, with their types.
    fields: Vec<(String, String)>,
}

/// What a payload of a contract begins with: every field that must be there.
fn skeleton(contract: &QueueContract, now: Timestamp) -> String {
    let value = |field: &Field| match field.kind.scalar {
        _ if field.kind.list => "[]".to_owned(),
        Scalar::String | Scalar::Bytes => "\"\"".to_owned(),
        Scalar::Bool => "false".to_owned(),
        Scalar::Float64 => "0.0".to_owned(),
        Scalar::Timestamp => format!("\"{now}\""),
        _ => "0".to_owned(),
    };
    let needed = contract.fields.iter().filter(|field| !field.kind.optional);
    let lines: Vec<String> =
        needed.map(|field| format!("  \"{}\": {}", field.name, value(field))).collect();
    if lines.is_empty() { "{}".to_owned() } else { format!("{{\n{}\n}}", lines.join(",\n")) }
}

impl Begin {
    /// An empty one, by the contract of its queue.
    fn new(queue: String, queues: &Queues, now: Timestamp) -> Self {
        let known = QueueName::new(&queue).ok();
        let contract = known.as_ref().and_then(|queue| queues.contract(queue));
        let payload = contract.map_or_else(|| "{}".to_owned(), |known| skeleton(known, now));
        Begin { queue, payload, ..Begin::default() }
    }

    fn with_fields(self, queues: &Queues) -> Self {
        let known = QueueName::new(&self.queue).ok();
        let contract = known.as_ref().and_then(|queue| queues.contract(queue));
        let fields = contract.map_or_else(Vec::new, |known| {
            known.fields.iter().map(|one| (one.name.clone(), one.kind.to_string())).collect()
        });
        Begin { fields, ..self }
    }

    fn copy(task: &Task, queues: &Queues) -> Answer<Self> {
        let text = || {
            let why = "its payload is neither JSON nor text of its contract";
            Problem::field("copy", why)
        };
        let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
        Ok(Begin {
            queue: task.queue.to_string(),
            payload: editable(task, queues).ok_or_else(text)?,
            key: or_empty(&task.key),
            group: or_empty(&task.group),
            source: or_empty(&task.source),
            priority: if task.priority == 0 { String::new() } else { task.priority.to_string() },
            resolves: (task.state == TaskState::Failed).then(|| task.id.to_string()),
            copied: Some(task.id.to_string()),
            fields: Vec::new(),
        })
    }
}

/// `GET /put`.
pub(crate) async fn page(call: Call, view: View) -> Answer {
    if !view.viewer.may_act {
        return Err(Problem::new(&READ_ONLY, "nothing can be put from these pages"));
    }
    let service = call.service;
    let queues = service.store.queues().await?;
    let known = service.known.queues(&service).await?;
    let begin = match view.query.one("copy") {
        Some(copy) => {
            let id = id("copy", &copy)?;
            let none = || Problem::new(&NO_TASK, format!("no task {id} stands"));
            let task = service.store.get(id).await?.ok_or_else(none)?;
            Begin::copy(&task, &known)?
        }
        None => {
            // Without a choice it is the first: a browser would show that one, too.
            let first = || queues.first().map(|queue| queue.name.to_string());
            let queue = view.query.one("queue").or_else(first).unwrap_or_default();
            Begin::new(queue, &known, view.now)
        }
    };
    let begin = begin.with_fields(&known);
    let names: Vec<&str> = queues.iter().map(|queue| queue.name.as_str()).collect();
    let body = html! {
        h1 { @if let Some(of) = &begin.copied { "Put an edited copy of #" (of) } @else { "Put a task" } }
        @if names.is_empty() {
            section.empty {
                h2 { "No queue yet" }
                pre { code { "gristmill queue add emails" } }
            }
        } @else { (fill_in(&view, &begin, &names)) }
    };
    Ok(layout::page(&view, &Frame::of(Section::Put, "Put a task").still(), &body))
}

fn fill_in(view: &View, begin: &Begin, queues: &[&str]) -> Markup {
    let field = |name: &'static str, words: &'static str, value: &str, hint: &'static str| {
        html! {
            label { span { (words) }
                input name=(name) value=(value) placeholder=(hint) autocomplete="off" maxlength="512"; }
        }
    };
    html! {
        form.stack.card method="post" action=(view.href("put")) {
            label { span { "Queue" }
                select name="queue" data-begins=[begin.copied.is_none().then_some("put")] {
                    @for name in queues { option selected[begin.queue == *name] { (name) } }
                } }
            label { span { "Payload: JSON, or the fields of the queue’s contract" }
                textarea name="payload" required spellcheck="false" { "\n" (begin.payload) } }
            @if !begin.fields.is_empty() {
                p.scope { "By its contract: "
                    @for (at, (name, kind)) in begin.fields.iter().enumerate() {
                        @if at > 0 { ", " } code { (name) } " " (kind)
                    } }
            }
            div.two {
                (field("key", "Key (what it is about)", &begin.key, "none"))
                (field("delay", "Delay", "", "now, or 5s, 2h"))
                (field("priority", "Priority (lower runs first)", &begin.priority, "0"))
                (field("group", "Group", &begin.group, "none"))
                (field("source", "Source", &begin.source, "none"))
            }
            @if let Some(resolves) = &begin.resolves {
                label.tick {
                    input type="checkbox" name="resolves" value=(resolves) checked;
                    span { "Resolve #" (resolves) " with it" }
                }
                (field("note", "Why it is resolved (a note)", "", ""))
            }
            div.buttons {
                button.main { "Put" }
                a href=(view.href("tasks")) { "Leave it" }
            }
        }
    }
}

/// The task that a form means, read as any task over HTTP.
fn meant(fields: &Fields) -> Answer<TaskIn> {
    let mut said = Map::new();
    for name in ["key", "delay", "group", "source"] {
        if let Some(value) = fields.one(name) {
            said.insert(name.to_owned(), Value::String(value));
        }
    }
    if let Some(priority) = fields.one("priority") {
        let n: i16 = priority.parse().map_err(|_| {
            Problem::field("priority", "a priority is a whole number from -32768 to 32767")
        })?;
        said.insert("priority".to_owned(), n.into());
    }
    let payload = fields.one("payload").unwrap_or_default();
    let payload: &RawValue =
        crate::body::parse(payload.as_bytes()).map_err(|problem| problem.at("payload"))?;
    // The payload's own spelling is kept, so it goes in as text.
    let mut text = Value::Object(said).to_string();
    text.pop();
    let comma = if text.len() > 1 { "," } else { "" };
    crate::body::parse(format!("{text}{comma}\"payload\":{payload}}}").as_bytes())
}

/// `POST /put`.
pub(crate) async fn put(call: Call, view: View) -> Answer {
    let (service, fields) = form::read(call).await?;
    let to = queue("queue", &fields.one("queue").unwrap_or_default())?;
    let queues = service.known.expect(&service, &to).await?;
    let task = fitted(meant(&fields)?, &to, &queues)?;
    let resolves = fields.one("resolves").map(|one| id("resolves", &one)).transpose()?;
    let report =
        service.store.put(PutRequest { queue: to, tasks: vec![task], atomic: false }).await?;
    let answer = report.answers.into_iter().next();
    let (did, stands) =
        match answer.ok_or_else(|| Problem::new(&FAULT, "a put without an answer"))? {
            PutAnswer::Enqueued { id, .. } => ("put", id),
            PutAnswer::Duplicate { id, .. } => ("duplicate", id),
            PutAnswer::Replaced { id, .. } => ("replaced", id),
            PutAnswer::Refused(why) => return Err(Problem::refused(&why)),
        };
    // After the put: killed in between, the failed one still waits for somebody.
    if let Some(failed) = resolves.filter(|_| did != "duplicate") {
        let note = super::task::act::note(&fields)?;
        let note = note.unwrap_or_else(|| format!("put again, edited, as #{stands}"));
        let operation = Operation {
            action: Action::Resolve,
            selection: Selection::Ids(vec![failed]),
            limit: 1,
            by: view.viewer.name.clone(),
            note: Some(note),
            start: gristmill::port::Start::Now,
        };
        service.store.operate(operation).await?;
    }
    flash::see(&format!("tasks/{stands}"), did, &[])
}
