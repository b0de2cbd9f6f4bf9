//! `work`: run a command for each task of some queues.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill::port::name::did_you_mean;
use gristmill::port::settings::LEASE_MIN;
use gristmill::signal::Signals;
use gristmill::worker::{WorkReport, Worker};
use gristmill::{Mill, QueueName, StoreError};
use gristmill_contract::duration;
use gristmill_server::{Listen, Options, Server};
use serde_json::json;

use super::{Session, text};
use crate::args::WorkArgs;
use crate::contracts::Contracts;
use crate::exec::{Broken, Children, Exec, How, Means, Stays, Told};
use crate::failure::{Exit, Failure};
use crate::output::count;
use crate::serve::{Beside, Staffed, Tell, admit, say, serve, take};
use crate::store::Missing;

/// Most processors of one worker: each may run a process.
const PROCESSORS_MAX: usize = 1_000;
/// Most tasks a store gives in one claim.
const BATCH_MAX: usize = 1_000;

/// Work on these queues.
#[derive(Debug)]
pub(crate) struct Work {
    /// None: all there are.
    queues: Vec<QueueName>,
    exec: String,
    stream: bool,
    drain: bool,
    processors: usize,
    batch: Option<usize>,
    lease: Option<Duration>,
    source: Option<String>,
    with_store: bool,
    metrics: Listen,
}

impl Work {
    pub(crate) fn meant(args: WorkArgs) -> Result<Self, Failure> {
        let within = |what: &str, number: usize, most: usize| {
            if (1..=most).contains(&number) {
                Ok(number)
            } else {
                Err(Failure::usage(format!("{what} {number}: give a number from 1 to {most}")))
            }
        };
        if args.exec.trim().is_empty() {
            return Err(Failure::usage("--exec is empty: give the command that handles a task"));
        }
        let lease = args.lease.as_deref().map(duration::parse).transpose();
        let lease = lease.map_err(Failure::usage)?;
        if lease.is_some_and(|lease| lease < LEASE_MIN) {
            return Err(Failure::usage(format!(
                "--lease is too short: at least {} is needed to keep it alive",
                duration::show(LEASE_MIN)
            )));
        }
        let queues =
            args.queues.iter().map(|name| QueueName::new(name)).collect::<Result<_, _>>()?;
        let metrics = args.metrics.as_deref().map(str::parse).transpose();
        let metrics = metrics.map_err(|why: String| Failure::usage(format!("--metrics: {why}")))?;
        Ok(Work {
            queues,
            exec: args.exec,
            stream: args.stream,
            drain: args.drain,
            processors: within("--processors", args.processors, PROCESSORS_MAX)?,
            batch: args.batch.map(|batch| within("--batch", batch, BATCH_MAX)).transpose()?,
            lease,
            source: args.source.map(|source| text("--source", source)).transpose()?,
            with_store: args.with_store,
            metrics: metrics.unwrap_or(Listen::Off),
        })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let began = Instant::now();
        let port = take(self.metrics).await?;
        let mill = session.open(Missing::Fail).await?;
        admit(&mill, self.metrics.reachable()).await?;
        let queues = self.served(&mill).await?;
        let children = Children::default();
        let (tells, broken) = Broken::new();
        let handler = Arc::new(Exec {
            told: Told::new(How {
                means: if self.stream {
                    Means::Stays(self.exec.clone())
                } else {
                    Means::Program(self.exec.clone())
                },
                contracts: Arc::new(Contracts::of(&mill).await?),
                store: self.with_store.then(|| session.url()),
            }),
            mill: mill.clone(),
            output_to_stderr: session.output.json,
            children: children.clone(),
            broken: tells,
            stays: Stays::default(),
        });
        let mut worker = Worker::new(&mill).processors(self.processors).drain(self.drain);
        for queue in &queues {
            worker = worker.queue(queue.as_str(), handler.clone());
        }
        if let Some(batch) = self.batch {
            worker = worker.batch(batch);
        }
        if let Some(lease) = self.lease {
            worker = worker.lease(lease);
        }
        if let Some(source) = self.source {
            worker = worker.source(source);
        }
        // Before anybody is told that they may send one.
        let signals = Signals::listen()?;
        if !self.drain {
            let names: Vec<&str> = queues.iter().map(QueueName::as_str).collect();
            say(format_args!("working on {}; stop with Ctrl-C", names.join(", ")));
        }
        let staffed = Staffed::new(worker, queues, broken);
        if let Some(port) = &port {
            say(format_args!("metrics at http://{}/metrics", port.address()));
        }
        let options = Options { watch_only: true, ..Options::default() };
        let http = port.map(|port| Server::new(port, &mill, options)).into_iter().collect();
        let beside = Beside { http, ..Beside::default() };
        let served =
            serve(&signals, &mill, vec![staffed], beside, &children, Tell::Trouble).await?;
        let report = &served.report;
        if session.output.json {
            session.output.value(&as_json(report))?;
        } else {
            say(sentence(report));
        }
        served.interrupted(self.drain)?;
        if self.drain && report.failed > 0 {
            let why = format!(
                "{} failed for good: 'gristmill failed --since {}' shows why",
                count(report.failed, "task"),
                duration::show(since_start(began))
            );
            return Err(Failure::new(Exit::Refused, "tasks_failed", why));
        }
        Ok(())
    }

    /// The queues to serve: a misspelt one is an error before anything starts. Asked as
    /// workers ask: who may work need not be allowed to look at numbers.
    async fn served(&self, mill: &Mill) -> Result<Vec<QueueName>, Failure> {
        let known = mill.inspect().queues().await?.into_iter().map(|queue| queue.name);
        let known: Vec<QueueName> = known.collect();
        if self.queues.is_empty() {
            if known.is_empty() {
                return Err(Failure::new(
                    Exit::Refused,
                    "unknown_queue",
                    "there are no queues yet: declare one with 'gristmill queue add NAME'",
                ));
            }
            return Ok(known);
        }
        // Named twice it is still one queue.
        let mut queues = self.queues.clone();
        queues.sort();
        queues.dedup();
        if let Some(queue) = queues.iter().find(|queue| !known.contains(queue)) {
            let near = did_you_mean(queue.as_str(), known.iter().map(QueueName::as_str));
            let (name, suggestion) = (queue.to_string(), near.map(str::to_owned));
            return Err(StoreError::UnknownQueue { name, suggestion }.into());
        }
        Ok(queues)
    }
}

/// How far back this drain's failures are, in whole minutes.
fn since_start(began: Instant) -> Duration {
    Duration::from_secs((began.elapsed().as_secs() / 60 + 1) * 60)
}

fn as_json(report: &WorkReport) -> serde_json::Value {
    let counts = [
        ("done", report.done),
        ("not_done", report.not_done),
        ("failed", report.failed),
        ("released", report.released),
        ("lease_lost", report.lease_lost),
    ];
    let mut said: serde_json::Map<_, _> =
        counts.into_iter().map(|(name, count)| (name.to_owned(), json!(count))).collect();
    let left = &report.left;
    if !left.is_empty() {
        let tasks = left.tasks.iter().map(|task| {
            json!({ "queue": task.queue.as_str(), "id": task.id.0, "running": task.running })
        });
        let left = json!({
            "running": left.running,
            "unsettled": left.unsettled,
            "tasks": tasks.collect::<Vec<_>>(),
        });
        said.insert("left".to_owned(), left);
    }
    said.into()
}

fn sentence(report: &WorkReport) -> String {
    let mut sentence = format!("{} done", count(report.done, "task"));
    for (number, what) in [
        (report.failed, "failed"),
        (report.not_done.saturating_sub(report.failed), "ended otherwise"),
        (report.released, "given back"),
        (report.lease_lost, "lost to another worker"),
    ] {
        if number > 0 {
            sentence += &format!(", {number} {what}");
        }
    }
    sentence
}
