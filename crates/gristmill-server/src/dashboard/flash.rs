//! What a form has done, said once on the page that follows it. The address carries a word
//! that is known here and numbers, never text: nobody can have a link say something.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use maud::{Markup, html};

use super::fields::query;
use super::view::View;
use super::words::counted;
use crate::problem::{Answer, FAULT, Problem};

/// The names in an address that belong to it.
const NAMES: [&str; 3] = ["did", "n", "not"];

/// The words for each thing that can have been done to tasks, and to anything else.
const TASKS: &[(&str, &str)] = &[
    ("retry", "sent back to run again"),
    ("discard", "discarded"),
    ("resolve", "resolved"),
    ("cancel", "cancelled, or asked to stop"),
];
const OTHERS: &[(&str, &str)] = &[
    ("none", "Nothing was selected: nothing was done."),
    ("put", "The task was put."),
    ("duplicate", "Not put: this task stands for its key already."),
    ("replaced", "This task stood for its key already and has the new data now."),
    ("paused", "Paused: nothing is claimed until it is resumed. Puts go on."),
    ("resumed", "Resumed."),
    ("changed", "Changed. It wins over every declaration until it is reset."),
    ("reset", "The operators' changes were taken back."),
    ("schedule-paused", "Paused: it does not fire by itself."),
    ("schedule-resumed", "Resumed, from now on."),
    ("fired", "Fired by hand."),
    ("asked", "Whoever has its finder's code was asked for a run."),
    ("declared", "The schedule stands."),
    ("removed", "The schedule was removed; its tasks stay."),
    ("begun", "The operation was begun; it goes on by itself."),
    ("stopping", "It ends after the step it is at."),
    ("quiet", "The worker was asked to be quiet: what runs finishes."),
    ("worker-resumed", "The worker was asked to go on."),
    ("worker-stops", "The worker was asked to stop: what runs finishes."),
    ("moved", "One more processor was asked to serve that queue."),
    ("rotates", "Its processors were asked to go round again."),
];

/// The words for what the address says was done.
pub(crate) fn said(view: &View) -> Markup {
    let Some(did) = view.query.one("did") else { return html! {} };
    let (n, not) = (view.query.number("n"), view.query.number("not").unwrap_or_default());
    let other = OTHERS.iter().find(|(known, _)| *known == did).map(|(_, words)| *words);
    let tasks = TASKS.iter().find(|(known, _)| *known == did).map(|(_, words)| *words);
    let words = match (other, tasks, n) {
        (Some(words), _, _) => words.to_owned(),
        (None, Some(words), Some(n)) => format!("{} {words}.", counted(n, "task")),
        _ => return html! {},
    };
    html! {
        p.flash role="status" {
            (words)
            @if not > 0 {
                " " (counted(not, "task")) " stayed: in another state, gone, or another task \
                holds the key’s place."
            }
        }
    }
}

/// The address without what was done: it is not said again.
pub(crate) fn without(asked: &str) -> String {
    if asked.is_empty() {
        return String::new();
    }
    let kept = form_urlencoded::parse(asked.as_bytes())
        .filter(|(name, _)| !NAMES.contains(&name.as_ref()));
    form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).finish()
}

/// Leads to a page that says what was done. The place is relative to what was asked.
pub(crate) fn see(place: &str, did: &str, numbers: &[(&str, u64)]) -> Answer {
    let numbers: Vec<(&str, String)> =
        numbers.iter().map(|(name, n)| (*name, n.to_string())).collect();
    let pairs = numbers.iter().map(|(name, n)| (*name, Some(n.as_str())));
    let more = query([("did", Some(did))].into_iter().chain(pairs));
    let place = format!("{place}{}{more}", if place.contains('?') { '&' } else { '?' });
    let place = HeaderValue::from_str(&place)
        .map_err(|_| Problem::new(&FAULT, "an address that cannot be written"))?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(header::LOCATION, place);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_taken_off_the_address() {
        assert_eq!(without("queue=a&did=retry&n=3&not=1&key=x%26y"), "queue=a&key=x%26y");
        assert_eq!(without(""), "");
    }

    #[test]
    fn the_next_page_is_named() {
        let answer = see("../tasks?queue=a", "retry", &[("n", 2)]).expect("an answer");
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        assert_eq!(answer.headers()["location"], "../tasks?queue=a&did=retry&n=2");
    }
}
