//! Settlements: how attempts ended, and what became of them.

use gristmill::Payload;
use gristmill::port::{Became, FollowUp, Limits, Outcome, SettleAnswer, Settlement, When};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::answer::PutOut;
use super::fields::{id, queue, span, token};
use super::task::TaskIn;
use crate::known::Queues;
use crate::problem::{Answer, Problem};

/// How one attempt ended.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettlementIn {
    id: String,
    token: String,
    outcome: String,
    error: Option<String>,
    after: Option<String>,
    /// Of a release: whether the handler had begun. It had, unless said.
    started: Option<bool>,
    /// What the handler returns, of a done.
    result: Option<Box<RawValue>>,
    follow_ups: Option<Vec<TaskIn>>,
}

impl SettlementIn {
    pub(crate) fn meant(self, queues: &Queues, limits: &Limits) -> Answer<Settlement> {
        let (id, token) = (id("id", &self.id)?, token("token", &self.token)?);
        let after = self.after.map(|after| span("after", &after)).transpose()?;
        let only = |field: &str, with: &str| {
            let outcome: String = self.outcome.chars().take(40).collect();
            Problem::field(field, format!("'{field}' goes with {with}, not with '{outcome}'"))
        };
        if after.is_some() && !matches!(&*self.outcome, "retry" | "release") {
            return Err(only("after", "retry and release"));
        }
        if self.error.is_some() && !matches!(&*self.outcome, "error" | "fail" | "retry") {
            return Err(only("error", "error, fail and retry"));
        }
        if self.result.is_some() && self.outcome != "done" {
            return Err(only("result", "done"));
        }
        if self.started.is_some() && self.outcome != "release" {
            return Err(only("started", "release"));
        }
        let error = || self.error.clone().unwrap_or_else(|| "no error was given".to_owned());
        let outcome = match &*self.outcome {
            "done" => Outcome::Done,
            "error" => Outcome::Error(error()),
            "fail" => Outcome::Fail(error()),
            "retry" => {
                let after = after.ok_or_else(|| {
                    let why = "a retry says when, like \"30s\"; 'error' leaves it to the queue";
                    Problem::field("after", why)
                })?;
                Outcome::Retry { at: When::After(after), reason: self.error.clone() }
            }
            "release" => Outcome::Release {
                at: after.map(When::After),
                started: self.started.unwrap_or(true),
            },
            "cancelled" => Outcome::Cancelled,
            other => {
                let shown: String = other.chars().take(40).collect();
                let why =
                    format!("'{shown}' is not one of done, error, retry, fail, release, cancelled");
                return Err(Problem::field("outcome", why));
            }
        };
        let mut settlement = Settlement::new(id, token, outcome);
        if let Some(result) = self.result {
            let result = Payload::json(result.get().to_owned().into_bytes());
            if let Some(why) = limits.refuse_result(&result) {
                return Err(Problem::field("result", why));
            }
            settlement.result = Some(result);
        }
        for (at, task) in self.follow_ups.unwrap_or_default().into_iter().enumerate() {
            let follow_up = follow_up(task, queues);
            let follow_up = follow_up.map_err(|p| p.within(&format!("follow_ups[{at}]")))?;
            settlement.follow_ups.push(follow_up.put_by(settlement.id, limits));
        }
        Ok(settlement)
    }
}

fn follow_up(mut task: TaskIn, queues: &Queues) -> Answer<FollowUp> {
    let name = task.queue.take();
    let name = name.ok_or_else(|| Problem::field("queue", "a follow-up names its queue"))?;
    let queue = queue("queue", &name)?;
    let task = queues.fit(&queue, task.meant()?).map_err(|why| Problem::refused(&why))?;
    Ok(FollowUp { queue, task })
}

/// What became of one settlement.
#[derive(Debug, Serialize)]
pub(crate) struct SettlementOut {
    id: String,
    /// `recorded`, `already_recorded`, `gone` or `lease_lost`. None is an error.
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    became: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_at: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    follow_ups: Vec<PutOut>,
}

impl SettlementOut {
    pub(crate) fn of(id: gristmill::TaskId, answer: SettleAnswer) -> Self {
        let plain = |outcome| SettlementOut {
            id: id.to_string(),
            outcome,
            became: None,
            run_at: None,
            follow_ups: Vec::new(),
        };
        match answer {
            SettleAnswer::Recorded { became, follow_ups } => {
                let (became, run_at) = match became {
                    Became::Done => ("done", None),
                    Became::Pending { run_at } => ("pending", Some(run_at.to_string())),
                    Became::Failed => ("failed", None),
                    Became::Cancelled => ("cancelled", None),
                };
                SettlementOut {
                    became: Some(became),
                    run_at,
                    follow_ups: follow_ups.into_iter().map(PutOut::from).collect(),
                    ..plain("recorded")
                }
            }
            SettleAnswer::AlreadyRecorded => plain("already_recorded"),
            SettleAnswer::Gone => plain("gone"),
            SettleAnswer::LeaseLost => plain("lease_lost"),
        }
    }
}
