//! A stored task as the port shows it.
//!
//! Whatever stands in its row: what cannot be read is told of this one task, and
//! the others of its page are shown.

use gristmill_core::{
    Kept, LeaseView, Note, Payload, Result, State, Task, TaskId, Timestamp, Unique,
};
use gristmill_text::Readable;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::answer::{Answer as _, column};
use crate::codec::{self, small};
use crate::errors::corrupt;
use crate::sql::at;
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
    column(row, at!(Get.id)).map(TaskId)
}

/// Reads a row of the view that shows tasks.
///
/// # Errors
/// When nothing can be said of it: its id, state or queue is none.
pub(crate) fn task(row: &Row) -> Result<Task> {
    let state: &str = column(row, at!(Get.state))?;
    let state: State = state.parse().map_err(|e| corrupt("a task's state", e))?;
    let (id, queue) = (id(row)?, codec::queue_name(column(row, at!(Get.queue))?)?);
    let mut read = Reader { row, faults: Vec::new() };
    let lease = read.maybe(at!(Get.worker), "worker").map(|worker| LeaseView {
        worker: codec::worker_id(worker),
        until: read.at(at!(Get.until), "lease's end"),
        slot: read.maybe(at!(Get.slot), "slot").map(small),
        // What cannot be read is not shown: nothing rests on it.
        progress: read
            .maybe::<&str>(at!(Get.progress), "progress")
            .and_then(gristmill_text::progress::<String>),
    });
    let encoding = read.get(at!(Get.encoding), "encoding", codec::encoding_number(codec::STRANGE));
    let encoding = read.note(codec::encoding(encoding));
    let note: Option<String> = read.maybe(at!(Get.note), "note");
    let payload =
        Payload { encoding, bytes: read.get(at!(Get.payload), "payload", Vec::new()).into() };
    let mut task = Task::new(id, queue, payload, read.at(at!(Get.created_at), "created_at"));
    task.key = read.maybe(at!(Get.key), "key");
    task.group = read.maybe(at!(Get.grp), "group");
    task.source = read.maybe(at!(Get.source), "source");
    task.priority = read.get(at!(Get.priority), "priority", 0);
    task.run_at = read.at(at!(Get.run_at), "run_at");
    task.state = state;
    task.blocked = read.get(at!(Get.blocked), "blocked", false);
    task.unique = if read.get(at!(Get.unique_active), "unique", false) {
        Unique::Active
    } else {
        Unique::Pending
    };
    task.attempts = small(read.get(at!(Get.attempts), "attempts", 0));
    task.claims = small(read.get(at!(Get.claims), "claims", 0));
    task.expiries = small(read.get::<i16>(at!(Get.expiries), "expiries", 0).into());
    task.prev_run_at = read.maybe_at(at!(Get.prev_run_at), "prev_run_at");
    task.claimed_at = read.maybe_at(at!(Get.claimed_at), "claimed_at");
    task.error = read.maybe(at!(Get.error), "error");
    task.history = {
        let stored = read.maybe(at!(Get.history), "history");
        read.note(codec::history(stored))
    };
    task.note = note
        .map(|text| Note { text, by: read.maybe(at!(Get.note_by), "note_by").unwrap_or_default() });
    task.failed_at = read.maybe_at(at!(Get.failed_at), "failed_at");
    task.resolved_by = read.maybe(at!(Get.resolved_by), "resolved_by");
    task.resolved_at = read.maybe_at(at!(Get.resolved_at), "resolved_at");
    task.headers = {
        let stored = read.maybe(at!(Get.headers), "headers");
        read.note(codec::headers(stored))
    };
    task.settings = {
        let stored = read.maybe(at!(Get.settings), "settings");
        read.note(codec::task_settings(stored))
    };
    task.checkpoint = read.maybe::<Vec<u8>>(at!(Get.checkpoint), "checkpoint").map(Kept::from);
    task.lease = lease;
    task.cancel_requested = read.get(at!(Get.cancel_requested), "cancel_requested", false);
    task.damaged = (!read.faults.is_empty()).then(|| read.faults.join("; "));
    Ok(task)
}
