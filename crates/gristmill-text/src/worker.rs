//! A worker's report.

use std::time::Duration;

use gristmill_core::{HandlerStats, ProcessorReport, Result, WorkerReport};
use serde::{Deserialize, Serialize};

use crate::{micros, queue_name, worker_id};

/// A report as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerText {
    id: String,
    host: String,
    pid: u32,
    version: String,
    queues: Vec<String>,
    processors: Vec<ProcessorText>,
    handled: Vec<HandledText>,
    follows_term: Option<u64>,
    stopping: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ProcessorText {
    queue: Option<String>,
    holding: u32,
    cycle: u64,
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
    /// The report as it is stored.
    pub(crate) fn new(report: &WorkerReport) -> Self {
        let processor = |p: &ProcessorReport| ProcessorText {
            queue: p.queue.as_ref().map(ToString::to_string),
            holding: p.holding,
            cycle: micros(p.cycle),
        };
        WorkerText {
            id: report.id.to_string(),
            host: report.host.clone(),
            pid: report.pid,
            version: report.version.clone(),
            queues: report.queues.iter().map(ToString::to_string).collect(),
            processors: report.processors.iter().map(processor).collect(),
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

    /// The report as it is read back.
    pub(crate) fn into_report(self) -> Result<WorkerReport> {
        let processor = |stored: ProcessorText| {
            let queue = stored.queue.as_deref().map(queue_name).transpose()?;
            let cycle = Duration::from_micros(stored.cycle);
            Ok(ProcessorReport { queue, holding: stored.holding, cycle })
        };
        Ok(WorkerReport {
            id: worker_id(&self.id),
            host: self.host,
            pid: self.pid,
            version: self.version,
            queues: self.queues.iter().map(|queue| queue_name(queue)).collect::<Result<_>>()?,
            processors: self.processors.into_iter().map(processor).collect::<Result<_>>()?,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse, text};

    const NAMED: &str = r#"{"id":"w","host":"h","pid":7,"version":"1","queues":["mails"],"processors":[{"queue":"mails","holding":2,"cycle":3},{"queue":null,"holding":0,"cycle":0}],"handled":[{"queue":"mails","processed":1,"errors":2,"retried":3,"duration":4,"last_error":"no"}],"follows_term":null,"stopping":false}"#;

    #[test]
    fn a_report_is_stored_in_these_words() -> Result<()> {
        let report: WorkerText = parse("a report", NAMED)?;
        assert_eq!(text(&WorkerText::new(&report.into_report()?))?, NAMED);
        Ok(())
    }
}
