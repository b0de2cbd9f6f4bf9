//! A stored task without its payload: read, changed, and saved back.

use gristmill_core::policy::outcome::Facts;
use gristmill_core::{
    Encoding, LeaseView, Note, Payload, Queue, Result, State, StoreError, Task, TaskId, Timestamp,
    Unique,
};
use rusqlite::{Row as SqlRow, params};

use crate::codec;
use crate::db::Db;
use crate::lease::Lease;
use crate::sql::Sql;

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
    in_order: bool,
}

impl Row {
    /// Reads a row of one of the views that show tasks.
    pub(crate) fn read(row: &SqlRow<'_>) -> rusqlite::Result<Self> {
        let time = |at: usize| -> rusqlite::Result<Option<Timestamp>> {
            Ok(row.get::<_, Option<i64>>(at)?.map(Timestamp::from_micros))
        };
        Ok(Row {
            id: row.get(0)?,
            queue: row.get(1)?,
            key: row.get(2)?,
            group: row.get(3)?,
            source: row.get(4)?,
            priority: row.get(5)?,
            run_at: Timestamp::from_micros(row.get(6)?),
            created_at: Timestamp::from_micros(row.get(7)?),
            place: match row.get::<_, i64>(8)? {
                0 => Place::Waiting,
                1 => Place::InFlight,
                2 => Place::Failed,
                3 => Place::Done,
                other => return Err(rusqlite::Error::IntegralValueOutOfRange(8, other)),
            },
            blocked: row.get(9)?,
            unique_active: row.get(10)?,
            attempts: row.get(11)?,
            claims: row.get(12)?,
            expiries: row.get(13)?,
            started_releases: row.get(14)?,
            cancel_requested: row.get(15)?,
            encoding: row.get(16)?,
            prev_run_at: time(17)?,
            claimed_at: time(18)?,
            settled_token: row.get(19)?,
            failed_at: time(20)?,
            error: row.get(21)?,
            history: row.get(22)?,
            note: row.get(23)?,
            note_by: row.get(24)?,
            resolved_by: row.get(25)?,
            resolved_at: time(26)?,
            headers: row.get(27)?,
            in_order: row.get(28)?,
        })
    }

    /// The stored task of that number that stands.
    pub(crate) fn load(db: &Db<'_>, id: i64) -> Result<Option<Row>> {
        db.one(Sql::TaskById, params![id], Row::read)
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
            params![
                self.id,
                place,
                self.blocked,
                self.run_at.as_micros(),
                time(self.prev_run_at),
                self.attempts,
                self.claims,
                self.expiries,
                self.started_releases,
                self.cancel_requested,
                time(self.claimed_at),
                self.settled_token,
                time(self.failed_at),
                self.error,
                self.history,
                self.note,
                self.note_by,
                self.resolved_by,
                time(self.resolved_at),
            ],
        )?;
        Ok(())
    }

    /// Whether what only our own reading can refuse is what was written.
    pub(crate) fn readable(self) -> Result<Encoding> {
        let (history, headers) =
            (codec::history(self.history.as_deref()), codec::headers(self.headers.as_deref()));
        match history.fault.or(headers.fault) {
            Some(why) => Err(StoreError::Corrupt(why)),
            None => encoding(self.encoding).map_err(StoreError::Corrupt),
        }
    }

    /// The task as the port shows it. `lease` is the one it is open under.
    pub(crate) fn into_task(self, queue: &Queue, lease: Option<&Lease>, payload: Vec<u8>) -> Task {
        let state = self.state();
        let (encoding, strange) = match encoding(self.encoding) {
            Ok(encoding) => (encoding, None),
            Err(why) => (Encoding::Raw, Some(why)),
        };
        let history = codec::history(self.history.as_deref());
        let headers = codec::headers(self.headers.as_deref());
        let faults: Vec<String> =
            [strange, history.fault, headers.fault].into_iter().flatten().collect();
        let running = u32::from(state == State::Processing);
        let note = match (self.note, self.note_by) {
            (Some(text), by) => Some(Note { text, by: by.unwrap_or_default() }),
            (None, _) => None,
        };
        Task {
            id: TaskId(self.id),
            queue: queue.name.clone(),
            payload: Payload { bytes: payload.into(), encoding },
            key: self.key,
            group: self.group,
            source: self.source,
            priority: self.priority,
            state,
            blocked: self.blocked,
            unique: if self.unique_active { Unique::Active } else { Unique::Pending },
            attempts: self.attempts + running,
            claims: self.claims + running,
            expiries: self.expiries,
            created_at: self.created_at,
            run_at: self.run_at,
            prev_run_at: self.prev_run_at,
            claimed_at: lease.map_or(self.claimed_at, |lease| Some(lease.claimed_at)),
            lease: lease.map(|lease| LeaseView {
                worker: codec::worker_id(&lease.worker),
                until: lease.until,
                slot: lease.slot,
            }),
            cancel_requested: self.cancel_requested,
            failed_at: self.failed_at,
            error: self.error,
            history: history.value,
            note,
            resolved_by: self.resolved_by,
            resolved_at: self.resolved_at,
            headers: headers.value,
            damaged: (!faults.is_empty()).then(|| faults.join("; ")),
        }
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
