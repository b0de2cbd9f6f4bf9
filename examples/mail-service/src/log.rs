//! Log lines on standard error: what happens, and everything with `--debug`.
//!
//! Small on purpose. A service would use the subscriber it has anyway; all
//! that matters here is that the library's lines and ours come out.

use std::fmt::{self, Write as _};
use std::io::Write as _;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

struct Stderr {
    most: Level,
}

/// Shows log lines from now on.
pub(crate) fn install(debug: bool) {
    let most = if debug { Level::DEBUG } else { Level::INFO };
    // Only a second call could fail, and then the first one is in force.
    let _ = tracing::subscriber::set_global_default(Stderr { most });
}

impl Subscriber for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.most
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let metadata = event.metadata();
        let Line { message, fields } = line;
        let line = format!("{:<5} {}: {message}{fields}", metadata.level(), metadata.target());
        // Whoever closed it wants no more of it.
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    }

    // Spans are not enabled, so nobody asks for one.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// An event in words: its message, then its other fields.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
