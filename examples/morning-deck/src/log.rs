//! Log lines on standard error: what the deck does, and warnings of all.

use std::fmt;

use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Shows log lines from now on; all of them with `debug`.
pub fn install(debug: bool) {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_timer(Clock)
        // Who closed standard error wants no more of it.
        .log_internal_errors(false);
    let ours = Targets::new().with_default(Level::WARN).with_target("morning_deck", Level::INFO);
    let shown = if debug { Targets::new().with_default(Level::DEBUG) } else { ours };
    tracing_subscriber::registry().with(lines).with(shown).init();
}

/// The time of day here.
struct Clock;

impl FormatTime for Clock {
    fn format_time(&self, line: &mut Writer<'_>) -> fmt::Result {
        write!(line, "{}", jiff::Zoned::now().strftime("%H:%M:%S%.3f"))
    }
}
