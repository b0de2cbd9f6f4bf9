//! A worker's report.

use std::time::Duration;

use gristmill_core::{HandlerStats, ProcessorReport, Result, WorkerReport};
use serde::{Deserialize, Serialize};

use crate::{micros, queue_name, worker_id};

/// A report as it is stored. `P` is the form of its processors, which differs
/// between stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerText<P> {
    id: String,
    host: String,
    pid: u32,
    version: String,
    queues: Vec<String>,
    processors: Vec<P>,
    handled: Vec<HandledText>,
    follows_term: Option<u64>,
    stopping: bool,
}

/// A processor by the names of its fields, in databases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedProcessor {
    queue: Option<String>,
    holding: u32,
    cycle: u64,
}

/// A processor as its queue, tasks held and the cycle's length, in files: it is
/// written with every report.
pub type ProcessorRow = (Option<String>, u32, u64);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HandledText {
    queue: String,
    processed: u64,
    errors: u64,
    retried: u64,
    duration: u64,
    last_error: Option<String>,
}

/// A form in which processors are stored.
pub trait ProcessorText {
    /// The stored form of a processor.
    fn from_row(row: ProcessorRow) -> Self;
    /// What is stored.
    fn into_row(self) -> ProcessorRow;
}

impl ProcessorText for ProcessorRow {
    fn from_row(row: ProcessorRow) -> Self {
        row
    }

    fn into_row(self) -> ProcessorRow {
        self
    }
}

impl ProcessorText for NamedProcessor {
    fn from_row((queue, holding, cycle): ProcessorRow) -> Self {
        NamedProcessor { queue, holding, cycle }
    }

    fn into_row(self) -> ProcessorRow {
        (self.queue, self.holding, self.cycle)
    }
}

impl<P: ProcessorText> WorkerText<P> {
    /// The report as it is stored.
    #[must_use]
    pub fn new(report: &WorkerReport) -> Self {
        let processor = |p: &ProcessorReport| {
            P::from_row((p.queue.as_ref().map(ToString::to_string), p.holding, micros(p.cycle)))
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
    ///
    /// # Errors
    ///
    /// Corrupt, when a name in it is none.
    pub fn into_report(self) -> Result<WorkerReport> {
        let processor = |stored: P| {
            let (queue, holding, cycle) = stored.into_row();
            let queue = queue.as_deref().map(queue_name).transpose()?;
            Ok(ProcessorReport { queue, holding, cycle: Duration::from_micros(cycle) })
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
    const ROWS: &str = r#"{"id":"w","host":"h","pid":7,"version":"1","queues":["mails"],"processors":[["mails",2,3],[null,0,0]],"handled":[{"queue":"mails","processed":1,"errors":2,"retried":3,"duration":4,"last_error":"no"}],"follows_term":null,"stopping":false}"#;

    #[test]
    fn a_report_is_stored_in_these_words() -> Result<()> {
        let named: WorkerText<NamedProcessor> = parse("a report", NAMED)?;
        let rows: WorkerText<ProcessorRow> = parse("a report", ROWS)?;
        let report = named.into_report()?;
        assert_eq!(rows.into_report().as_ref(), Ok(&report));
        assert_eq!(text(&WorkerText::<NamedProcessor>::new(&report))?, NAMED);
        assert_eq!(text(&WorkerText::<ProcessorRow>::new(&report))?, ROWS);
        Ok(())
    }
}
