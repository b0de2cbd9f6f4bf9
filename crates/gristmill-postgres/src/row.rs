//! A stored task as the port shows it.
//!
//! Whatever stands in its row: what cannot be read is told of this one task, and
//! the others of its page are shown.

use gristmill_core::{LeaseView, Note, Payload, Result, State, Task, TaskId, Timestamp, Unique};
use gristmill_text::Readable;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::answer::{Answer as _, column};
use crate::codec::{self, small};
use crate::errors::corrupt;
use crate::wire::At;

/// Reads one row and gathers what is wrong with it.
struct Reader<'a> {
    row: &'a Row,
    faults: Vec<String>,
}

impl<'a> Reader<'a> {
    /// A column that is never empty, or what stands for it.
    fn get<T: FromSql<'a>>(&mut self, at: usize, what: &str, or: T) -> T {
        self.row.value(at).unwrap_or_else(|why| {
            self.faults.push(format!("its {what} cannot be read: {why}"));
            or
        })
    }

    /// A column that may be empty.
    fn maybe<T: FromSql<'a>>(&mut self, at: usize, what: &str) -> Option<T> {
        self.get(at, what, None)
    }

    fn at(&mut self, at: usize, what: &str) -> Timestamp {
        self.get(at, what, At(Timestamp::EPOCH)).0
    }

    fn maybe_at(&mut self, at: usize, what: &str) -> Option<Timestamp> {
        self.maybe::<At>(at, what).map(|at| at.0)
    }

    fn note<T>(&mut self, read: Readable<T>) -> T {
        self.faults.extend(read.fault);
        read.value
    }
}

/// The id in a row of the view that shows tasks.
pub(crate) fn id(row: &Row) -> Result<TaskId> {
    column(row, 1).map(TaskId)
}

/// Reads a row of the view that shows tasks.
///
/// # Errors
/// When nothing can be said of it: its id, state or queue is none.
pub(crate) fn task(row: &Row) -> Result<Task> {
    let state: &str = column(row, 0)?;
    let state: State = state.parse().map_err(|e| corrupt("a task's state", e))?;
    let (id, queue) = (id(row)?, codec::queue_name(column(row, 2)?)?);
    let mut read = Reader { row, faults: Vec::new() };
    let lease = read.maybe(26, "worker").map(|worker| LeaseView {
        worker: codec::worker_id(worker),
        until: read.at(27, "lease's end"),
        slot: read.maybe(28, "slot").map(small),
    });
    let encoding = read.get(14, "encoding", codec::encoding_number(codec::STRANGE));
    let encoding = read.note(codec::encoding(encoding));
    let note: Option<String> = read.maybe(19, "note");
    let mut task = Task {
        id,
        queue,
        key: read.maybe(3, "key"),
        group: read.maybe(4, "group"),
        source: read.maybe(5, "source"),
        priority: read.get(6, "priority", 0),
        run_at: read.at(7, "run_at"),
        created_at: read.at(8, "created_at"),
        state,
        blocked: read.get(9, "blocked", false),
        unique: if read.get(10, "unique", false) { Unique::Active } else { Unique::Pending },
        attempts: small(read.get(11, "attempts", 0)),
        claims: small(read.get(12, "claims", 0)),
        expiries: small(read.get::<i16>(13, "expiries", 0).into()),
        payload: Payload { encoding, bytes: read.get(25, "payload", Vec::new()).into() },
        prev_run_at: read.maybe_at(15, "prev_run_at"),
        claimed_at: read.maybe_at(16, "claimed_at"),
        error: read.maybe(17, "error"),
        history: {
            let stored = read.maybe(18, "history");
            read.note(codec::history(stored))
        },
        note: note.map(|text| Note { text, by: read.maybe(20, "note_by").unwrap_or_default() }),
        failed_at: read.maybe_at(21, "failed_at"),
        resolved_by: read.maybe(22, "resolved_by"),
        resolved_at: read.maybe_at(23, "resolved_at"),
        headers: {
            let stored = read.maybe(24, "headers");
            read.note(codec::headers(stored))
        },
        lease,
        cancel_requested: read.get(29, "cancel_requested", false),
        damaged: None,
    };
    task.damaged = (!read.faults.is_empty()).then(|| read.faults.join("; "));
    Ok(task)
}
