//! Values as this store's columns hold them. What is text there is written as in
//! every store (`gristmill-text`).

use std::time::Duration;

use gristmill_core::{Attempt, Timestamp};
use gristmill_text::{Readable, StoredQueue};
pub(crate) use gristmill_text::{
    headers, headers_text, history_text, queue_texts, task_settings, task_settings_text, worker_id,
};
use rusqlite::Row;

use crate::sql::at;

/// A queue's row.
pub(crate) fn queue(row: &Row<'_>) -> rusqlite::Result<StoredQueue> {
    Ok(StoredQueue {
        number: row.get(at!(QueueAll.number))?,
        name: row.get(at!(QueueAll.name))?,
        declared: row.get(at!(QueueAll.declared))?,
        overridden: row.get(at!(QueueAll.overridden))?,
        paused: row.get(at!(QueueAll.paused))?,
        paused_by: row.get(at!(QueueAll.paused_by))?,
        contract: row.get(at!(QueueAll.contract))?,
        created_at: Timestamp::from_micros(row.get(at!(QueueAll.created_at))?),
    })
}

/// A span as it is stored: microseconds.
pub(crate) fn span(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// A task's history, whose instants are microseconds here.
pub(crate) fn history(stored: Option<&str>) -> Readable<Vec<Attempt>> {
    gristmill_text::history::<i64>(stored)
}

/// Task ids as they are stored: eight bytes each, big end first.
pub(crate) fn ids_blob(ids: &[i64]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_be_bytes()).collect()
}

/// Task ids as they are read back.
pub(crate) fn ids(blob: &[u8]) -> Vec<i64> {
    let (whole, _) = blob.as_chunks::<8>();
    whole.iter().map(|bytes| i64::from_be_bytes(*bytes)).collect()
}
