//! `put --from`: any number of tasks from lines, in constant memory.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use gristmill::port::{NewTask, PutAnswer, Refusal};
use gristmill::{BulkReport, QueueName};
use indicatif::ProgressBar;

use super::ndjson::Flush;
use super::put::{answer_json, options, put, refused};
use super::{Session, ndjson};
use crate::args::PutArgs;
use crate::contracts::{Contracts, fit};
use crate::failure::Failure;
use crate::output::count;
use crate::progress;
use crate::store::Missing;

/// Put every line of the input.
#[derive(Debug)]
pub(crate) struct PutMany {
    queue: QueueName,
    from: PathBuf,
    envelope: bool,
    defaults: NewTask,
    create: bool,
}

impl PutMany {
    /// What was meant, if it was this kind of put.
    pub(crate) fn meant(args: &PutArgs) -> Result<Option<Self>, Failure> {
        let Some(from) = args.from.clone() else { return Ok(None) };
        Ok(Some(PutMany {
            queue: QueueName::new(&args.queue)?,
            from,
            envelope: args.envelope,
            defaults: options(args)?,
            create: args.create,
        }))
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let (source, bar) = self.input()?;
        let missing = if self.create { Missing::Create } else { Missing::Fail };
        let mill = session.open(missing).await?;
        let contracts = Contracts::of(&mill).await?;
        let contract = contracts.get(&self.queue);
        let mut flushes = ndjson::read(source, self.defaults.clone(), self.envelope)?;
        let mut report = BulkReport::default();
        let mut first_refusal = None;
        let mut lines_done = 0;
        let mut read = Flush::default();
        loop {
            if read.tasks.is_empty() {
                let Some(flush) = flushes.recv().await else { break };
                read = flush.map_err(|failure| Self::stopped(failure, &report, lines_done))?;
                if read.tasks.is_empty() {
                    break;
                }
            }
            let flush = read.split(mill.store().flush_limit().unwrap_or(usize::MAX));
            let last_line = flush.lines.last().copied().unwrap_or(lines_done);
            let tasks = flush.tasks.into_iter().map(|task| fit(contract, task, false)).collect();
            let answers = put(&mill, &self.queue, tasks, self.create)
                .await
                .map_err(|error| Self::stopped(error.into(), &report, lines_done))?;
            lines_done = last_line;
            if session.output.json {
                let lines: Vec<_> = answers.iter().map(answer_json).collect();
                session.output.values(&lines)?;
            }
            for answer in answers {
                tally(&mut report, &answer);
                if let PutAnswer::Refused(refusal) = answer {
                    first_refusal.get_or_insert(refusal);
                }
            }
            report.flushes += 1;
            bar.inc(flush.bytes);
            bar.set_message(count(report.enqueued, "task"));
            if matches!(first_refusal, Some(Refusal::UnknownQueue { .. })) {
                break;
            }
        }
        bar.finish_and_clear();
        mill.close().await?;
        if !session.output.json {
            session.output.line(sentence(&report))?;
        }
        match first_refusal {
            None => Ok(()),
            Some(refusal @ Refusal::UnknownQueue { .. }) => Err(refused(&refusal)),
            Some(refusal) => {
                let first = refused(&refusal);
                let message =
                    format!("{} refused; the first: {first}", count(report.refused, "task"));
                Err(Failure { message, ..first })
            }
        }
    }

    fn input(&self) -> Result<(Box<dyn BufRead + Send>, ProgressBar), Failure> {
        if self.from.as_os_str() == "-" {
            let lines = BufReader::with_capacity(1 << 16, std::io::stdin());
            return Ok((Box::new(lines), progress::steps("bytes")));
        }
        let shown = self.from.display();
        let cannot = |error: std::io::Error| {
            Failure::usage(format!("{shown} cannot be read: {error}; check the path after --from"))
        };
        let file = File::open(&self.from).map_err(cannot)?;
        let size = file.metadata().map_err(cannot)?;
        if size.is_dir() {
            return Err(Failure::usage(format!("{shown} is a folder: name a file after --from")));
        }
        let lines = BufReader::with_capacity(1 << 16, file);
        Ok((Box::new(lines), progress::bytes(size.len())))
    }

    /// The failure together with what stands already.
    fn stopped(failure: Failure, report: &BulkReport, lines_done: u64) -> Failure {
        let stands = if report.flushes == 0 {
            "nothing was put".to_owned()
        } else {
            format!(
                "lines 1 to {lines_done} were put ({} enqueued, {}), nothing behind them",
                report.enqueued,
                count(report.duplicates, "duplicate")
            )
        };
        let stands = if failure.code == "outcome_unknown" {
            format!("lines 1 to {lines_done} were put, the next flush may or may not stand")
        } else {
            stands
        };
        Failure { message: format!("{}; {stands}", failure.message), ..failure }
    }
}

fn tally(report: &mut BulkReport, answer: &PutAnswer) {
    match answer {
        PutAnswer::Enqueued { .. } => report.enqueued += 1,
        PutAnswer::Duplicate { .. } => report.duplicates += 1,
        PutAnswer::Replaced { .. } => report.replaced += 1,
        PutAnswer::Refused(_) => report.refused += 1,
    }
}

fn sentence(report: &BulkReport) -> String {
    let mut sentence = format!("{} enqueued", report.enqueued);
    for (number, what) in [
        (report.duplicates, "duplicate"),
        (report.replaced, "replaced"),
        (report.refused, "refused"),
    ] {
        if number > 0 {
            sentence += &format!(", {number} {what}");
        }
    }
    sentence
}
