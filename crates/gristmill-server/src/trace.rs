//! The W3C trace context of a request, which the tasks that it puts carry on to their
//! handlers.

use axum::http::HeaderMap;
use gristmill::port::NewTask;

const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

/// What a request says of the trace it belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    parent: Option<String>,
    state: Option<String>,
}

impl Trace {
    /// Nothing where a request says nothing, or what is no trace context.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        match text(PARENT).filter(|parent| is_parent(parent)) {
            Some(parent) => {
                Trace { parent: Some(parent.to_owned()), state: text(STATE).map(str::to_owned) }
            }
            None => Trace::default(),
        }
    }

    /// Where it belongs, for spans.
    pub(crate) fn parent(&self) -> Option<&str> {
        self.parent.as_deref()
    }

    /// The task as a part of the trace, unless it names one itself or has no room.
    pub(crate) fn give(&self, task: &mut NewTask, most: usize) {
        if task.headers.contains_key(PARENT) {
            return;
        }
        let mut bytes: usize =
            task.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        for (name, value) in [(PARENT, &self.parent), (STATE, &self.state)] {
            let Some(value) = value else { return };
            bytes += name.len() + value.len();
            if bytes > most {
                return;
            }
            task.headers.insert(name.to_owned(), value.clone());
        }
    }
}

/// Whether this is `version-trace-parent-flags`, in lower-case hex, of a trace that is one.
fn is_parent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let [version, trace, parent, flags, ..] = parts.as_slice() else { return false };
    let all = [(version, 2), (trace, 32), (parent, 16), (flags, 2)];
    all.iter().all(|(part, len)| part.len() == *len && part.chars().all(hex))
        && *version != "ff"
        && (parts.len() == 4 || *version != "00")
        && [trace, parent].iter().all(|id| id.chars().any(|c| c != '0'))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn trace(parent: &'static str, state: &'static str) -> Trace {
        let mut headers = HeaderMap::new();
        headers.insert(PARENT, HeaderValue::from_static(parent));
        headers.insert(STATE, HeaderValue::from_static(state));
        Trace::of(&headers)
    }

    #[test]
    fn a_task_is_a_part_of_its_requests_trace() {
        let mut task = NewTask::default();
        trace(TRACE, "a=1").give(&mut task, 4096);
        assert_eq!(task.headers.get(PARENT).map(String::as_str), Some(TRACE));
        assert_eq!(task.headers.get(STATE).map(String::as_str), Some("a=1"));
        // What it says itself stands, and nothing makes it too large.
        let mut own = NewTask::default();
        own.headers.insert(PARENT.to_owned(), "own".to_owned());
        trace(TRACE, "a=1").give(&mut own, 4096);
        assert_eq!(own.headers.len(), 1);
        let mut full = NewTask::default();
        trace(TRACE, "a=1").give(&mut full, 70);
        assert_eq!(full.headers.len(), 1);
    }

    #[test]
    fn what_is_no_trace_context_is_none() {
        for text in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        ] {
            assert_eq!(trace(text, "a=1"), Trace::default(), "{text}");
        }
        assert!(
            trace("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", "")
                .parent
                .is_some()
        );
    }
}
