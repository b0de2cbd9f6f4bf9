//! Claims and extensions: what is asked for, and what is given.

use std::time::Duration;

use gristmill::port::{
    Claim, ClaimedTask, ExtendAnswer, Extension, Headers, TaskProgress, Token, WorkerId,
};
use gristmill::{Progress, QueueName, TaskId};
use gristmill_contract::task_settings::shown;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fields::{counted, id, millis, queue, span, text, token, whole, worker};
use super::payload::PayloadOut;
use crate::known::Queues;
use crate::limits::{CLAIM_QUEUES, EXTENSIONS, PROGRESS};
use crate::problem::{Answer, Problem};

/// Asks for tasks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimIn {
    queues: Vec<String>,
    #[serde(default, deserialize_with = "whole")]
    max: Option<usize>,
    lease: Option<String>,
    wait: Option<String>,
    worker: Option<String>,
    source: Option<String>,
    token: Option<String>,
}

/// What was meant by it.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) queues: Vec<QueueName>,
    pub(crate) max: usize,
    pub(crate) lease: Option<Duration>,
    pub(crate) wait: Duration,
    pub(crate) worker: WorkerId,
    pub(crate) source: Option<String>,
    /// The caller's own, by which it can ask again.
    pub(crate) token: Option<Token>,
}

impl ClaimIn {
    pub(crate) fn meant(self, limits: &gristmill::port::Limits) -> Answer<Wanted> {
        let mut queues = Vec::new();
        for (at, name) in self.queues.iter().enumerate() {
            let name = queue(&format!("queues[{at}]"), name)?;
            if !queues.contains(&name) {
                queues.push(name);
            }
        }
        if queues.is_empty() || queues.len() > CLAIM_QUEUES {
            let why = format!("a claim names from 1 to {CLAIM_QUEUES} queues");
            return Err(Problem::field("queues", why));
        }
        let most = limits.claim_tasks;
        let max = self.max.unwrap_or(1);
        if max == 0 || max > most {
            return Err(Problem::field("max", format!("a claim takes from 1 to {most} tasks")));
        }
        let wait = self.wait.map(|wait| span("wait", &wait)).transpose()?.unwrap_or_default();
        if wait > limits.wait {
            let most = limits.wait.as_secs();
            return Err(Problem::field("wait", format!("one call waits at most {most}s")));
        }
        let worker = match self.worker {
            Some(name) => worker("worker", &name)?,
            None => WorkerId::random()?,
        };
        Ok(Wanted {
            queues,
            max,
            lease: self.lease.map(|lease| span("lease", &lease)).transpose()?,
            wait,
            worker,
            source: self.source.map(|source| text("source", source, 512)).transpose()?,
            token: self.token.map(|said| token("token", &said)).transpose()?,
        })
    }
}

/// What was given.
#[derive(Debug, Serialize)]
pub(crate) struct ClaimOut<'a> {
    token: String,
    /// Nothing where nothing was given.
    queue: Option<&'a str>,
    lease_ms: u64,
    tasks: Vec<ClaimedOut<'a>>,
}

#[derive(Debug, Serialize)]
struct ClaimedOut<'a> {
    id: String,
    queue: &'a str,
    #[serde(flatten)]
    payload: PayloadOut,
    key: Option<&'a str>,
    group: Option<&'a str>,
    source: Option<&'a str>,
    priority: i16,
    attempt: u32,
    returns: u32,
    claims: u32,
    created_at: String,
    run_at: String,
    prev_run_at: Option<String>,
    headers: &'a Headers,
    /// `timeout`, `max_attempts` and `backoff`, where it has its own.
    #[serde(flatten)]
    own: Map<String, Value>,
    concurrent: Option<u32>,
    slot: Option<u32>,
    alone: bool,
}

impl<'a> ClaimOut<'a> {
    pub(crate) fn of(claim: &'a Claim, queues: &Queues) -> Self {
        let given = !claim.tasks.is_empty();
        ClaimOut {
            token: claim.token.to_string(),
            queue: given.then(|| claim.queue.as_str()),
            lease_ms: millis(claim.lease),
            tasks: claim.tasks.iter().map(|task| claimed(claim, task, queues)).collect(),
        }
    }
}

fn claimed<'a>(claim: &'a Claim, task: &'a ClaimedTask, queues: &Queues) -> ClaimedOut<'a> {
    ClaimedOut {
        id: task.id.to_string(),
        queue: claim.queue.as_str(),
        payload: PayloadOut::of(&task.payload, queues.as_json(&claim.queue, &task.payload)),
        key: task.key.as_deref(),
        group: task.group.as_deref(),
        source: task.source.as_deref(),
        priority: task.priority,
        attempt: task.attempt,
        returns: task.returns(),
        claims: task.claims,
        created_at: task.created_at.to_string(),
        run_at: task.run_at.to_string(),
        prev_run_at: task.prev_run_at.map(|at| at.to_string()),
        headers: &task.headers,
        own: shown(&task.settings),
        concurrent: task.concurrent,
        slot: task.slot,
        alone: task.alone,
    }
}

/// Asks for more time under one token.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExtensionIn {
    pub(crate) queue: String,
    token: String,
    lease: String,
    progress: Option<Vec<ProgressIn>>,
}

/// How far one task of the claim is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProgressIn {
    id: String,
    #[serde(default, deserialize_with = "counted")]
    done: Option<u64>,
    #[serde(default, deserialize_with = "counted")]
    total: Option<u64>,
    #[serde(default)]
    message: String,
}

impl ProgressIn {
    fn all(list: Vec<Self>) -> Answer<Vec<TaskProgress>> {
        if list.len() > PROGRESS {
            let why = format!("{} tasks and {PROGRESS} are allowed in a claim", list.len());
            return Err(Problem::field("progress", why));
        }
        let each = list.into_iter().enumerate().map(|(at, said)| {
            let id = id(&format!("progress[{at}].id"), &said.id)?;
            let progress = Progress::new(said.done.unwrap_or(0), said.total, &said.message);
            Ok(TaskProgress { id, progress })
        });
        each.collect()
    }
}

/// The same, where the path has the token.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExtendIn {
    queue: Option<String>,
    lease: String,
    progress: Option<Vec<ProgressIn>>,
}

impl ExtensionIn {
    fn meant(self) -> Answer<Extension> {
        // Where a queue lives will decide who is asked; until then it must only be a name.
        queue("queue", &self.queue)?;
        let (token, lease) = (token("token", &self.token)?, span("lease", &self.lease)?);
        Ok(Extension {
            token,
            lease,
            progress: ProgressIn::all(self.progress.unwrap_or_default())?,
        })
    }

    pub(crate) fn all(list: Vec<Self>) -> Answer<Vec<Extension>> {
        if list.len() > EXTENSIONS {
            let why = format!("{} extensions and {EXTENSIONS} are allowed in a call", list.len());
            return Err(Problem::field("", why));
        }
        let each = list.into_iter().enumerate();
        each.map(|(at, one)| one.meant().map_err(|p| p.within(&format!("[{at}]")))).collect()
    }
}

impl ExtendIn {
    pub(crate) fn meant(self, said: &str) -> Answer<Extension> {
        if let Some(name) = &self.queue {
            queue("queue", name)?;
        }
        let (token, lease) = (token("token", said)?, span("lease", &self.lease)?);
        Ok(Extension {
            token,
            lease,
            progress: ProgressIn::all(self.progress.unwrap_or_default())?,
        })
    }
}

/// What became of an extension.
#[derive(Debug, Serialize)]
pub(crate) struct ExtensionOut {
    token: String,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_ms: Option<u64>,
    /// When the lease ends, by this service's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    /// Tasks that an operator cancelled: stop them and settle them as cancelled.
    cancelled: Vec<String>,
    /// Tasks that are gone: stop them, there is nothing to settle.
    lost: Vec<String>,
}

impl ExtensionOut {
    pub(crate) fn of(
        extension: &Extension,
        answer: ExtendAnswer,
        now: gristmill::Timestamp,
    ) -> Self {
        let token = extension.token.to_string();
        let ids = |ids: Vec<TaskId>| ids.into_iter().map(|id| id.to_string()).collect();
        match answer {
            ExtendAnswer::Extended { cancelled, lost } => ExtensionOut {
                token,
                outcome: "extended",
                lease_ms: Some(millis(extension.lease)),
                until: Some(now.after(extension.lease).to_string()),
                cancelled: ids(cancelled),
                lost: ids(lost),
            },
            ExtendAnswer::LeaseLost => ExtensionOut {
                token,
                outcome: "lease_lost",
                lease_ms: None,
                until: None,
                cancelled: Vec::new(),
                lost: Vec::new(),
            },
        }
    }
}
