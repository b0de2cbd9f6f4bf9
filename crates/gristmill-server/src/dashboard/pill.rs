//! A state as a small mark: a word in a colour of its own.

use gristmill::{Task, Timestamp};
use maud::{Markup, html};

use crate::message::task::standing;

/// A word, coloured as `kind`.
pub(crate) fn pill(kind: &'static str, words: &str) -> Markup {
    html! { span.pill data-is=(kind) { (words) } }
}

/// Where a task stands.
pub(crate) fn task(task: &Task, now: Timestamp) -> Markup {
    let standing = standing(task, now);
    html! {
        (pill(standing, standing))
        @if task.cancel_requested { " " (pill("paused", "cancel asked")) }
        @if task.damaged.is_some() { " " (pill("failed", "damaged")) }
    }
}
