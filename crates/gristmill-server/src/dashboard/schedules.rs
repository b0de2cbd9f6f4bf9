//! Schedules: what fires when, the next five times, and firing by hand.

use gristmill::Payload;
use gristmill::port::policy::next_fire::{FireTimes, shown_in};
use gristmill::port::{FireAnswer, Overlap, Rule, Schedule, ScheduleDeclaration, ScheduleName};
use maud::{Markup, html};

use super::layout::{self, Frame, Section};
use super::pill::pill;
use super::view::View;
use super::words::{age, instant, number, span};
use super::{flash, form};
use crate::call::Call;
use crate::message::fields::{queue, span as said_span, text};
use crate::problem::{Answer, NO_SCHEDULE, OVERLAPS, Problem};
use crate::service::Service;

/// Most on the page.
const LISTED: usize = 200;
/// Fires ahead that are shown.
const AHEAD: usize = 5;

/// `GET /schedules`.
pub(crate) async fn page(call: Call, view: View) -> Answer {
    let service = call.service;
    let all = service.store.schedules().await?;
    let body = html! {
        h1 { "Schedules" }
        @if all.is_empty() {
            section.empty {
                h2 { "No schedule" }
                p { "One is declared by your program, in " code { "gristmill.yaml" } ", below, or over HTTP:" }
                pre { code { "schedules:\n  - name: nightly-report\n    queue: reports\n    cron: \"0 3 * * *\"\n    zone: Europe/Berlin\n    payload: {kind: nightly}" } }
            }
        } @else {
            div.wide tabindex="0" role="region" aria-label="Schedules" {
                table.rows {
                    thead { tr {
                        th scope="col" { "Schedule" } th scope="col" { "State" } th scope="col" { "Queue" }
                        th scope="col" { "When" } th scope="col" { "Next five" } th scope="col" { "Last" }
                        th scope="col" { "If missed" }
                        @if view.viewer.may_act { th scope="col" { "Do" } }
                    } }
                    tbody { @for one in all.iter().take(LISTED) { (line(&view, one)) } }
                }
            }
            @if all.len() > LISTED {
                p.scope { (number(all.len() as u64)) " in all, " (LISTED) " shown." }
            }
        }
        @if view.viewer.may_act { (add(&view, &service).await?) }
    };
    Ok(layout::page(&view, &Frame::of(Section::Schedules, "Schedules"), &body))
}

fn line(view: &View, one: &Schedule) -> Markup {
    let declared = &one.declared;
    let name = declared.name.as_str();
    let rule = match &declared.rule {
        Rule::Cron(cron) => cron.clone(),
        Rule::Every(every) => format!("every {}", span(*every)),
    };
    let place = view.href(&format!("schedules/{name}/act"));
    html! {
        tr {
            th scope="row" { (name) }
            td {
                @if one.paused { (pill("paused", "paused")) } @else { (pill("done", "on")) }
                @if declared.payload.is_none() { " " (pill("delayed", "finder")) }
                @if one.is_ahead(view.now) { " " (pill("failed", "decided ahead")) }
            }
            td { (declared.queue) }
            td.wrap { code { (rule) } " " (declared.zone)
                @if one.paused { @if let Some(by) = &one.paused_by { br; "paused by " (by) } } }
            td.wrap { (ahead(view, one)) }
            td { @match one.last_fire {
                Some(at) => {
                    (instant(at, view.now))
                    @for id in one.last_tasks.iter().take(1) {
                        " " a href=(view.href(&format!("tasks/{id}"))) { "#" (id) }
                    }
                }
                None => { span.zero { "never" } }
            } }
            td { (declared.missed) @if declared.overlap == Overlap::Skip { ", skips while one stands" } }
            @if view.viewer.may_act {
                td {
                    form.inline.tall method="post" action=(place) {
                        @if one.paused {
                            button name="action" value="resume" aria-label=(format!("Resume {name}")) { "Resume" }
                        } @else {
                            button name="action" value="pause" aria-label=(format!("Pause {name}")) { "Pause" }
                        }
                        button name="action" value="fire" aria-label=(format!("Fire now: {name}")) { "Fire now" }
                        button.grave name="action" value="remove" aria-label=(format!("Remove {name}"))
                            data-ask="The schedule is removed. Its tasks stay, and a program that declares it brings it back." { "Remove" }
                    }
                }
            }
        }
    }
}

/// The next fires: what clocks of the schedule's zone show then, and how far they are. Pages
/// with scripts say beside it what the reader's own clock shows, where that differs.
fn ahead(view: &View, one: &Schedule) -> Markup {
    if one.paused {
        return html! { span.zero { "none while it is paused" } };
    }
    let Ok(times) = FireTimes::new(&one.declared.rule, &one.declared.zone) else {
        return html! { span.error { "its rule cannot be read" } };
    };
    let mut at = view.now.max(one.decided_until);
    let mut next = Vec::with_capacity(AHEAD);
    while next.len() < AHEAD
        && let Some(fire) = times.after(at)
    {
        next.push(fire);
        at = fire;
    }
    html! {
        @if next.is_empty() { span.zero { "never again" } }
        ol.fires {
            @for at in next {
                li {
                    time datetime=(at) data-fire="" {
                        (shown_in(at, &one.declared.zone).unwrap_or_else(|| at.to_string()))
                    }
                    span.zero { " in " (age(at.since(view.now))) }
                }
            }
        }
    }
}

async fn add(view: &View, service: &Service) -> Answer<Markup> {
    let queues = service.store.queues().await?;
    if queues.is_empty() {
        return Ok(html! {});
    }
    Ok(html! {
        section.below aria-labelledby="add" {
            details {
                summary { h2 #add { "Add a schedule" } }
                form.stack method="post" action=(view.href("schedules/add")) {
                    div.two {
                        label { span { "Name" } input name="name" required maxlength="64" autocomplete="off"; }
                        label { span { "Queue" }
                            select name="queue" { @for queue in &queues { option { (queue.name) } } } }
                        label { span { "Cron (minute hour day month weekday)" }
                            input name="cron" placeholder="0 3 * * *" autocomplete="off" maxlength="200"; }
                        label { span { "or every" }
                            input name="every" placeholder="15m" autocomplete="off" maxlength="40"; }
                        label { span { "Time zone" }
                            input name="zone" placeholder="UTC" autocomplete="off" maxlength="64"; }
                        label { span { "Key of its tasks" }
                            input name="key" autocomplete="off" maxlength="512"; }
                    }
                    label { span { "Payload (JSON)" } textarea.short name="payload" required { "{}" } }
                    div.buttons { button.main { "Add" } }
                }
            }
        }
    })
}

fn named(text: &str) -> Answer<ScheduleName> {
    ScheduleName::new(text).map_err(|error| Problem::field("name", error.to_string()))
}

/// `POST /schedules/add`.
pub(crate) async fn declare(call: Call, _: View) -> Answer {
    let (service, fields) = form::read(call).await?;
    let name = named(&fields.one("name").unwrap_or_default())?;
    let to = queue("queue", &fields.one("queue").unwrap_or_default())?;
    let queues = service.known.expect(&service, &to).await?;
    if service.store.schedules().await?.iter().any(|known| known.declared.name == name) {
        return Err(Problem::field("name", format!("there is a schedule '{name}' already")));
    }
    let rule = match (fields.one("cron"), fields.one("every")) {
        (Some(cron), None) => Rule::Cron(cron),
        (None, Some(every)) => Rule::Every(said_span("every", &every)?),
        _ => return Err(Problem::field("cron", "say either a cron expression or how often")),
    };
    let zone = fields.one("zone").unwrap_or_else(|| "UTC".to_owned());
    FireTimes::new(&rule, &zone).map_err(|why| Problem::field("cron", why.to_string()))?;
    let json = fields.one("payload").unwrap_or_default();
    crate::body::parse::<&serde_json::value::RawValue>(json.as_bytes())
        .map_err(|problem| problem.at("payload"))?;
    let task = gristmill::port::NewTask::new(Payload::json(json.into_bytes()));
    if let Some(refusal) = service.store.limits().refuse(&task) {
        return Err(Problem::refused(&refusal));
    }
    let fitted = queues.fit(&to, task).map_err(|why| Problem::refused(&why))?;
    let key = fields.one("key").map(|key| text("key", key, 512)).transpose()?;
    let options = gristmill::port::TaskOptions { key, ..Default::default() };
    let declaration = ScheduleDeclaration {
        name,
        queue: to,
        rule,
        zone,
        payload: Some(fitted.payload),
        options,
        missed: gristmill::port::Missed::default(),
        overlap: Overlap::default(),
    };
    service.store.declare_schedule(declaration).await?;
    flash::see("../schedules", "declared", &[])
}

/// `POST /schedules/{schedule}/act`.
pub(crate) async fn act(call: Call, view: View) -> Answer {
    let name = named(call.param("schedule"))?;
    let (service, fields) = form::read(call).await?;
    let unknown = || Problem::new(&NO_SCHEDULE, format!("there is no schedule '{name}'"));
    let known = service.store.schedules().await?;
    if !known.iter().any(|known| known.declared.name == name) {
        return Err(unknown());
    }
    let who = view.viewer.name.as_str();
    let did = match fields.one("action").as_deref() {
        Some("pause") if service.store.pause_schedule(&name, true, who).await? => "schedule-paused",
        Some("resume") if service.store.pause_schedule(&name, false, who).await? => {
            "schedule-resumed"
        }
        Some("remove") if service.store.remove_schedule(&name).await? => "removed",
        Some("fire") => match service.mill.fire_schedule(name.as_str()).await? {
            FireAnswer::Fired(_) => "fired",
            FireAnswer::Asked => "asked",
            FireAnswer::Overlapped(id) => {
                let why = format!("task {id} of the fire before still stands");
                return Err(Problem::new(&OVERLAPS, why));
            }
            _ => return Err(unknown()),
        },
        Some("pause" | "resume" | "remove") => return Err(unknown()),
        _ => return Err(Problem::field("action", "use pause, resume, fire or remove")),
    };
    flash::see("../../schedules", did, &[])
}
