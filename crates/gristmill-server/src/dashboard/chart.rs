//! Room for charts of a queue's minutes, or of all queues together. The numbers come from
//! `/live/minutes`; the same ones stand in a table for who sees no picture.

use gristmill::QueueName;
use maud::{Markup, html};

use super::fields::query;
use super::view::View;

/// How far back can be looked.
const SPANS: [&str; 4] = ["15m", "1h", "6h", "24h"];

/// The room, with a way to look further back.
pub(crate) fn place(view: &View, queue: Option<&QueueName>) -> Markup {
    let asked = view.query.one("back");
    let back = SPANS.iter().find(|span| asked.as_deref() == Some(**span)).unwrap_or(&"1h");
    let minutes = query([("queue", queue.map(QueueName::as_str)), ("back", Some(*back))]);
    html! {
        section.drawn aria-labelledby="charts" {
            div.span {
                h2 #charts { "Minute by minute" }
                @for span in SPANS {
                    a href=(format!("?{}", query([("back", Some(span))])))
                        aria-current=[(span == *back).then_some("true")] { (span) }
                }
            }
            div.charts data-minutes=(view.href(&format!("live/minutes?{minutes}"))) hx-morph-skip {
                div.chart { h3 { "Put and done" } div.plot data-plot="flow" {} }
                div.chart { h3 { "Failed for good" } div.plot data-plot="failed" {} }
            }
            noscript { p.scope { "Charts need scripts; the numbers are "
                a href=(view.href(&format!("live/minutes?{minutes}"))) { "here as JSON" } "." } }
        }
    }
}
