//! What came of a task: the result of one that is done, and the end of one that does not
//! stand any more, where that is kept.

use gristmill::TaskId;
use gristmill::port::Ending;
use gristmill::{Encoding, Payload};
use maud::{Markup, html};

use super::payload;
use crate::dashboard::layout::{self, Frame, Section};
use crate::dashboard::pill::pill;
use crate::dashboard::view::View;
use crate::dashboard::words::number;
use crate::problem::{Answer, NO_TASK, Problem};
use crate::service::Service;

/// How a task ended, as far as it is kept.
pub(super) async fn look(service: &Service, id: TaskId) -> Answer<Ending> {
    let ending = service.store.endings(&[id]).await?.pop();
    Ok(ending.unwrap_or(Ending::NotKnown))
}

/// What its handler returned, if it returned something.
pub(super) fn result(ending: &Ending) -> Markup {
    let Ending::Done { value: Some(value) } = ending else { return html! {} };
    html! {
        section aria-labelledby="result" {
            h2 #result { "Result" }
            (shown(value))
        }
    }
}

fn shown(value: &Payload) -> Markup {
    let size = format!("{} bytes of {}", number(value.bytes.len() as u64), value.encoding);
    match std::str::from_utf8(&value.bytes) {
        Ok(text) if value.encoding != Encoding::Msgpack => {
            payload::block(text, value.encoding == Encoding::Json)
        }
        _ => html! { p { (size) ". Only its reader knows what they say." } },
    }
}

/// The page of a task that does not stand any more.
pub(super) async fn page(service: &Service, view: &View, id: TaskId) -> Answer {
    let ending = look(service, id).await?;
    let (kind, words) = match &ending {
        Ending::Done { .. } => ("done", "It is done. Its queue keeps no done tasks, but its end."),
        Ending::Failed { .. } => ("failed", "It failed for good and does not stand any more."),
        Ending::Cancelled => ("paused", "An operator cancelled it."),
        Ending::Discarded => ("paused", "It had failed, and an operator discarded it."),
        _ => {
            return Err(Problem::new(&NO_TASK, format!("no task {id} stands")));
        }
    };
    let title = format!("Task {id}");
    let body = html! {
        p.trail { a href=(view.href("tasks")) { "Tasks" } }
        h1 { (title) " " (pill(kind, ending.as_str())) }
        p { (words) }
        @if let Ending::Failed { error } = &ending { pre.error tabindex="0" { (error) } }
        (result(&ending))
    };
    Ok(layout::page(view, &Frame::of(Section::Tasks, &title).still(), &body))
}
