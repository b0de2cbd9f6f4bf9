//! `copy`: what stands in one store, to another.

use std::time::Duration;

use gristmill::StoreUrl;
use gristmill::copy::{CopiedQueue, CopyError, CopyReport};
use gristmill_contract::duration;
use serde_json::{Value, json};

use super::Session;
use crate::args::CopyArgs;
use crate::failure::{Exit, Failure};
use crate::output::count;
use crate::progress;
use crate::store::{self, Missing};

/// Copy from one store to another.
#[derive(Debug)]
pub(crate) struct Copy {
    from: StoreUrl,
    to: StoreUrl,
    wait: Option<Duration>,
}

impl Copy {
    pub(crate) fn meant(args: CopyArgs) -> Result<Self, Failure> {
        let wait = args.wait.as_deref().map(duration::parse).transpose().map_err(Failure::usage)?;
        let (from, to) = (args.from.meant()?, args.to.meant()?);
        if from == to {
            return Err(same());
        }
        Ok(Copy { from, to, wait })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let from = store::open(&self.from, Missing::Fail).await?;
        let to = store::open(&self.to, Missing::Create).await?;
        let bar = progress::tasks();
        let mut copy = from.copy_to(&to);
        if let Some(wait) = self.wait {
            copy = copy.wait(wait);
        }
        let copied = copy
            .progress(|so_far| {
                bar.set_length(so_far.total);
                bar.set_position(so_far.tasks);
            })
            .run()
            .await;
        bar.finish_and_clear();
        let report = copied.map_err(failure)?;
        to.close().await?;
        from.close().await?;
        self.show(session, &report)?;
        match report.left() {
            0 => Ok(()),
            left => Err(Failure::new(
                Exit::Refused,
                "not_copied",
                format!("{} stand only in {}", count(left, "task"), self.from),
            )),
        }
    }

    fn show(&self, session: &Session, report: &CopyReport) -> Result<(), Failure> {
        if session.output.json {
            return session.output.value(&json!({
                "from": self.from.to_string(),
                "to": self.to.to_string(),
                "imported": report.imported(),
                "already": report.already(),
                "left": report.left(),
                "schedules": report.schedules,
                "undecided": report.undecided,
                "queues": report.queues.iter().map(queue_json).collect::<Vec<_>>(),
            }));
        }
        for queue in &report.queues {
            let mut line = format!("{}: {} copied", queue.queue, count(queue.imported, "task"));
            for (number, what) in [
                (queue.already, "copied before"),
                (queue.duplicates.len() as u64, "left behind: their keys stand in the target"),
                (queue.refused.len() as u64, "refused by the target"),
            ] {
                if number > 0 {
                    line += &format!(", {number} {what}");
                }
            }
            session.output.line(line)?;
            for (id, why) in &queue.refused {
                session.output.line(format_args!("  task {id} was refused: {why}"))?;
            }
            for (setting, there, here) in &queue.differs {
                let differs = format_args!("  {setting} is {here} in the target, not {there}");
                session.output.line(differs)?;
            }
        }
        session.output.line(format_args!("{} copied", count(report.schedules, "schedule")))?;
        for name in &report.undecided {
            session.output.line(format_args!(
                "  '{name}' had a fire that nobody made: make it with 'gristmill schedules fire {name}'"
            ))?;
        }
        session.output.line(format_args!(
            "{} is paused and keeps its tasks: put and work on {} from now on",
            self.from, self.to
        ))
    }
}

fn queue_json(queue: &CopiedQueue) -> Value {
    let refused = queue.refused.iter().map(|(id, why)| json!({ "id": id.0, "reason": why.code() }));
    let differs = queue
        .differs
        .iter()
        .map(|(setting, there, here)| json!({ "setting": setting, "from": there, "to": here }));
    json!({
        "queue": queue.queue.as_str(),
        "imported": queue.imported,
        "already": queue.already,
        "duplicates": queue.duplicates.iter().map(|id| id.0).collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
        "differs": differs.collect::<Vec<_>>(),
    })
}

fn same() -> Failure {
    Failure::usage("--from and --to are the same store: name another one after --to")
}

fn failure(error: CopyError) -> Failure {
    let message = format!("{error:#}");
    match error {
        CopyError::SameStore => same(),
        CopyError::AnotherCopy(_) => Failure::new(Exit::Unavailable, "another_copy", message),
        CopyError::StillProcessing { .. } => {
            let message = format!("{message}; '--wait 10m' waits longer");
            Failure::new(Exit::Unavailable, "still_processing", message)
        }
        CopyError::HalfCopied(_) => Failure::new(Exit::Refused, "half_copied", message),
        CopyError::NotAllAway(_) => Failure::new(Exit::Refused, "not_all_away", message),
        CopyError::OtherContract(_) => Failure::new(Exit::Refused, "other_contract", message),
        CopyError::Store(error) => Failure { message, ..Failure::from(error) },
        _ => Failure::new(Exit::Wrong, "wrong", message),
    }
}
