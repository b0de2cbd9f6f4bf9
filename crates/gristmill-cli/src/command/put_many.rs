//! `put --from`: any number of tasks from lines, in constant memory.

use std::fs::File;
use std::path::PathBuf;

use gristmill::port::{NewTask, PutAnswer, Refusal};
use gristmill::signal::Signals;
use gristmill::{BulkReport, Encoding, QueueName};
use indicatif::ProgressBar;

use super::contract::declare_ours;
use super::line_source::LineSource;
use super::ndjson::{Flush, Form};
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
    form: Form,
    defaults: NewTask,
    create: bool,
}

impl PutMany {
    /// What was meant, if it was this kind of put.
    pub(crate) fn meant(args: &PutArgs) -> Result<Option<Self>, Failure> {
        let given = args.payload.as_deref();
        let from = match (&args.from, args.lines) {
            (Some(from), _) => from.clone(),
            (None, true) if given.is_none_or(|given| given == "-") => "-".into(),
            (None, true) => {
                let why = "--lines reads payloads from standard input or --from FILE: leave the \
                           payload out";
                return Err(Failure::usage(why));
            }
            (None, false) => return Ok(None),
        };
        let encoding = args.encoding.as_deref().map(str::parse::<Encoding>).transpose();
        let form = match encoding.map_err(Failure::usage)? {
            _ if args.envelope => Form::Envelope,
            _ if args.lines => Form::Plain,
            Some(Encoding::Raw) => Form::Plain,
            Some(Encoding::Json) | None => Form::Json,
            Some(Encoding::Msgpack) => {
                let why = "--from reads lines, and msgpack has none: put it one by one";
                return Err(Failure::usage(why));
            }
        };
        Ok(Some(PutMany {
            queue: QueueName::new(&args.queue)?,
            from,
            form,
            defaults: options(args)?,
            create: args.create,
        }))
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let (source, bar) = self.input()?;
        // Before the first line is read: whoever ends it is told what stands.
        let signals = Signals::listen()?;
        let missing = if self.create { Missing::Create } else { Missing::Offer };
        let mill = session.open(missing).await?;
        if self.create {
            declare_ours(session, &mill, &self.queue).await?;
        }
        let contracts = Contracts::of(&mill).await?;
        let contract = contracts.get(&self.queue);
        let mut flushes = ndjson::read(source, self.defaults.clone(), self.form)?;
        let mut report = BulkReport::default();
        let mut first_refusal = None;
        let mut lines_done = 0;
        let mut read = Flush::default();
        let stopped = loop {
            if signals.count() > 0 {
                break true;
            }
            if read.tasks.is_empty() {
                let next = tokio::select! {
                    biased;
                    () = signals.asked() => continue,
                    flush = flushes.recv() => flush,
                };
                let Some(flush) = next else { break false };
                read = flush.map_err(|failure| Self::stopped(failure, &report, lines_done))?;
                if read.tasks.is_empty() {
                    break false;
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
                break false;
            }
        };
        bar.finish_and_clear();
        mill.close().await?;
        if stopped {
            return Err(Self::stopped(Failure::interrupted("interrupted"), &report, lines_done));
        }
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

    fn input(&self) -> Result<(LineSource, ProgressBar), Failure> {
        if self.from.as_os_str() == "-" {
            let input = LineSource::input().map_err(|e| Failure::io("standard input", &e))?;
            return Ok((input, progress::steps("bytes")));
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
        Ok((LineSource::file(file), progress::bytes(size.len())))
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
