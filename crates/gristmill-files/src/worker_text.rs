//! A worker's report as JSON.

use std::time::Duration;

use gristmill_core::{HandlerStats, ProcessorReport, Result, WorkerReport};
use serde::{Deserialize, Serialize};

use crate::fact::{micros, queue_name, worker_id};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerText {
    id: String,
    host: String,
    pid: u32,
    version: String,
    queues: Vec<String>,
    /// Queue, tasks held, and the cycle's length.
    processors: Vec<(Option<String>, u32, u64)>,
    handled: Vec<HandledText>,
    follows_term: Option<u64>,
    stopping: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HandledText {
    queue: String,
    processed: u64,
    errors: u64,
    retried: u64,
    duration: u64,
    last_error: Option<String>,
}

impl WorkerText {
    pub(crate) fn new(report: &WorkerReport) -> Self {
        WorkerText {
            id: report.id.to_string(),
            host: report.host.clone(),
            pid: report.pid,
            version: report.version.clone(),
            queues: report.queues.iter().map(ToString::to_string).collect(),
            processors: report
                .processors
                .iter()
                .map(|p| (p.queue.as_ref().map(ToString::to_string), p.holding, micros(p.cycle)))
                .collect(),
            handled: report
                .handled
                .iter()
                .map(|(queue, stats)| HandledText {
                    queue: queue.to_string(),
                    processed: stats.processed,
                    errors: stats.errors,
                    retried: stats.retried,
                    duration: micros(stats.duration),
                    last_error: stats.last_error.clone(),
                })
                .collect(),
            follows_term: report.follows_term,
            stopping: report.stopping,
        }
    }

    pub(crate) fn into_report(self) -> Result<WorkerReport> {
        Ok(WorkerReport {
            id: worker_id(&self.id)?,
            host: self.host,
            pid: self.pid,
            version: self.version,
            queues: self.queues.iter().map(|queue| queue_name(queue)).collect::<Result<_>>()?,
            processors: self
                .processors
                .into_iter()
                .map(|(queue, holding, cycle)| {
                    let queue = queue.map(|queue| queue_name(&queue)).transpose()?;
                    Ok(ProcessorReport { queue, holding, cycle: Duration::from_micros(cycle) })
                })
                .collect::<Result<_>>()?,
            handled: self
                .handled
                .into_iter()
                .map(|handled| {
                    let stats = HandlerStats {
                        processed: handled.processed,
                        errors: handled.errors,
                        retried: handled.retried,
                        duration: Duration::from_micros(handled.duration),
                        last_error: handled.last_error,
                    };
                    Ok((queue_name(&handled.queue)?, stats))
                })
                .collect::<Result<_>>()?,
            follows_term: self.follows_term,
            stopping: self.stopping,
        })
    }
}
