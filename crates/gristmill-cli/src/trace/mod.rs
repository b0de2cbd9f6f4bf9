//! Traces for OpenTelemetry: the spans of puts, claims, attempts and the store's verbs
//! beneath them, sent over OTLP where the environment names a collector.
//!
//! ```text
//!   curl ─► send ─► receive ─► attempt ─► …      one trace, by the task's traceparent
//! ```
//!
//! What is sent is OTLP over HTTP in its JSON form, by the client that posts tasks to
//! URLs: the SDK and its exporter would be the largest part of the binary.

mod export;
mod otlp;
mod spans;

use std::sync::OnceLock;
use std::time::Duration;

use crate::hook::Address;
use crate::stderr;
use export::Exporter;
pub(crate) use spans::Spans;

/// Most that an end waits for the last spans.
const LAST: Duration = Duration::from_secs(2);

static EXPORTER: OnceLock<Exporter> = OnceLock::new();

/// Where spans go, if the environment says so.
pub(crate) fn from_environment() -> Option<Spans> {
    let said = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    if said("OTEL_SDK_DISABLED").is_some_and(|said| said.eq_ignore_ascii_case("true")) {
        return None;
    }
    let (name, url) = match said("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
        Some(url) => ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url),
        None => {
            let url = said("OTEL_EXPORTER_OTLP_ENDPOINT")?;
            ("OTEL_EXPORTER_OTLP_ENDPOINT", format!("{}/v1/traces", url.trim_end_matches('/')))
        }
    };
    let headers = said("OTEL_EXPORTER_OTLP_TRACES_HEADERS")
        .or_else(|| said("OTEL_EXPORTER_OTLP_HEADERS"))
        .unwrap_or_default();
    let service = said("OTEL_SERVICE_NAME").unwrap_or_else(|| "gristmill".to_owned());
    let started =
        Address::read(url.trim()).and_then(|address| Exporter::start(address, &headers, &service));
    match started {
        Ok(exporter) => {
            let spans = Spans::new(exporter.clone());
            // The first one stays.
            let _ = EXPORTER.set(exporter);
            Some(spans)
        }
        Err(why) => {
            stderr::say(format_args!("no traces are sent: {name}: {why}"));
            None
        }
    }
}

/// Sends what is left, within a moment.
pub(crate) fn finish() {
    if let Some(exporter) = EXPORTER.get() {
        exporter.flush(LAST);
    }
}
