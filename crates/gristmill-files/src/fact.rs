//! Everything but tasks' files, as lines of JSON: in the intent when it
//! changed, and all of it in the state file of a checkpoint.

use std::collections::BTreeMap;
use std::time::Duration;

use gristmill_core::memory::{LeaseRecord, State};
use gristmill_core::{
    Counters, Document, Minute, Override, ProgressView, Queue, Result, Settings, TaskId, Timestamp,
    Token, Waits,
};
use gristmill_text::{LastSeenText, ProgressText, micros, origin, queue_name, settings, worker_id};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ending_text::EndingText;
use crate::errors::corrupt;
use crate::schedule_text::ScheduleText;

/// One fact. It says what is so, never what changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fact {
    NextId(i64),
    Queue(QueueText),
    Counters {
        queue: u32,
        values: Vec<u64>,
    },
    Minute {
        queue: u32,
        at: i64,
        put: u64,
        done: u64,
        failed: u64,
        /// By bucket; nothing where nothing was claimed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        waits: Vec<u64>,
    },
    CallerId {
        queue: u32,
        id: String,
        task: i64,
        digest: String,
        until: i64,
    },
    NoCallerId {
        queue: u32,
        id: String,
    },
    Turn {
        queue: u32,
        priority: i16,
        group: String,
    },
    Bucket {
        queue: u32,
        group: String,
        full_at: Option<i64>,
    },
    Lease(LeaseText),
    Until {
        token: String,
        until: i64,
        length: u64,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        progress: BTreeMap<i64, ProgressText>,
    },
    Clock(LastSeenText),
    Schedule(Box<ScheduleText>),
    NoSchedule(String),
    Document(DocumentText),
    NoDocument {
        kind: String,
        name: String,
    },
    Ending(EndingText),
    NoEnding(i64),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QueueText {
    number: u32,
    name: String,
    declared: Vec<(String, Value)>,
    overridden: Option<(Value, String, i64)>,
    paused: bool,
    paused_by: Option<String>,
    contract: Option<String>,
    created_at: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaseText {
    token: String,
    queue: u32,
    worker: String,
    claimed_at: i64,
    until: i64,
    length: u64,
    ids: Vec<i64>,
    group: String,
    slot: Option<u32>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    progress: BTreeMap<i64, ProgressText>,
}

/// A document as it is written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DocumentText {
    kind: String,
    name: String,
    version: u64,
    body: String,
    created_at: i64,
    changed_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keep: Option<u64>,
}

/// A stored instant.
pub(crate) const fn instant(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

fn token(stored: &str) -> Result<Token> {
    stored.parse().map_err(|e| corrupt("a token", e))
}

/// How far tasks are, as it is written down.
fn written(progress: &[(TaskId, ProgressView)]) -> BTreeMap<i64, ProgressText> {
    progress.iter().map(|(id, view)| (id.0, ProgressText::new(view))).collect()
}

fn read(progress: BTreeMap<i64, ProgressText>) -> Result<Vec<(TaskId, ProgressView)>> {
    progress.into_iter().map(|(id, text)| Ok((TaskId(id), text.into_view()?))).collect()
}

impl QueueText {
    fn new(queue: &Queue) -> Self {
        QueueText {
            number: queue.number,
            name: queue.name.to_string(),
            declared: queue
                .declared
                .iter()
                .map(|(origin, patch)| (origin.to_string(), settings::write(patch)))
                .collect(),
            overridden: queue.overridden.as_ref().map(|change| {
                (settings::write(&change.settings), change.by.clone(), change.at.as_micros())
            }),
            paused: queue.paused,
            paused_by: queue.paused_by.clone(),
            contract: queue.contract.clone(),
            created_at: queue.created_at.as_micros(),
        }
    }

    fn into_queue(self) -> Result<Queue> {
        let declared = self
            .declared
            .iter()
            .map(|(word, patch)| Ok((origin(word)?, settings::read(patch)?)))
            .collect::<Result<Vec<_>>>()?;
        let overridden = match self.overridden {
            None => None,
            Some((patch, by, at)) => {
                Some(Override { settings: settings::read(&patch)?, by, at: instant(at) })
            }
        };
        let settings = Queue::effective(&Settings::default(), &declared, overridden.as_ref());
        Ok(Queue {
            name: queue_name(&self.name)?,
            number: self.number,
            declared,
            overridden,
            settings,
            paused: self.paused,
            paused_by: self.paused_by,
            contract: self.contract,
            created_at: instant(self.created_at),
        })
    }
}

impl LeaseText {
    /// The lease's token and the tasks under it.
    pub(crate) fn tasks(&self) -> Result<(Token, &[i64])> {
        Ok((token(&self.token)?, &self.ids))
    }
}

impl Fact {
    pub(crate) fn queue(queue: &Queue) -> Self {
        Fact::Queue(QueueText::new(queue))
    }

    pub(crate) fn counters(queue: u32, counters: &Counters) -> Self {
        Fact::Counters { queue, values: counters.values() }
    }

    pub(crate) fn minute(queue: u32, minute: Minute) -> Self {
        let Minute { at, put, done, failed, waits } = minute;
        let waits = if waits.total() == 0 { Vec::new() } else { waits.0.to_vec() };
        Fact::Minute { queue, at: at.as_micros(), put, done, failed, waits }
    }

    pub(crate) fn caller_id(
        queue: u32,
        id: &str,
        known: Option<gristmill_core::memory::Remembered>,
    ) -> Self {
        let id = id.to_owned();
        match known {
            None => Fact::NoCallerId { queue, id },
            Some((task, digest, until)) => Fact::CallerId {
                queue,
                id,
                task: task.0,
                digest: Token::from_bytes(digest).to_string(),
                until: until.as_micros(),
            },
        }
    }

    pub(crate) fn turn(queue: u32, priority: i16, group: &str) -> Self {
        Fact::Turn { queue, priority, group: group.to_owned() }
    }

    pub(crate) fn bucket(queue: u32, group: &str, full_at: Option<Timestamp>) -> Self {
        Fact::Bucket { queue, group: group.to_owned(), full_at: full_at.map(Timestamp::as_micros) }
    }

    pub(crate) fn lease(lease: LeaseRecord) -> Self {
        Fact::Lease(LeaseText {
            token: lease.token.to_string(),
            queue: lease.number,
            worker: lease.worker.to_string(),
            claimed_at: lease.claimed_at.as_micros(),
            until: lease.until.as_micros(),
            length: micros(lease.length),
            ids: lease.ids.iter().map(|id| id.0).collect(),
            group: lease.group,
            slot: lease.slot,
            progress: written(&lease.progress),
        })
    }

    /// A lease's deadline, and how far its tasks are.
    pub(crate) fn until(lease: &LeaseRecord) -> Self {
        Fact::Until {
            token: lease.token.to_string(),
            until: lease.until.as_micros(),
            length: micros(lease.length),
            progress: written(&lease.progress),
        }
    }

    pub(crate) fn document(document: &Document) -> Self {
        Fact::Document(DocumentText {
            kind: document.kind.clone(),
            name: document.name.clone(),
            version: document.version,
            body: document.body.clone(),
            created_at: document.created_at.as_micros(),
            changed_at: document.changed_at.as_micros(),
            keep: document.keep.map(micros),
        })
    }

    /// Makes it so.
    pub(crate) fn restore(self, state: &mut State) -> Result<()> {
        match self {
            Fact::NextId(next) => state.restore_next_id(next),
            Fact::Queue(text) => state.restore_queue(text.into_queue()?),
            Fact::Counters { queue, values } => {
                state.restore_counters(queue, Counters::from_values(&values));
            }
            Fact::Minute { queue, at, put, done, failed, waits: said } => {
                let mut waits = Waits::default();
                for (n, said) in waits.0.iter_mut().zip(said) {
                    *n = said;
                }
                let minute = Minute { put, done, failed, waits, ..Minute::new(instant(at)) };
                state.restore_minute(queue, minute);
            }
            Fact::CallerId { queue, id, task, digest, until } => {
                let known = (TaskId(task), token(&digest)?.to_bytes(), instant(until));
                state.restore_caller_id(queue, id, Some(known));
            }
            Fact::NoCallerId { queue, id } => state.restore_caller_id(queue, id, None),
            Fact::Turn { queue, priority, group } => state.restore_turn(queue, priority, group),
            Fact::Bucket { queue, group, full_at } => {
                state.restore_bucket(queue, group, full_at.map(instant));
            }
            Fact::Lease(text) => state.restore_lease(LeaseRecord {
                token: token(&text.token)?,
                number: text.queue,
                worker: worker_id(&text.worker),
                claimed_at: instant(text.claimed_at),
                until: instant(text.until),
                length: Duration::from_micros(text.length),
                ids: text.ids.into_iter().map(TaskId).collect(),
                group: text.group,
                slot: text.slot,
                progress: read(text.progress)?,
            }),
            Fact::Until { token: stored, until, length, progress } => {
                let (token, length) = (token(&stored)?, Duration::from_micros(length));
                state.restore_until(token, instant(until), length);
                state.restore_progress(token, read(progress)?);
            }
            Fact::Clock(seen) => state.restore_last_seen(seen.into_last_seen()),
            Fact::Schedule(text) => state.restore_schedule(text.into_schedule()?),
            Fact::NoSchedule(name) => {
                let name = gristmill_core::ScheduleName::new(&name)
                    .map_err(|e| corrupt("a schedule's name", e))?;
                state.remove_schedule(&name);
            }
            Fact::Document(text) => state.restore_document(Document {
                kind: text.kind,
                name: text.name,
                version: text.version,
                body: text.body,
                created_at: instant(text.created_at),
                changed_at: instant(text.changed_at),
                keep: text.keep.map(Duration::from_micros),
                read_at: instant(text.changed_at),
            }),
            Fact::Ending(text) => {
                let (id, record) = text.into_record()?;
                state.restore_ending(id, Some(record));
            }
            Fact::NoEnding(id) => state.restore_ending(TaskId(id), None),
            Fact::NoDocument { kind, name } => state.forget_document(kind, name),
        }
        Ok(())
    }
}
