//! A stored task without its payload: read, changed, and saved back.

use gristmill_core::policy::outcome::Facts;
use gristmill_core::{
    Encoding, LeaseView, Note, Payload, Queue, Result, State, StoreError, Task, TaskId,
    TaskSettings, Timestamp, Unique,
};
use rusqlite::Row as SqlRow;

use crate::codec;
use crate::db::Db;
use crate::read::Held;
use crate::sql::{Sql, at, bind};

/// Where a task stands with respect to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Waiting,
    InFlight,
    Failed,
    Done,
}

/// A stored task. Attempts and claims are as stored: while it is processing
/// they do not count the running claim.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) id: i64,
    pub(crate) queue: u32,
    pub(crate) key: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) priority: i16,
    pub(crate) run_at: Timestamp,
    pub(crate) created_at: Timestamp,
    pub(crate) place: Place,
    pub(crate) blocked: bool,
    pub(crate) unique_active: bool,
    pub(crate) attempts: u32,
    pub(crate) claims: u32,
    pub(crate) expiries: u32,
    pub(crate) started_releases: u32,
    pub(crate) cancel_requested: bool,
    encoding: i64,
    pub(crate) prev_run_at: Option<Timestamp>,
    pub(crate) claimed_at: Option<Timestamp>,
    pub(crate) settled_token: Option<Vec<u8>>,
    pub(crate) failed_at: Option<Timestamp>,
    pub(crate) error: Option<String>,
    pub(crate) history: Option<String>,
    pub(crate) note: Option<String>,
    pub(crate) note_by: Option<String>,
    pub(crate) resolved_by: Option<String>,
    pub(crate) resolved_at: Option<Timestamp>,
    headers: Option<String>,
    settings: Option<String>,
    in_order: bool,
}

impl Row {
    /// Reads a row of one of the views that show tasks.
    pub(crate) fn read(row: &SqlRow<'_>) -> rusqlite::Result<Self> {
        let time = |at: usize| -> rusqlite::Result<Option<Timestamp>> {
            Ok(row.get::<_, Option<i64>>(at)?.map(Timestamp::from_micros))
        };
        Ok(Row {
            id: row.get(at!(TaskById.id))?,
            queue: row.get(at!(TaskById.queue))?,
            key: row.get(at!(TaskById.key))?,
            group: row.get(at!(TaskById.grp))?,
            source: row.get(at!(TaskById.source))?,
            priority: row.get(at!(TaskById.priority))?,
            run_at: Timestamp::from_micros(row.get(at!(TaskById.run_at))?),
            created_at: Timestamp::from_micros(row.get(at!(TaskById.created_at))?),
            place: match row.get::<_, i64>(at!(TaskById.place))? {
                0 => Place::Waiting,
                1 => Place::InFlight,
                2 => Place::Failed,
                3 => Place::Done,
                other => return Err(rusqlite::Error::IntegralValueOutOfRange(8, other)),
            },
            blocked: row.get(at!(TaskById.blocked))?,
            unique_active: row.get(at!(TaskById.unique_active))?,
            attempts: row.get(at!(TaskById.attempts))?,
            claims: row.get(at!(TaskById.claims))?,
            expiries: row.get(at!(TaskById.expiries))?,
            started_releases: row.get(at!(TaskById.started_releases))?,
            cancel_requested: row.get(at!(TaskById.cancel_requested))?,
            encoding: row.get(at!(TaskById.encoding))?,
            prev_run_at: time(at!(TaskById.prev_run_at))?,
            claimed_at: time(at!(TaskById.claimed_at))?,
            settled_token: row.get(at!(TaskById.settled_token))?,
            failed_at: time(at!(TaskById.failed_at))?,
            error: row.get(at!(TaskById.error))?,
            history: row.get(at!(TaskById.history))?,
            note: row.get(at!(TaskById.note))?,
            note_by: row.get(at!(TaskById.note_by))?,
            resolved_by: row.get(at!(TaskById.resolved_by))?,
            resolved_at: time(at!(TaskById.resolved_at))?,
            headers: row.get(at!(TaskById.headers))?,
            settings: row.get(at!(TaskById.settings))?,
            in_order: row.get(at!(TaskById.in_order))?,
        })
    }

    /// The stored task of that number that stands.
    pub(crate) fn load(db: &Db<'_>, id: i64) -> Result<Option<Row>> {
        db.one(Sql::TaskById, bind!(TaskById { id }), Row::read)
    }

    /// Its state.
    pub(crate) const fn state(&self) -> State {
        match self.place {
            Place::Done => State::Done,
            Place::Failed => State::Failed,
            _ if self.blocked || self.in_order => State::Pending,
            _ => State::Processing,
        }
    }

    /// What the policies ask of a task whose attempt ends.
    pub(crate) const fn facts(&self) -> Facts {
        Facts {
            id: TaskId(self.id),
            attempts: self.attempts.saturating_add(1),
            claims: self.claims.saturating_add(1),
            expiries: self.expiries,
            started_releases: self.started_releases,
            run_at: self.run_at,
            prev_run_at: self.prev_run_at,
            cancel_requested: self.cancel_requested,
        }
    }

    /// What holds for it in place of its queue's settings, as far as it can be read.
    pub(crate) fn own(&self) -> TaskSettings {
        codec::task_settings(self.settings.as_deref()).value
    }

    /// Writes everything back that moves change.
    pub(crate) fn save(&self, db: &Db<'_>) -> Result<()> {
        let time = |at: Option<Timestamp>| at.map(Timestamp::as_micros);
        let place = match self.place {
            Place::Waiting => 0,
            Place::InFlight => 1,
            // A kept task is saved, copied and then deleted: it must not
            // take a place on the way.
            Place::Failed | Place::Done => 2,
        };
        db.run(
            Sql::TaskSave,
            bind!(TaskSave {
                place,
                blocked: self.blocked,
                run_at: self.run_at.as_micros(),
                prev_run_at: time(self.prev_run_at),
                attempts: self.attempts,
                claims: self.claims,
                expiries: self.expiries,
                started_releases: self.started_releases,
                cancel_requested: self.cancel_requested,
                claimed_at: time(self.claimed_at),
                settled_token: self.settled_token,
                failed_at: time(self.failed_at),
                error: self.error,
                history: self.history,
                note: self.note,
                note_by: self.note_by,
                resolved_by: self.resolved_by,
                resolved_at: time(self.resolved_at),
                id: self.id
            }),
        )?;
        Ok(())
    }

    /// Whether what only our own reading can refuse is what was written.
    pub(crate) fn readable(self) -> Result<Encoding> {
        let (history, headers) =
            (codec::history(self.history.as_deref()), codec::headers(self.headers.as_deref()));
        let own = codec::task_settings(self.settings.as_deref());
        match history.fault.or(headers.fault).or(own.fault) {
            Some(why) => Err(StoreError::corrupt(why)),
            None => encoding(self.encoding).map_err(StoreError::corrupt),
        }
    }

    /// The task as the port shows it. `held` is what it is open under.
    pub(crate) fn into_task(self, queue: &Queue, held: Option<Held>, payload: Vec<u8>) -> Task {
        let state = self.state();
        let (encoding, strange) = match encoding(self.encoding) {
            Ok(encoding) => (encoding, None),
            Err(why) => (Encoding::Raw, Some(why)),
        };
        let history = codec::history(self.history.as_deref());
        let headers = codec::headers(self.headers.as_deref());
        let own = codec::task_settings(self.settings.as_deref());
        let faults: Vec<String> =
            [strange, history.fault, headers.fault, own.fault].into_iter().flatten().collect();
        let running = u32::from(state == State::Processing);
        let note = match (self.note, self.note_by) {
            (Some(text), by) => Some(Note { text, by: by.unwrap_or_default() }),
            (None, _) => None,
        };
        let payload = Payload { bytes: payload.into(), encoding };
        let mut task = Task::new(TaskId(self.id), queue.name.clone(), payload, self.created_at);
        task.key = self.key;
        task.group = self.group;
        task.source = self.source;
        task.priority = self.priority;
        task.state = state;
        task.blocked = self.blocked;
        task.unique = if self.unique_active { Unique::Active } else { Unique::Pending };
        task.attempts = self.attempts + running;
        task.claims = self.claims + running;
        task.expiries = self.expiries;
        task.run_at = self.run_at;
        task.prev_run_at = self.prev_run_at;
        task.claimed_at = held.as_ref().map_or(self.claimed_at, |held| Some(held.lease.claimed_at));
        task.lease = held.map(|Held { lease, progress }| LeaseView {
            worker: codec::worker_id(&lease.worker),
            until: lease.until,
            slot: lease.slot,
            progress,
        });
        task.cancel_requested = self.cancel_requested;
        task.failed_at = self.failed_at;
        task.error = self.error;
        task.history = history.value;
        task.note = note;
        task.resolved_by = self.resolved_by;
        task.resolved_at = self.resolved_at;
        task.headers = headers.value;
        task.settings = own.value;
        task.damaged = (!faults.is_empty()).then(|| faults.join("; "));
        task
    }
}

/// An encoding as it is stored.
pub(crate) const fn encoding_number(encoding: Encoding) -> i64 {
    match encoding {
        Encoding::Json => 0,
        Encoding::Msgpack => 1,
        Encoding::Raw => 2,
    }
}

/// An encoding as it is read back, or what is wrong with it.
pub(crate) fn encoding(stored: i64) -> Result<Encoding, String> {
    Encoding::ALL
        .into_iter()
        .find(|encoding| encoding_number(*encoding) == stored)
        .ok_or_else(|| format!("its encoding is {stored}, which is none"))
}
