//! Log lines on standard error: what the deck does, and warnings of all.
//!
//! Small on purpose. A service would use the subscriber it has anyway.

use std::fmt::{self, Write as _};
use std::io::Write as _;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

struct Stderr {
    debug: bool,
}

/// Shows log lines from now on; all of them with `debug`.
pub fn install(debug: bool) {
    // Only a second call could fail, and then the first one is in force.
    let _ = tracing::subscriber::set_global_default(Stderr { debug });
}

impl Subscriber for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let ours = metadata.target().starts_with("morning_deck");
        let most = match (self.debug, ours) {
            (true, _) => Level::DEBUG,
            (false, true) => Level::INFO,
            (false, false) => Level::WARN,
        };
        metadata.is_event() && *metadata.level() <= most
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let Line { message, fields } = line;
        let clock = jiff::Zoned::now().strftime("%H:%M:%S%.3f").to_string();
        let level = event.metadata().level();
        let part = event.metadata().target().rsplit("::").next().unwrap_or("");
        // Whoever closed it wants no more of it.
        let _ = writeln!(std::io::stderr(), "{clock} {level:<5} {part:<9} {message}{fields}");
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
