//! Queues: what is set, by whom, and who serves them.

use std::collections::BTreeMap;

use gristmill::port::{Origin, Queue, WorkerView};
use gristmill::{QueueStats, SettingsPatch, StoreError};
use gristmill_contract::settings;
use gristmill_text::ControlPlane;
use maud::{Markup, html};

use super::attention::HEARD_OF;
use super::chart;
use super::fields::query;
use super::layout::{self, Frame, Section};
use super::overview::processors;
use super::pill::pill;
use super::view::View;
use super::words::{age, counted, excerpt, number};
use super::{flash, form};
use crate::call::Call;
use crate::problem::{Answer, Problem};
use crate::service::Service;

/// Most queues, and most workers of one, on a page.
const LISTED: usize = 500;
const WORKERS: usize = 50;

/// `GET /queues`.
pub(crate) async fn page(call: Call, view: View) -> Answer {
    let service = call.service;
    let queues = service.store.queues().await?;
    let workers = service.store.workers().await?;
    let serving = processors(&workers, &service.sampled.seen());
    let body = html! {
        h1 { "Queues" }
        @if queues.is_empty() {
            section.empty {
                h2 { "No queue yet" }
                p { "Declare one in your program, in " code { "gristmill.yaml" } ", or by hand:" }
                pre { code { "gristmill queue add emails max_attempts=3" } }
            }
        } @else {
            div.wide tabindex="0" role="region" aria-label="Queues" {
                table.rows {
                    thead { tr {
                        th scope="col" { "Queue" } th.n scope="col" { "Number" }
                        th scope="col" { "State" } th scope="col" { "Declared by" }
                        th scope="col" { "Not as by default" } th scope="col" { "Served by" }
                        @if view.viewer.may_act { th scope="col" { "Do" } }
                    } }
                    tbody {
                        @for queue in queues.iter().take(LISTED) {
                            @let place = view.href(&format!("queues/{}", queue.name));
                            tr data-row=(place) {
                                th scope="row" { a href=(place) { (queue.name) } }
                                td.n { (queue.number) }
                                td {
                                    @if queue.paused { (pill("paused", "paused")) } @else { (pill("done", "open")) }
                                    @if queue.overridden.is_some() { " " (pill("blocked", "changed by hand")) }
                                    @if queue.contract.is_some() { " " (pill("delayed", "contract")) }
                                }
                                td { @for (at, (origin, _)) in queue.declared.iter().enumerate() {
                                    @if at > 0 { ", " } (origin) } }
                                td.wrap {
                                    @for (at, (name, value)) in settings::differing(&queue.settings).iter().enumerate() {
                                        @if at > 0 { ", " } (name) " " code { (value) }
                                    }
                                }
                                td { (serving.get(&queue.name).copied().unwrap_or_default().words()) }
                                @if view.viewer.may_act { td { (switch(&view, queue)) } }
                            }
                        }
                    }
                }
            }
            @if queues.len() > LISTED {
                p.scope { (number(queues.len() as u64)) " in all, " (LISTED) " shown." }
            }
        }
    };
    Ok(layout::page(&view, &Frame::of(Section::Queues, "Queues"), &body))
}

/// Pause or resume.
fn switch(view: &View, queue: &Queue) -> Markup {
    let place = view.href(&format!("queues/{}/act", queue.name));
    html! {
        form.inline method="post" action=(place) {
            @if queue.paused {
                button name="action" value="resume" aria-label=(format!("Resume {}", queue.name)) { "Resume" }
            } @else {
                button name="action" value="pause" aria-label=(format!("Pause {}", queue.name)) { "Pause" }
            }
        }
    }
}

async fn found(service: &Service, call: &str) -> Answer<Queue> {
    let name = crate::message::fields::queue("queue", call)?;
    service.known.expect(service, &name).await?;
    let found = service.store.queues().await?.into_iter().find(|known| known.name == name);
    let gone = || StoreError::UnknownQueue { name: name.to_string(), suggestion: None };
    Ok(found.ok_or_else(gone)?)
}

/// `GET /queues/{queue}`.
pub(crate) async fn one(call: Call, view: View) -> Answer {
    let name = call.param("queue").to_owned();
    let service = call.service;
    let queue = found(&service, &name).await?;
    let stats = service.sampled.stats(&service).await?;
    let numbers = stats.iter().find(|one| one.queue == queue.name);
    let workers = service.store.workers().await?;
    let serves = |worker: &&WorkerView| worker.report.queues.contains(&queue.name);
    let serving: Vec<&WorkerView> = workers.iter().filter(serves).collect();
    let claiming = service.sampled.seen().get(&queue.name).copied().unwrap_or_default();
    let title = format!("Queue {name}");
    let tasks = |state: &str| {
        view.href_with("tasks", &query([("queue", Some(name.as_str())), ("state", Some(state))]))
    };
    let body = html! {
        p.trail { a href=(view.href("queues")) { "Queues" } }
        h1 { (queue.name)
            @if queue.paused { " " (pill("paused", "paused")) }
        }
        @if let Some(by) = queue.paused_by.as_ref().filter(|_| queue.paused) {
            p.flash { "Paused by " (by) ": nothing is claimed, puts go on." }
        }
        @if view.viewer.may_act { div.act { (switch(&view, &queue))
            a href=(view.href_with("put", &query([("queue", Some(name.as_str()))]))) { "Put a task" } } }
        @if let Some(numbers) = numbers { (figures(numbers, &tasks)) }
        (chart::place(&view, Some(&queue.name)))
        div.columns {
            section aria-labelledby="settings" {
                h2 #settings { "Settings" }
                (table(&queue))
                @if view.viewer.may_act { (change(&view, &queue)) }
            }
            div {
                section aria-labelledby="served" {
                    h2 #served { "Served by" }
                    (served(&view, &serving, claiming))
                }
                @if let Some(numbers) = numbers { (counters(numbers)) }
                @if let Some(contract) = &queue.contract {
                    section aria-labelledby="contract" {
                        h2 #contract { "Contract" }
                        pre.payload tabindex="0" { code { (excerpt_lines(contract)) } }
                    }
                }
            }
        }
    };
    let frame = Frame::of(Section::Queues, &title).with_charts();
    Ok(layout::page(&view, &frame, &body))
}

fn excerpt_lines(text: &str) -> String {
    text.chars().take(16 << 10).collect()
}

fn figures(numbers: &QueueStats, tasks: &dyn Fn(&str) -> String) -> Markup {
    let of = [
        ("ready", numbers.ready),
        ("processing", numbers.processing),
        ("delayed", numbers.delayed),
        ("blocked", numbers.blocked),
        ("failed", numbers.failed),
        ("done", numbers.done_kept),
    ];
    html! {
        dl.figures aria-label="Numbers" {
            @for (state, n) in of {
                @if state != "done" || n > 0 {
                    div { dt { (state) @if state == "done" { " and kept" } } dd { a href=(tasks(state)) { (number(n)) } } }
                }
            }
            div { dt { "longest wait" } dd { (numbers.oldest_ready.map_or_else(|| "none".to_owned(), age)) } }
            @if let Some(capacity) = numbers.capacity {
                div { dt { "room for" } dd { (number(capacity.saturating_sub(numbers.pending()))) } }
            }
        }
    }
}

/// Every setting with who said it: the last who did wins.
fn table(queue: &Queue) -> Markup {
    let mut from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut say = |patch: &SettingsPatch, who: &'static str| {
        for name in settings::said(patch) {
            from.insert(name, who);
        }
    };
    for (origin, patch) in &queue.declared {
        say(
            patch,
            match origin {
                Origin::Contract => "contract",
                Origin::Config => "configuration",
                Origin::Code => "code",
            },
        );
    }
    if let Some(change) = &queue.overridden {
        say(&change.settings, "by hand");
    }
    let all = settings::all(&queue.settings);
    let said = |name: &str| {
        let whole = || from.get(name.split('.').next().unwrap_or(name));
        from.get(name).or_else(whole).copied()
    };
    let (ours, rest): (Vec<_>, Vec<_>) = all.iter().partition(|(name, _)| said(name).is_some());
    let rows = |label: &str, some: &[&(&'static str, String)]| {
        html! {
            div.wide tabindex="0" role="region" aria-label=(label) {
                table {
                    thead { tr { th scope="col" { "Setting" } th scope="col" { "In force" } th scope="col" { "From" } } }
                    tbody {
                        @for (name, value) in some {
                            tr {
                                th scope="row" { (name) }
                                td { code { @if value.is_empty() { "none" } @else { (value) } } }
                                td { @match said(name) {
                                    Some("by hand") => { (pill("blocked", "by hand")) }
                                    Some(who) => { (who) }
                                    None => { span.zero { "default" } }
                                } }
                            }
                        }
                    }
                }
            }
        }
    };
    html! {
        @if ours.is_empty() {
            p.scope { "Nothing is set: all of it is as by default." }
        } @else {
            (rows("Settings", &ours))
        }
        @if !rest.is_empty() {
            details.rest {
                summary { (counted(rest.len() as u64, "setting")) " as by default" }
                (rows("Settings as by default", &rest))
            }
        }
        @if let Some(change) = &queue.overridden {
            p.scope { "Changed by hand by " (change.by) " at " (change.at) ": it wins over every declaration." }
        }
    }
}

fn change(view: &View, queue: &Queue) -> Markup {
    let place = view.href(&format!("queues/{}/act", queue.name));
    html! {
        form.filter.below method="post" action=(place) aria-label="Change a setting" {
            label { span { "Change a setting" }
                select name="setting" {
                    @for name in settings::NAMES {
                        @if !name.starts_with("bind.") { option { (name) } }
                    }
                }
            }
            label { span { "To" }
                input name="value" placeholder="5, 30s, none" autocomplete="off" maxlength="200"; }
            div.buttons {
                button name="action" value="set" { "Change" }
                @if queue.overridden.is_some() {
                    button.grave name="action" value="reset"
                        data-ask="Every change by hand is taken back; what was declared holds again." { "Reset" }
                }
            }
        }
    }
}

fn served(view: &View, workers: &[&WorkerView], claiming: u64) -> Markup {
    html! {
        @if workers.is_empty() && claiming == 0 {
            p { "Nobody has reported that it does. Start a worker:" }
            pre.copy { code { "gristmill work --help" } }
        } @else {
            ul.plain {
                @for worker in workers.iter().take(WORKERS) {
                    li {
                        a href=(view.href("workers")) { (excerpt(worker.report.id.as_str(), 40)) }
                        " on " (excerpt(&worker.report.host, 40))
                        @if worker.report.stopping { " " (pill("paused", "stopping")) }
                        @if worker.silent_for >= HEARD_OF { " " (pill("failed", "silent")) }
                    }
                }
            }
            @if workers.len() > WORKERS {
                p.scope { (number(workers.len() as u64)) " in all, " (WORKERS) " shown." }
            }
            @if claiming > 0 { p { (counted(claiming, "worker")) " over HTTP" } }
        }
    }
}

fn counters(numbers: &QueueStats) -> Markup {
    let names = gristmill::port::Counters::NAMES.iter().zip(numbers.counters.values());
    html! {
        section aria-labelledby="counters" {
            h2 #counters { "Since it was declared" }
            dl.facts {
                @for (name, n) in names.filter(|(_, n)| *n > 0) {
                    dt { (name.replace('_', " ")) } dd { (number(n)) }
                }
            }
        }
    }
}

/// `POST /queues/{queue}/act`.
pub(crate) async fn act(call: Call, view: View) -> Answer {
    let name = call.param("queue").to_owned();
    let (service, fields) = form::read(call).await?;
    let queue = found(&service, &name).await?.name;
    let who = view.viewer.name.as_str();
    let place = format!("../{queue}");
    let did = match fields.one("action").as_deref() {
        Some("pause") => {
            service.store.pause_queue(&queue, true, who).await?;
            "paused"
        }
        Some("resume") => {
            service.store.pause_queue(&queue, false, who).await?;
            "resumed"
        }
        Some("reset") => {
            service.store.reset_queue(&queue, who).await?;
            "reset"
        }
        Some("set") => {
            let (setting, value) = (fields.one("setting"), fields.one("value"));
            let setting = setting.ok_or_else(|| Problem::field("setting", "say which one"))?;
            let value = value.ok_or_else(|| Problem::field("value", "say what it is to be"))?;
            let mut patch = SettingsPatch::default();
            settings::set(&mut patch, &setting, &value)
                .map_err(|why| Problem::field("value", why))?;
            service.store.override_queue(&queue, patch, who).await.map_err(
                |error| match error {
                    StoreError::Invalid(why) => Problem::field("value", why),
                    other => other.into(),
                },
            )?;
            "changed"
        }
        _ => return Err(Problem::field("action", "use pause, resume, set or reset")),
    };
    service.known.forget();
    flash::see(&place, did, &[])
}
