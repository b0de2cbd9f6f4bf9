//! The thread that sends spans: some at a time, and never so that anybody waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::otlp::{self, Finished};
use crate::hook::{Address, Client};
use crate::output::count;
use crate::stderr;

/// Spans that wait to be sent; more are left out.
const WAITING: usize = 4096;
/// Most of one request, and how long it waits for more.
const BATCH: usize = 512;
const PAUSE: Duration = Duration::from_secs(1);
/// How long a collector may take.
const ANSWER: Duration = Duration::from_secs(10);
/// How often it is said that spans were left out.
const SAID: Duration = Duration::from_secs(60);

enum Said {
    Span(Value),
    /// Everything before it is to be sent; then the other end hears.
    Flush(SyncSender<()>),
}

/// The end that spans are given to.
#[derive(Debug, Clone)]
pub(super) struct Exporter {
    spans: SyncSender<Said>,
    left_out: Arc<AtomicU64>,
}

impl Exporter {
    /// # Errors
    /// In words, when nothing can be sent.
    pub(super) fn start(address: Address, headers: &str, service: &str) -> Result<Self, String> {
        let headers = read(&address, headers)?;
        let client = Client::new(address)?;
        let (spans, received) = sync_channel(WAITING);
        let left_out = Arc::<AtomicU64>::default();
        let sender = Sender {
            client,
            headers,
            service: service.to_owned(),
            left_out: left_out.clone(),
            said: None,
        };
        let thread = std::thread::Builder::new().name("gristmill-traces".to_owned());
        thread.spawn(move || sender.run(&received)).map_err(|error| error.to_string())?;
        Ok(Exporter { spans, left_out })
    }

    pub(super) fn send(&self, span: &Finished) {
        if self.spans.try_send(Said::Span(otlp::span(span))).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all that ended is sent, and no longer than this.
    pub(super) fn flush(&self, within: Duration) {
        let (done, heard) = sync_channel(1);
        if self.spans.try_send(Said::Flush(done)).is_ok() {
            let _ = heard.recv_timeout(within);
        }
    }
}

/// `name=value,name=value`, with what is percent-encoded as it stands.
fn read(address: &Address, text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let host = HeaderValue::from_str(address.authority()).map_err(|error| error.to_string())?;
    headers.insert(HOST, host);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
        let wrong = || "headers are written name=value,name=value".to_owned();
        let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| wrong())?;
        headers.insert(name, HeaderValue::from_str(value.trim()).map_err(|_| wrong())?);
    }
    Ok(headers)
}

struct Sender {
    client: Client,
    headers: HeaderMap,
    service: String,
    left_out: Arc<AtomicU64>,
    /// When it was said last that some were left out.
    said: Option<Instant>,
}

impl Sender {
    fn run(mut self, received: &Receiver<Said>) {
        // A runtime of its own: the one that works may be busy, or have ended.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        let mut batch = Vec::new();
        loop {
            let asked = match received.recv_timeout(PAUSE) {
                Ok(Said::Span(span)) => {
                    batch.push(span);
                    if batch.len() < BATCH {
                        continue;
                    }
                    None
                }
                Ok(Said::Flush(done)) => Some(done),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if !batch.is_empty() {
                let spans = std::mem::take(&mut batch);
                if let Err(why) = runtime.block_on(self.post(&spans)) {
                    self.left_out.fetch_add(spans.len() as u64, Ordering::Relaxed);
                    self.tell(&why);
                }
            }
            if let Some(done) = asked {
                let _ = done.try_send(());
            }
        }
    }

    async fn post(&self, spans: &[Value]) -> Result<(), String> {
        let body = otlp::request(&self.service, spans).to_string();
        let posted = self.client.post(self.headers.clone(), body.into());
        let answer = tokio::time::timeout(ANSWER, posted).await;
        match answer.unwrap_or_else(|_| Err("no answer in time".to_owned()))?.status() {
            200..=299 => Ok(()),
            status => Err(format!("HTTP {status}")),
        }
    }

    fn tell(&mut self, why: &str) {
        if self.said.is_some_and(|said| said.elapsed() < SAID) {
            return;
        }
        self.said = Some(Instant::now());
        let spans = self.left_out.swap(0, Ordering::Relaxed);
        let spans = count(spans, "span");
        stderr::say(format_args!("{spans} of traces not sent to the collector: {why}"));
    }
}
