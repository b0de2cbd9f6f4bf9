//! What the library says while it works, as lines on standard error.
//!
//! A whole logging crate for a dozen kinds of lines would be the largest part
//! of a small binary: this is the least that `tracing` needs.

use std::fmt::Write as _;

use gristmill::port::{Clock, SystemClock};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

use crate::stderr;
#[cfg(feature = "otel")]
use crate::trace::Spans;

/// Spans up to this level are recorded, where any are: the store's verbs too.
const SPANS: Level = Level::DEBUG;

/// Lines up to a level.
#[derive(Debug)]
struct Lines {
    level: Level,
    /// Where spans go, if anywhere.
    #[cfg(feature = "otel")]
    spans: Option<Spans>,
}

impl Lines {
    /// Where spans of traces are recorded.
    fn records_spans(&self) -> bool {
        #[cfg(feature = "otel")]
        return self.spans.is_some();
        #[cfg(not(feature = "otel"))]
        false
    }
}

/// Shows what is at least this important from now on. `GRISTMILL_LOG` (error,
/// warn, info, debug or trace) wins.
pub(crate) fn show(default: Level) {
    let level = wished().unwrap_or(default);
    if let Some(said) = misunderstood() {
        let levels = "error, warn, info, debug or trace";
        stderr::say(format_args!("gristmill: {LOG} is '{said}', which is no level: say {levels}"));
    }
    // Somebody was first: then their lines are shown.
    let _ = tracing::subscriber::set_global_default(Lines {
        level,
        #[cfg(feature = "otel")]
        spans: crate::trace::from_environment(),
    });
}

/// The variable that says how much is told.
const LOG: &str = "GRISTMILL_LOG";
/// What is told unless it says otherwise.
pub(crate) const DEFAULT: Level = Level::WARN;

fn wished() -> Option<Level> {
    std::env::var(LOG).ok().and_then(|level| level.parse().ok())
}

/// What the variable says, where that is no level.
fn misunderstood() -> Option<String> {
    let said = std::env::var(LOG).ok().filter(|said| !said.is_empty())?;
    said.parse::<Level>().is_err().then(|| said.chars().take(40).collect())
}

/// How much is told, and the variable that says so, if one does.
pub(crate) fn level() -> (String, Option<&'static str>) {
    let (level, from) = wished().map_or((DEFAULT, None), |level| (level, Some(LOG)));
    (level.to_string().to_lowercase(), from)
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let told = if metadata.is_span() {
            self.records_spans() && *metadata.level() <= SPANS
        } else {
            *metadata.level() <= self.level
        };
        told && metadata.target().starts_with("gristmill")
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(if self.records_spans() { self.level.max(SPANS) } else { self.level }.into())
    }

    #[cfg(feature = "otel")]
    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        // Without a place for them spans are never enabled.
        self.spans.as_ref().map_or(span::Id::from_u64(1), |spans| spans.open(attributes))
    }

    #[cfg(not(feature = "otel"))]
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        // Spans are never enabled; the trait wants a number all the same.
        span::Id::from_u64(1)
    }

    #[cfg(feature = "otel")]
    fn record(&self, id: &span::Id, values: &span::Record<'_>) {
        if let Some(spans) = &self.spans {
            spans.record(id, values);
        }
    }

    #[cfg(not(feature = "otel"))]
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    #[cfg(feature = "otel")]
    fn clone_span(&self, id: &span::Id) -> span::Id {
        if let Some(spans) = &self.spans {
            spans.hold(id);
        }
        id.clone()
    }

    #[cfg(feature = "otel")]
    fn try_close(&self, id: span::Id) -> bool {
        self.spans.as_ref().is_some_and(|spans| spans.let_go(&id))
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    #[cfg(feature = "otel")]
    fn enter(&self, id: &span::Id) {
        Spans::enter(id);
    }

    #[cfg(not(feature = "otel"))]
    fn enter(&self, _: &span::Id) {}

    #[cfg(feature = "otel")]
    fn exit(&self, id: &span::Id) {
        Spans::exit(id);
    }

    #[cfg(not(feature = "otel"))]
    fn exit(&self, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let now = SystemClock::default().now();
        let level = event.metadata().level();
        if stderr::speaks_json() {
            let mut fields = Fields::default();
            event.record(&mut fields);
            fields.0.insert("at".to_owned(), now.to_string().into());
            let level = level.to_string().to_ascii_lowercase();
            fields.0.insert("level".to_owned(), level.into());
            return stderr::plain(Value::Object(fields.0));
        }
        let mut text = Text::default();
        event.record(&mut text);
        stderr::say(format_args!("{now} {level} {}{}", text.message, text.fields));
    }
}

/// An event's sentence and facts, by name.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

/// An event's sentence and the facts behind it.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.fields, " {}={value:?}", field.name())
        };
    }
}
