//! What is said in the log, for tests that listen.

use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

/// What is said of a store that is away, and that is back.
pub(crate) const AWAY: &str = "the store does not answer";
pub(crate) const BACK: &str = "the store answers again after";

/// Keeps what is said on this thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    /// How many lines had this part.
    pub(crate) fn count(&self, part: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|line| line.contains(part)).count()
    }
}

impl Subscriber for Said {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= tracing::Level::INFO
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Text(String);

        impl Visit for Text {
            fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{value:?} "));
            }
        }
        let mut text = Text(format!("{} ", event.metadata().level()));
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
