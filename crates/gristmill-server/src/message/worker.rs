//! A worker as the store knows it.

use gristmill::port::WorkerView;
use serde::Serialize;

use super::fields::millis;
use crate::sampled::Claimant;

/// A worker heard of lately.
#[derive(Debug, Serialize)]
pub(crate) struct WorkerOut<'a> {
    worker: &'a str,
    host: &'a str,
    pid: u32,
    version: &'a str,
    queues: Vec<&'a str>,
    processors: Vec<ProcessorOut<'a>>,
    holding: u64,
    follows_term: Option<u64>,
    stopping: bool,
    since: String,
    silent_ms: u64,
    /// It claims over HTTP, through this service: what it holds is not told.
    over_http: bool,
}

#[derive(Debug, Serialize)]
struct ProcessorOut<'a> {
    /// Nothing while it rotates.
    queue: Option<&'a str>,
    holding: u32,
    cycle_ms: u64,
}

impl<'a> WorkerOut<'a> {
    pub(crate) fn of(view: &'a WorkerView) -> Self {
        let report = &view.report;
        let processors = report.processors.iter().map(|processor| ProcessorOut {
            queue: processor.queue.as_ref().map(|queue| queue.as_str()),
            holding: processor.holding,
            cycle_ms: millis(processor.cycle),
        });
        WorkerOut {
            worker: report.id.as_str(),
            host: &report.host,
            pid: report.pid,
            version: &report.version,
            queues: report.queues.iter().map(|queue| queue.as_str()).collect(),
            processors: processors.collect(),
            holding: report.processors.iter().map(|p| u64::from(p.holding)).sum(),
            follows_term: report.follows_term,
            stopping: report.stopping,
            since: view.since.to_string(),
            silent_ms: millis(view.silent_for),
            over_http: false,
        }
    }

    /// One that claims over HTTP.
    pub(crate) fn claiming(claimant: &'a Claimant) -> Self {
        WorkerOut {
            worker: claimant.worker.as_str(),
            host: "",
            pid: 0,
            version: "",
            queues: claimant.queues.iter().map(|queue| queue.as_str()).collect(),
            processors: Vec::new(),
            holding: 0,
            follows_term: None,
            stopping: false,
            since: claimant.since.to_string(),
            silent_ms: millis(claimant.silent_for),
            over_http: true,
        }
    }
}
