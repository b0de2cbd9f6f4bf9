//! Room for charts of a queue's minutes, or of all queues together. The numbers come from
//! `/live/minutes`; the same ones stand in a table for who sees no picture.

use gristmill::QueueName;
use maud::{Markup, html};

use super::fields::query;
use super::view::View;

/// How far back can be looked, and of how much time the numbers are added up for one point.
const SPANS: [(&str, &str); 5] =
    [("15m", "1m"), ("1h", "1m"), ("6h", "2m"), ("24h", "10m"), ("7d", "1h")];

/// The room, with a way to look further back.
pub(crate) fn place(view: &View, queue: Option<&QueueName>) -> Markup {
    let asked = view.query.one("back");
    let said = SPANS.iter().find(|(span, _)| asked.as_deref() == Some(*span));
    let (back, step) = *said.unwrap_or(&("1h", "1m"));
    let minutes = query([
        ("queue", queue.map(QueueName::as_str)),
        ("back", Some(back)),
        ("step", Some(step)),
    ]);
    html! {
        section.drawn aria-labelledby="charts" {
            div.span {
                h2 #charts { @if step == "1m" { "Minute by minute" } @else { "In steps of " (step) } }
                @for (span, _) in SPANS {
                    a href=(format!("?{}", query([("back", Some(span))])))
                        aria-current=[(span == back).then_some("true")] { (span) }
                }
            }
            div.charts data-minutes=(view.href(&format!("live/minutes?{minutes}"))) hx-morph-skip {
                div.chart { h3 { "Put and done" } div.plot data-plot="flow" {} }
                div.chart { h3 { "Wait until claimed" } div.plot data-plot="wait" {} }
                div.chart { h3 { "Failed for good" } div.plot data-plot="failed" {} }
            }
            noscript { p.scope { "Charts need scripts; the numbers are "
                a href=(view.href(&format!("live/minutes?{minutes}"))) { "here as JSON" } "." } }
        }
    }
}
