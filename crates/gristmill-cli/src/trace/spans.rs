//! Spans that are open, as `tracing` tells of them, and to which trace each belongs.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gristmill::port::{Clock, SystemClock, Token};
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span;

use super::export::Exporter;
use super::otlp::Finished;

/// The spans that begin a trace of their own where nobody began one.
const ROOTS: [&str; 2] = ["attempt", "send"];

thread_local! {
    /// The spans that this thread is in, the innermost last.
    static INSIDE: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Open spans.
#[derive(Debug)]
pub(crate) struct Spans {
    open: Mutex<Open>,
    exporter: Exporter,
}

#[derive(Debug, Default)]
struct Open {
    last: u64,
    spans: HashMap<u64, Span>,
}

#[derive(Debug)]
struct Span {
    /// None of a span that belongs to no trace, or to one that is not to be recorded.
    of: Option<Of>,
    name: &'static str,
    began: i64,
    fields: Fields,
    /// How many know it.
    held: usize,
}

/// A span's place in its trace.
#[derive(Debug, Clone)]
struct Of {
    trace: String,
    id: String,
    parent: Option<String>,
}

impl Spans {
    pub(super) fn new(exporter: Exporter) -> Self {
        Spans { open: Mutex::default(), exporter }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn open(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let name = attributes.metadata().name();
        let around = attributes.parent().map(span::Id::into_u64).or_else(|| {
            let inner = || INSIDE.with(|inside| inside.borrow().last().copied());
            attributes.is_contextual().then(inner).flatten()
        });
        let mut open = self.lock();
        let around = around.and_then(|around| open.spans.get(&around)?.of.as_ref());
        let of = match (&fields.traceparent, around) {
            (Some(said), _) => parsed(said),
            (None, Some(around)) => Some((around.trace.clone(), Some(around.id.clone()))),
            (None, None) if ROOTS.contains(&name) => random().map(|trace| (trace, None)),
            (None, None) => None,
        };
        let of = of.and_then(|(trace, parent)| {
            let id = random()?.get(..16)?.to_owned();
            Some(Of { trace, id, parent })
        });
        open.last += 1;
        let number = open.last;
        let began = now() - fields.took.unwrap_or(0);
        open.spans.insert(number, Span { of, name, began, fields, held: 1 });
        span::Id::from_u64(number)
    }

    pub(crate) fn record(&self, id: &span::Id, values: &span::Record<'_>) {
        if let Some(span) = self.lock().spans.get_mut(&id.into_u64()) {
            values.record(&mut span.fields);
        }
    }

    pub(crate) fn enter(id: &span::Id) {
        INSIDE.with(|inside| inside.borrow_mut().push(id.into_u64()));
    }

    pub(crate) fn exit(id: &span::Id) {
        INSIDE.with(|inside| {
            let mut inside = inside.borrow_mut();
            if let Some(at) = inside.iter().rposition(|inner| *inner == id.into_u64()) {
                inside.remove(at);
            }
        });
    }

    pub(crate) fn hold(&self, id: &span::Id) {
        if let Some(span) = self.lock().spans.get_mut(&id.into_u64()) {
            span.held += 1;
        }
    }

    /// Lets go of it; whether that was its end.
    pub(crate) fn let_go(&self, id: &span::Id) -> bool {
        let ended = {
            let mut open = self.lock();
            let Some(span) = open.spans.get_mut(&id.into_u64()) else { return false };
            span.held -= 1;
            if span.held > 0 {
                return false;
            }
            open.spans.remove(&id.into_u64())
        };
        if let Some(Span { of: Some(of), name, began, fields, .. }) = ended {
            let Of { trace, id, parent } = of;
            let facts = fields.facts;
            self.exporter.send(&Finished { trace, id, parent, name, began, ended: now(), facts });
        }
        true
    }
}

/// Microseconds since 1970.
fn now() -> i64 {
    SystemClock::default().now().as_micros()
}

/// 128 random bits in hex.
fn random() -> Option<String> {
    Token::random().ok().map(|token| token.to_string())
}

/// The trace and the span that a traceparent names, if they are to be recorded.
fn parsed(traceparent: &str) -> Option<(String, Option<String>)> {
    let mut parts = traceparent.split('-').skip(1);
    let (trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?);
    let is_hex =
        |text: &str, len: usize| text.len() == len && text.chars().all(|c| c.is_ascii_hexdigit());
    let sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
    let fits = is_hex(trace, 32) && is_hex(parent, 16);
    (fits && sampled).then(|| (trace.to_owned(), Some(parent.to_owned())))
}

/// What a span says of itself.
#[derive(Debug, Default)]
struct Fields {
    facts: Vec<(&'static str, Value)>,
    traceparent: Option<String>,
    /// Of a span that is told of at its end: how long it took, in microseconds.
    took: Option<i64>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        match (field.name(), &value) {
            ("traceparent", Value::String(text)) => self.traceparent = Some(text.clone()),
            ("took_us", value) => self.took = value.as_i64(),
            (name, _) => self.facts.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::parsed;

    #[test]
    fn only_what_is_to_be_recorded_is() {
        let (trace, parent) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let said = |flags: &str| parsed(&format!("00-{trace}-{parent}-{flags}"));
        assert_eq!(said("01"), Some((trace.to_owned(), Some(parent.to_owned()))));
        assert_eq!(said("03"), said("01"));
        for text in ["00", "02", "x1", ""] {
            assert_eq!(said(text), None);
        }
        assert_eq!(parsed("00-1-2-01"), None);
    }
}
