//! `settle`, `done`, `fail` and `extend`: how a claim of a shell script ends, or goes on.

use std::io::Read;
use std::time::Duration;

use gristmill::port::{
    Became, ExtendAnswer, Extension, Outcome, SettleAnswer, Settlement, TaskProgress, Token, When,
};
use gristmill::{Payload, TaskId};
use serde_json::{Value, json};

use super::{Session, put};
use crate::args::{DoneArgs, ExtendArgs, FailArgs, HeldArgs, SettleArgs};
use crate::failure::{Exit, Failure};
use crate::output::{count, time};
use crate::store::Missing;
use gristmill_contract::duration;

/// What `claim --shell` leaves.
const TASK: &str = "GRISTMILL_TASK_ID";

/// End an attempt of these tasks.
#[derive(Debug)]
pub(crate) struct Settle {
    ids: Vec<TaskId>,
    token: Token,
    outcome: Outcome,
    result: Option<Payload>,
}

impl Settle {
    pub(crate) fn meant(args: SettleArgs) -> Result<Self, Failure> {
        let span = |said: &str| duration::parse(said).map_err(Failure::usage);
        let after = args.after.as_deref().map(span).transpose()?;
        let result = args.result.map(result).transpose()?;
        let outcome = if let Some(error) = args.error {
            Outcome::Error(said("--error", error)?)
        } else if let Some(error) = args.fail {
            Outcome::Fail(said("--fail", error)?)
        } else if let Some(retry) = args.retry {
            Outcome::Retry { at: When::After(span(&retry)?), reason: args.reason }
        } else if args.release {
            Outcome::Release { at: after.map(When::After), started: true }
        } else if args.cancelled {
            Outcome::Cancelled
        } else {
            Outcome::Done
        };
        Self::of(args.held, outcome, result)
    }

    pub(crate) fn done(args: DoneArgs) -> Result<Self, Failure> {
        let result = args.result.map(result).transpose()?;
        Self::of(args.held, Outcome::Done, result)
    }

    pub(crate) fn fail(args: FailArgs) -> Result<Self, Failure> {
        let error = said("--error", args.error)?;
        Self::of(args.held, Outcome::Fail(error), None)
    }

    fn of(held: HeldArgs, outcome: Outcome, result: Option<Payload>) -> Result<Self, Failure> {
        let mut ids = held.ids;
        if ids.is_empty() {
            let left = std::env::var(TASK).ok().filter(|id| !id.is_empty());
            ids.extend(left);
        }
        if ids.is_empty() {
            return Err(Failure::usage(format!(
                "which task? name its id, or set {TASK}, as 'gristmill claim --shell' does"
            )));
        }
        let ids = ids.iter().map(|id| id.parse()).collect::<Result<_, _>>();
        Ok(Settle { ids: ids.map_err(Failure::usage)?, token: token(held.token)?, outcome, result })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        let (token, outcome) = (self.token, &self.outcome);
        let settle = |id: &TaskId| Settlement {
            result: self.result.clone(),
            ..Settlement::new(*id, token, outcome.clone())
        };
        let settlements = self.ids.iter().map(settle).collect();
        let answers = mill.store().settle(settlements).await?;
        mill.close().await?;
        let mut lost = Vec::new();
        for (id, answer) in self.ids.iter().zip(&answers) {
            if *answer == SettleAnswer::LeaseLost {
                lost.push(id.to_string());
            }
            session.output.either(&as_json(*id, answer), sentence(*id, answer))?;
        }
        if lost.is_empty() {
            return Ok(());
        }
        let why = format!(
            "the lease of {} was lost: somebody else has it or had it, and what this attempt did \
             was not recorded",
            lost.join(", ")
        );
        Err(Failure::new(Exit::Refused, "lease_lost", why))
    }
}

/// What a task came to, as `put` would read a payload.
fn result(said: String) -> Result<Payload, Failure> {
    if said != "-" {
        return put::payload(said.into_bytes(), None);
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().take(put::INPUT_MAX).read_to_end(&mut bytes);
    read.map_err(|error| Failure::io("standard input", &error))?;
    put::payload(bytes, None)
}

fn said(option: &str, text: String) -> Result<String, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage(format!("{option} is empty: say what went wrong")));
    }
    Ok(text)
}

fn token(said: Option<String>) -> Result<Token, Failure> {
    let said = said.filter(|token| !token.is_empty()).ok_or_else(|| {
        Failure::usage(
            "whose claim? say --token, or set GRISTMILL_TOKEN, as 'gristmill claim --shell' does",
        )
    })?;
    // Not shown: it may be a part of one.
    said.parse().map_err(|error| Failure::usage(format!("--token: {error}")))
}

fn as_json(id: TaskId, answer: &SettleAnswer) -> Value {
    let (became, run_at) = match answer {
        SettleAnswer::Recorded { became: Became::Pending { run_at }, .. } => {
            (Some("pending"), Some(run_at.to_string()))
        }
        SettleAnswer::Recorded { became: Became::Done, .. } => (Some("done"), None),
        SettleAnswer::Recorded { became: Became::Failed, .. } => (Some("failed"), None),
        SettleAnswer::Recorded { became: Became::Cancelled, .. } => (Some("cancelled"), None),
        _ => (None, None),
    };
    json!({ "id": id.0, "answer": word(answer), "became": became, "run_at": run_at })
}

const fn word(answer: &SettleAnswer) -> &'static str {
    match answer {
        SettleAnswer::Recorded { .. } => "recorded",
        SettleAnswer::AlreadyRecorded => "already_recorded",
        SettleAnswer::Gone => "gone",
        SettleAnswer::LeaseLost => "lease_lost",
    }
}

fn sentence(id: TaskId, answer: &SettleAnswer) -> String {
    let became = match answer {
        SettleAnswer::Recorded { became, .. } => match became {
            Became::Done => "done".to_owned(),
            Became::Pending { run_at } => {
                let now = time::now();
                // Given back in its old place, it was due before.
                format!("runs again {}", time::relative((*run_at).max(now), now))
            }
            Became::Failed => "failed".to_owned(),
            Became::Cancelled => "cancelled".to_owned(),
        },
        SettleAnswer::AlreadyRecorded => "was settled before by this claim".to_owned(),
        SettleAnswer::Gone => "is gone already".to_owned(),
        SettleAnswer::LeaseLost => "not recorded".to_owned(),
    };
    format!("task {id} {became}")
}

/// Keep everything of a claim.
#[derive(Debug)]
pub(crate) struct Extend {
    token: Token,
    lease: Duration,
    progress: Vec<TaskProgress>,
}

impl Extend {
    pub(crate) fn meant(args: ExtendArgs) -> Result<Self, Failure> {
        let lease = duration::parse(&args.lease);
        let lease = lease.map_err(|why| Failure::usage(format!("--lease: {why}")))?;
        let mut told = Vec::new();
        if let (Some(id), Some(text)) = (args.task, args.progress) {
            let id = id.parse().map_err(Failure::usage)?;
            let progress = text.parse();
            let progress = progress.map_err(|why| Failure::usage(format!("--progress: {why}")))?;
            told.push(TaskProgress { id, progress });
        }
        Ok(Extend { token: token(args.token)?, lease, progress: told })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        let extension = Extension { token: self.token, lease: self.lease, progress: self.progress };
        let answers = mill.store().extend(vec![extension]).await?;
        mill.close().await?;
        match answers.into_iter().next() {
            Some(ExtendAnswer::Extended { cancelled, lost }) => {
                let ids = |ids: &[TaskId]| ids.iter().map(|id| id.0).collect::<Vec<_>>();
                let value = json!({
                    "answer": "extended",
                    "lease_ms": u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX),
                    "cancelled": ids(&cancelled),
                    "lost": ids(&lost),
                });
                let mut line = format!("the lease lasts {} from now", duration::show(self.lease));
                if !cancelled.is_empty() {
                    let tasks = count(cancelled.len() as u64, "task");
                    line += &format!("; {tasks} cancelled: stop and settle with --cancelled");
                }
                if !lost.is_empty() {
                    line += &format!("; {} gone: stop", count(lost.len() as u64, "task"));
                }
                session.output.either(&value, line)
            }
            _ => {
                if session.output.json {
                    session.output.value(&json!({ "answer": "lease_lost" }))?;
                }
                let why = "the lease was lost: nothing is open under this token, so stop";
                Err(Failure::new(Exit::Refused, "lease_lost", why))
            }
        }
    }
}
