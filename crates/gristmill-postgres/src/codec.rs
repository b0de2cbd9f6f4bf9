//! Values as this store's columns hold them. What is text there is written as in
//! every store (`gristmill-text`).

use std::time::Duration;

use gristmill_core::{Attempt, Encoding, Queue, Result};
use gristmill_text::{Readable, StoredQueue};
pub(crate) use gristmill_text::{
    headers, headers_text, queue_name, queue_texts, task_settings, task_settings_text, worker_id,
};
use tokio_postgres::Row;

use crate::answer::column;
use crate::errors::corrupt;
use crate::sql::at;
use crate::wire::At;

/// A queue from its row.
pub(crate) fn queue(row: &Row) -> Result<Queue> {
    let number: i32 = column(row, at!(QueueAll.number))?;
    let stored = StoredQueue {
        number: u32::try_from(number).map_err(|e| corrupt("a queue's number", e))?,
        name: column(row, at!(QueueAll.name))?,
        declared: column(row, at!(QueueAll.declared))?,
        overridden: column(row, at!(QueueAll.overridden))?,
        paused: column(row, at!(QueueAll.paused))?,
        paused_by: column(row, at!(QueueAll.paused_by))?,
        contract: column(row, at!(QueueAll.contract))?,
        created_at: column::<At>(row, at!(QueueAll.created_at))?.0,
    };
    stored.into_queue()
}

/// A task's history, whose instants are in the database's words: its functions
/// write it.
pub(crate) fn history(stored: Option<&str>) -> Readable<Vec<Attempt>> {
    gristmill_text::history::<String>(stored)
}

/// A duration as the functions take it.
pub(crate) fn span(duration: Duration) -> i64 {
    // Ten thousand years: beyond it every instant is the last one anyway.
    const LONGEST: i64 = 315_576_000_000_000_000;
    i64::try_from(duration.as_micros()).unwrap_or(LONGEST).min(LONGEST)
}

/// A duration as it is read back.
pub(crate) fn from_span(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// What stands for an encoding that is none: nobody looks inside.
pub(crate) const STRANGE: Encoding = Encoding::Raw;

/// A stored encoding.
pub(crate) fn encoding(stored: i16) -> Readable<Encoding> {
    let known = Encoding::ALL.into_iter().find(|one| encoding_number(*one) == stored);
    let fault = known.is_none().then(|| format!("its encoding is {stored}, which is none"));
    Readable { value: known.unwrap_or(STRANGE), fault }
}

/// An encoding as it is stored.
pub(crate) const fn encoding_number(encoding: Encoding) -> i16 {
    match encoding {
        Encoding::Json => 0,
        Encoding::Msgpack => 1,
        Encoding::Raw => 2,
    }
}

/// A number that is never negative.
pub(crate) fn count(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}

/// A small number that is never negative.
pub(crate) fn small(stored: i32) -> u32 {
    u32::try_from(stored).unwrap_or(0)
}
