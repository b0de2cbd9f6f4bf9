//! `claim`: tasks for a worker that is a shell script, under a lease of its own.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gristmill::port::{Claim as Taken, ClaimRequest, ClaimedTask, Outcome, Settlement, Token};
use gristmill::port::{Headers, WorkerId};
use gristmill::{Encoding, Mill, Payload, QueueName};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Session, text};
use crate::args::ClaimArgs;
use crate::contracts::Contracts;
use crate::failure::{Exit, Failure};
use crate::output::task::PayloadJson;
use crate::store::Missing;
use gristmill_contract::{duration, task_settings};

/// How often others' work is done while this one waits.
const SWEEP: Duration = Duration::from_secs(1);

/// Take tasks.
#[derive(Debug)]
pub(crate) struct Claim {
    queues: Vec<QueueName>,
    max: usize,
    lease: Option<Duration>,
    wait: Duration,
    source: Option<String>,
    worker: Option<WorkerId>,
    shell: bool,
    payload: Option<PathBuf>,
}

impl Claim {
    pub(crate) fn meant(args: ClaimArgs) -> Result<Self, Failure> {
        let span = |said: Option<String>| said.as_deref().map(duration::parse).transpose();
        if args.max == 0 {
            return Err(Failure::usage("--max 0 claims nothing: give a number from 1"));
        }
        let one = if args.shell { "--shell" } else { "--payload" };
        if args.max > 1 && (args.shell || args.payload.is_some()) {
            let max = args.max;
            return Err(Failure::usage(format!("{one} is for one task: leave --max {max} out")));
        }
        let queues = args.queues.iter().map(|name| QueueName::new(name));
        Ok(Claim {
            queues: queues.collect::<Result<_, _>>()?,
            max: args.max,
            lease: span(args.lease).map_err(Failure::usage)?,
            wait: span(args.wait).map_err(Failure::usage)?.unwrap_or_default(),
            source: args.source.map(|source| text("--source", source)).transpose()?,
            worker: args.worker.as_deref().map(WorkerId::new).transpose()?,
            shell: args.shell,
            payload: args.payload,
        })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        for queue in &self.queues {
            mill.inspect().queue(queue.as_str()).await?;
        }
        let done = self.claim(&mill, session).await;
        mill.close().await?;
        done
    }

    async fn claim(&self, mill: &Mill, session: &Session) -> Result<(), Failure> {
        let contracts = Contracts::of(mill).await?;
        let taken = self.look(mill).await?;
        if taken.tasks.is_empty() {
            return Err(self.nothing(&taken));
        }
        let told = self.tell(&taken, &contracts, session);
        if told.is_err() {
            // Nobody knows of it: it would only come back when its lease ends.
            let release = Outcome::Release { at: None, started: false };
            let back = taken.tasks.iter();
            let back = back.map(|task| Settlement::new(task.id, taken.token, release.clone()));
            mill.store().settle(back.collect()).await?;
        }
        told
    }

    /// Looks at the queues until one gives something, or the time is over.
    async fn look(&self, mill: &Mill) -> Result<Taken, Failure> {
        let until = Instant::now() + self.wait;
        let worker = self.worker.clone().map_or_else(WorkerId::random, Ok)?;
        let token = Token::random()?;
        loop {
            let mark = mill.store().mark();
            let mut last: Option<Taken> = None;
            for queue in &self.queues {
                let taken = mill
                    .store()
                    .claim(ClaimRequest {
                        queue: queue.clone(),
                        max: self.max,
                        lease: self.lease,
                        worker: worker.clone(),
                        source: self.source.clone(),
                        token,
                    })
                    .await?;
                if !taken.tasks.is_empty() {
                    return Ok(taken);
                }
                let sooner = |last: &Taken| {
                    soonest(last).is_some_and(|last| match soonest(&taken) {
                        Some(this) => last <= this,
                        None => true,
                    })
                };
                if !last.as_ref().is_some_and(sooner) {
                    last = Some(taken);
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if let Some(last) = last.as_ref().filter(|_| left.is_zero()) {
                return Ok(last.clone());
            }
            // A task that falls due wakes nobody.
            let due = last.as_ref().and_then(soonest).unwrap_or(SWEEP);
            let wait = left.min(due.max(Duration::from_millis(1))).min(SWEEP);
            mill.store().wait(&self.queues, mark, wait).await?;
            // Perhaps nobody else works on this store.
            mill.store().sweep().await?;
        }
    }

    fn nothing(&self, last: &Taken) -> Failure {
        let names: Vec<&str> = self.queues.iter().map(QueueName::as_str).collect();
        let names = names.join(", ");
        let why = match (last.paused, soonest(last)) {
            (true, _) => format!("nothing is given: {} is paused", last.queue),
            (_, Some(due)) => {
                format!("nothing is due in {names}; the next in {}", duration::show(due))
            }
            (_, None) => format!("nothing is due in {names}"),
        };
        Failure::new(Exit::Refused, "nothing_due", why)
    }

    fn tell(&self, taken: &Taken, contracts: &Contracts, session: &Session) -> Result<(), Failure> {
        let mut told = Vec::new();
        for task in &taken.tasks {
            told.push(Told::of(taken, task, contracts));
        }
        if let (Some(file), Some(one)) = (&self.payload, told.first()) {
            write(file, one.bytes())?;
        }
        let given = self.payload.is_some();
        if session.output.json {
            let tasks: Vec<TaskJson<'_>> = told.iter().map(|one| one.json(given)).collect();
            return session.output.value(&ClaimJson {
                token: taken.token.to_string(),
                queue: taken.queue.as_str(),
                lease_ms: u64::try_from(taken.lease.as_millis()).unwrap_or(u64::MAX),
                tasks,
            });
        }
        match told.first().filter(|_| self.shell) {
            Some(one) => session.output.bytes(&one.shell(given)?),
            None => {
                for one in &told {
                    session.output.line(one.sentence(given))?;
                }
                Ok(())
            }
        }
    }
}

fn soonest(taken: &Taken) -> Option<Duration> {
    [taken.next_due, taken.held_back].into_iter().flatten().min()
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let shown = file.display();
    std::fs::write(file, bytes).map_err(|error| Failure::io(&format!("{shown}"), &error))
}

/// A claimed task, with its payload as its contract shows it.
struct Told<'a> {
    taken: &'a Taken,
    task: &'a ClaimedTask,
    view: Option<String>,
}

/// A claim under its stable names, which are those of HTTP.
#[derive(Serialize)]
struct ClaimJson<'a> {
    token: String,
    queue: &'a str,
    lease_ms: u64,
    tasks: Vec<TaskJson<'a>>,
}

#[derive(Serialize)]
struct TaskJson<'a> {
    id: i64,
    queue: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<PayloadJson>,
    encoding: &'static str,
    key: Option<&'a str>,
    group: Option<&'a str>,
    source: Option<&'a str>,
    priority: i16,
    attempt: u32,
    claims: u32,
    created_at: String,
    run_at: String,
    headers: &'a Headers,
    #[serde(flatten)]
    own: Map<String, Value>,
    concurrent: Option<u32>,
    slot: Option<u32>,
}

impl<'a> Told<'a> {
    fn of(taken: &'a Taken, task: &'a ClaimedTask, contracts: &Contracts) -> Self {
        let view = contracts.as_json(&taken.queue, &task.payload).ok().flatten();
        Told { taken, task, view }
    }

    /// The payload as a handler gets it.
    fn bytes(&self) -> &[u8] {
        self.view.as_ref().map_or(&self.task.payload.bytes[..], |view| view.as_bytes())
    }

    fn encoding(&self) -> Encoding {
        if self.view.is_some() { Encoding::Json } else { self.task.payload.encoding }
    }

    fn json(&self, given: bool) -> TaskJson<'_> {
        let task = self.task;
        let payload = Payload { bytes: self.bytes().to_vec().into(), encoding: self.encoding() };
        TaskJson {
            id: task.id.0,
            queue: self.taken.queue.as_str(),
            payload: (!given).then(|| PayloadJson::of(&payload, None)),
            encoding: self.encoding().as_str(),
            key: task.key.as_deref(),
            group: task.group.as_deref(),
            source: task.source.as_deref(),
            priority: task.priority,
            attempt: task.attempt,
            claims: task.claims,
            created_at: task.created_at.to_string(),
            run_at: task.run_at.to_string(),
            headers: &task.headers,
            own: task_settings::shown(&task.settings),
            concurrent: task.concurrent,
            slot: task.slot,
        }
    }

    /// Lines for `eval`: every value is quoted, whatever is in it. The payload is no
    /// part of the environment, which has room for less.
    fn shell(&self, given: bool) -> Result<Vec<u8>, Failure> {
        let task = self.task;
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        let said = [
            ("GRISTMILL_TOKEN", Some(self.taken.token.to_string())),
            ("GRISTMILL_LEASE", Some(format!("{}ms", self.taken.lease.as_millis()))),
            ("GRISTMILL_TASK_ID", Some(task.id.to_string())),
            ("GRISTMILL_TASK_QUEUE", Some(self.taken.queue.to_string())),
            ("GRISTMILL_TASK_KEY", task.key.clone()),
            ("GRISTMILL_TASK_ATTEMPT", Some(task.attempt.to_string())),
            ("GRISTMILL_TASK_CONCURRENT", number(task.concurrent)),
            ("GRISTMILL_TASK_SLOT", number(task.slot)),
            ("GRISTMILL_TASK_GROUP", task.group.clone()),
            ("GRISTMILL_TASK_SOURCE", task.source.clone()),
            ("GRISTMILL_TASK_ENCODING", Some(self.encoding().to_string())),
        ];
        let mut lines = Vec::new();
        for (name, value) in said {
            match value {
                Some(value) => {
                    lines.extend_from_slice(format!("export {name}=").as_bytes());
                    lines.extend(quoted(value.as_bytes()));
                }
                // What an earlier task left.
                None => lines.extend_from_slice(format!("unset {name}").as_bytes()),
            }
            lines.push(b'\n');
        }
        lines.extend_from_slice(b"unset GRISTMILL_TASK_PAYLOAD\n");
        if !given {
            if self.bytes().contains(&0) {
                return Err(Failure::new(
                    Exit::Wrong,
                    "not_for_a_shell",
                    format!(
                        "the payload of task {} holds a NUL, which no variable of a shell can: \
                         say --payload FILE; the task was given back",
                        task.id
                    ),
                ));
            }
            lines.extend_from_slice(b"GRISTMILL_TASK_PAYLOAD=");
            lines.extend(quoted(self.bytes()));
            lines.push(b'\n');
        }
        Ok(lines)
    }

    fn sentence(&self, given: bool) -> String {
        let (task, token) = (self.task, self.taken.token);
        let lease = duration::show(self.taken.lease);
        let mut said = format!(
            "task {} of {}, attempt {}; its lease lasts {lease}\n",
            task.id, self.taken.queue, task.attempt
        );
        let named = [("key", &task.key), ("group", &task.group), ("source", &task.source)];
        for (name, value) in named {
            if let Some(value) = value {
                // Writing to a string cannot fail.
                let _ = writeln!(said, "{name:<8} {value}");
            }
        }
        if !given {
            let payload = match std::str::from_utf8(self.bytes()) {
                Ok(text) if self.encoding() != Encoding::Msgpack => text.to_owned(),
                _ => format!("{} bytes of {}", self.bytes().len(), self.encoding()),
            };
            let _ = writeln!(said, "{:<8} {payload}", "payload");
        }
        let _ = writeln!(said, "{:<8} {token}", "token");
        let _ = write!(said, "end it with: gristmill done {} --token {token}", task.id);
        said
    }
}

/// A value that a shell takes for what it is, whatever is in it.
fn quoted(value: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in value {
        match byte {
            b'\'' => quoted.extend_from_slice(br"'\''"),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_a_value_for_what_it_is() {
        assert_eq!(quoted(b"a b"), b"'a b'");
        assert_eq!(
            quoted(b"it's $(rm -rf /)\n`x`"),
            br"'it'\''s $(rm -rf /)
`x`'"
        );
    }
}
