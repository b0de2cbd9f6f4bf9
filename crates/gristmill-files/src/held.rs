//! What one process knows of the folder: every task without its payload, and
//! where its file is.

use std::collections::{BTreeSet, HashMap};
use std::io::{ErrorKind, Read};
use std::time::Duration;

use bytes::Bytes;
use gristmill_core::memory::{State as Ledger, TaskRecord};
use gristmill_core::{
    Durability, Kept, QueueName, Result, State, StoreError, TaskId, Timestamp, Token,
};

use crate::apply::{self, Before};
use crate::disk;
use crate::errors::{At, corrupt};
use crate::fact::Fact;
use crate::frame::Entry;
use crate::ids::Id;
use crate::intent::{self, Intent, Position};
use crate::spares::Spares;
use crate::spool::{CORRUPT, Spool};
use crate::task_file::Parsed;
use crate::touched::Touched;
use crate::{snapshot, task_file};

/// A task's file as this process knows it.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) state: State,
    pub(crate) queue: QueueName,
    /// Of its lines: another one means that it is written anew.
    pub(crate) digest: u64,
}

/// The folder as one process knows it.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) spool: Spool,
    pub(crate) ledger: Ledger,
    pub(crate) known: HashMap<TaskId, Known>,
    pub(crate) intent: Intent,
    /// Tasks whose files changed since the checkpoint.
    pub(crate) touched: Touched,
    pub(crate) spares: Spares,
    /// The id the next task gets, as it was last written down.
    pub(crate) next_id: i64,
    /// The segment that the last checkpoint goes on from.
    pub(crate) checkpoint: u64,
    /// Files are behind the intent: a disk without room, for example.
    pub(crate) unapplied: bool,
    /// What was read may not be on the disk: nothing is answered before a
    /// checkpoint has made it durable.
    pub(crate) suspect: bool,
    /// Callers' ids since the checkpoint.
    pub(crate) new_ids: BTreeSet<Id>,
    /// When what is seen of the time was last written down, monotonic.
    pub(crate) seen: Option<Duration>,
    /// How long the last sync took.
    pub(crate) synced: Duration,
}

/// Why a payload cannot be had.
pub(crate) enum Unread {
    /// Its file is damaged or gone; in words.
    Lost(String),
    /// It cannot be read now.
    Fault(StoreError),
}

impl Held {
    /// Catches up with other processes; returns whether any wrote.
    pub(crate) fn catch_up(&mut self, now: Timestamp) -> Result<bool> {
        let behind = self.intent.is_behind()?;
        if behind {
            let Held { intent, ledger, known, touched, new_ids, .. } = self;
            intent.read_on(|entries| {
                new_ids.extend(remembered(&entries));
                take_over(ledger, known, touched, entries, now)
            })?;
            self.next_id = self.ledger.next_id();
            self.ledger.take_changes();
        }
        if !self.intent.is_finished() {
            // What this process itself did not finish is durable all the same.
            self.suspect |= behind || !self.unapplied;
            self.roll_forward()?;
        }
        Ok(behind)
    }

    /// Finishes what a process that ended early, or found no room, decided and
    /// did not do.
    pub(crate) fn roll_forward(&mut self) -> Result<()> {
        let end = self.intent.position();
        let done = self.intent.applied().filter(|done| *done <= end);
        if done != Some(end) {
            let checkpoint = Position { segment: snapshot::segment(&self.spool)?, offset: 0 };
            let from = done.filter(|done| *done > checkpoint).unwrap_or(checkpoint);
            tracing::info!(?from, ?end, "rolling forward");
            intent::frames_from(&self.spool, from, |entries| apply::redo(&self.spool, &entries))?;
        }
        if !self.suspect {
            self.intent.set_applied()?;
        }
        self.unapplied = false;
        Ok(())
    }

    /// Whether something may wait for its sync.
    pub(crate) fn any_relaxed(&self) -> bool {
        let mut queues = self.ledger.all_queues();
        queues.any(|queue| queue.settings.durability == Durability::Relaxed)
    }

    /// Takes note that a task's file now stands so.
    pub(crate) fn note(&mut self, record: &TaskRecord, digest: u64) {
        let (id, state, queue) = (record.task.id, record.task.state, record.task.queue.clone());
        self.known.insert(id, Known { state, queue, digest });
        self.touched.insert(id);
    }

    pub(crate) fn before(&self, id: TaskId) -> Before {
        self.known.get(&id).map_or(Before::Nowhere, |known| Before::In(known.state))
    }

    /// A payload from its file.
    pub(crate) fn payload(&self, id: TaskId) -> std::result::Result<Bytes, Unread> {
        let (bytes, parsed) = self.file(id)?;
        task_file::payload(&bytes, &parsed).map_err(Unread::Lost)
    }

    /// What a task keeps, from its file.
    pub(crate) fn kept(&self, id: TaskId) -> std::result::Result<Option<Kept>, Unread> {
        let (bytes, parsed) = self.file(id)?;
        task_file::kept(&bytes, &parsed).map_err(Unread::Lost)
    }

    fn file(&self, id: TaskId) -> std::result::Result<(Bytes, Parsed), Unread> {
        let Some(known) = self.known.get(&id) else {
            return Err(Unread::Lost("it has no file".to_owned()));
        };
        let path = self.spool.task(known.state, id, known.queue.as_str());
        let mut bytes = Vec::new();
        match disk::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Unread::Lost("its file is gone".to_owned()));
            }
            Err(error) => return Err(Unread::Fault(crate::errors::fault(&path, error))),
        }
        let bytes = Bytes::from(bytes);
        let parsed = task_file::parse(&bytes, known.state).map_err(Unread::Lost)?;
        Ok((bytes, parsed))
    }

    /// A task whose file cannot be used is out of every queue from now on; the
    /// file, if there is one, is kept in `corrupt/`.
    pub(crate) fn set_aside(&mut self, id: TaskId, why: &str, now: Timestamp) -> Result<()> {
        if let Some(known) = self.known.get(&id) {
            let path = self.spool.task(known.state, id, known.queue.as_str());
            tracing::error!(task = %id, file = %path.display(), why, "a task is set aside");
            if path.symlink_metadata().is_ok() {
                set_file_aside(&self.spool, &path)?;
            }
        }
        self.ledger.lose_task(id, now)
    }
}

/// Moves a file that cannot be used to `corrupt/`, under a name of its own.
pub(crate) fn set_file_aside(spool: &Spool, path: &std::path::Path) -> Result<()> {
    let name = path.strip_prefix(spool.root()).unwrap_or(path);
    let name: Vec<String> =
        name.iter().map(|part| part.to_string_lossy().replace('/', "_")).collect();
    let name = name.join("-");
    let folder = spool.at(CORRUPT);
    let target = (0..1_000)
        .map(|n| if n == 0 { folder.join(&name) } else { folder.join(format!("{name}.{n}")) })
        .find(|target| target.symlink_metadata().is_err())
        .unwrap_or_else(|| folder.join(&name));
    spool.rename(path, &target).at(&target)
}

/// The callers' ids that a frame remembers.
pub(crate) fn remembered(entries: &[Entry]) -> impl Iterator<Item = Id> {
    entries.iter().filter_map(|entry| match entry {
        Entry::Fact(fact) => match fact.as_ref() {
            Fact::CallerId { queue, id, .. } => Some((*queue, id.clone())),
            _ => None,
        },
        _ => None,
    })
}

/// Makes another process's frame true in this one's memory.
fn take_over(
    ledger: &mut Ledger,
    known: &mut HashMap<TaskId, Known>,
    touched: &mut Touched,
    entries: Vec<Entry>,
    now: Timestamp,
) -> Result<()> {
    let mut tokens: HashMap<TaskId, Token> = HashMap::new();
    let mut records: Vec<TaskRecord> = Vec::new();
    let mut left: Vec<TaskId> = Vec::new();
    for entry in entries {
        match entry {
            Entry::Fact(fact) => {
                if let Fact::Lease(lease) = fact.as_ref() {
                    let (token, ids) = lease.tasks()?;
                    tokens.extend(ids.iter().map(|id| (TaskId(*id), token)));
                }
                fact.restore(ledger)?;
            }
            Entry::Next(_) => {}
            Entry::Remove { id, .. } => left.push(id),
            Entry::File { state, header, .. } => {
                let parsed = task_file::parse(header.as_bytes(), state)
                    .map_err(|why| corrupt("the intent", why))?;
                records.push(parsed.record);
            }
            Entry::Move { state, id, .. } => {
                let mut record = ledger
                    .task_record(id)
                    .ok_or_else(|| corrupt("the intent", format!("no task {id} to move")))?;
                record.task.state = state;
                records.push(record);
            }
        }
    }
    // A frame says how things are at its end. So all of its tasks leave their
    // places first, and then each finds its own free; leases that lose their
    // last task on the way are kept.
    left.extend(records.iter().map(|record| record.task.id));
    let mut leases = Vec::new();
    for id in &left {
        if let Some(token) = ledger.token_of(*id) {
            tokens.entry(*id).or_insert(token);
            leases.extend(ledger.lease_record(token));
        }
    }
    for id in left {
        ledger.forget_task(id, now);
        known.remove(&id);
        touched.insert(id);
    }
    for lease in leases {
        if ledger.lease_record(lease.token).is_none() {
            ledger.restore_lease(lease);
        }
    }
    for record in records {
        let (id, state, queue) = (record.task.id, record.task.state, record.task.queue.clone());
        let digest = task_file::digest(&record);
        ledger.restore_task(record, tokens.get(&id).copied(), now)?;
        known.insert(id, Known { state, queue, digest });
    }
    ledger.drop_empty_leases();
    Ok(())
}
