//! Values that are stored as JSON text: settings, histories, reports.
//!
//! The model knows no serialisation, so small mirrors stand here, and a
//! renamed field of the model cannot silently change what is stored.

use std::collections::BTreeMap;
use std::time::Duration;

use gristmill_core::{
    Attempt, AttemptEnd, Encoding, Headers, Origin, Override, Queue, QueueName, Result, Settings,
    SettingsPatch, StoreError, Timestamp, WorkerId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_postgres::Row;

use crate::errors::{column, corrupt};
use crate::settings_codec;
use crate::wire::At;

/// A queue as it is stored.
#[derive(Debug)]
pub(crate) struct QueueRow {
    number: u32,
    name: String,
    declared: String,
    overridden: Option<String>,
    paused: bool,
    paused_by: Option<String>,
    contract: Option<String>,
    created_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct DeclaredText {
    origin: String,
    settings: Value,
}

#[derive(Serialize, Deserialize)]
struct OverrideText {
    settings: Value,
    by: String,
    at: i64,
}

impl QueueRow {
    pub(crate) fn read(row: &Row) -> Result<Self> {
        let number: i32 = column(row, 0)?;
        Ok(QueueRow {
            number: u32::try_from(number).map_err(|e| corrupt("a queue's number", e))?,
            name: column(row, 1)?,
            declared: column(row, 2)?,
            overridden: column(row, 3)?,
            paused: column(row, 4)?,
            paused_by: column(row, 5)?,
            contract: column(row, 6)?,
            created_at: column::<At>(row, 7)?.0,
        })
    }

    pub(crate) fn into_queue(self) -> Result<Queue> {
        let declared: Vec<DeclaredText> = parse("a queue's declarations", &self.declared)?;
        let declared: Vec<(Origin, SettingsPatch)> = declared
            .into_iter()
            .map(|text| Ok((origin(&text.origin)?, settings_codec::read(&text.settings)?)))
            .collect::<Result<_>>()?;
        let overridden = match &self.overridden {
            None => None,
            Some(text) => {
                let text: OverrideText = parse("a queue's override", text)?;
                Some(Override {
                    settings: settings_codec::read(&text.settings)?,
                    by: text.by,
                    at: Timestamp::from_micros(text.at),
                })
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
            created_at: self.created_at,
        })
    }
}

/// A queue's declarations and override, as they are stored.
pub(crate) fn queue_texts(queue: &Queue) -> Result<(String, Option<String>)> {
    let declared: Vec<DeclaredText> = queue
        .declared
        .iter()
        .map(|(origin, patch)| DeclaredText {
            origin: origin.as_str().to_owned(),
            settings: settings_codec::write(patch),
        })
        .collect();
    let overridden = queue.overridden.as_ref().map(|change| OverrideText {
        settings: settings_codec::write(&change.settings),
        by: change.by.clone(),
        at: change.at.as_micros(),
    });
    Ok((text(&declared)?, overridden.as_ref().map(text).transpose()?))
}

fn origin(word: &str) -> Result<Origin> {
    Origin::ALL
        .into_iter()
        .find(|origin| origin.as_str() == word)
        .ok_or_else(|| corrupt("a queue's origin", word))
}

#[derive(Serialize, Deserialize)]
struct AttemptText {
    worker: String,
    claimed_at: String,
    ended_at: String,
    end: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A task's history as it is read back; nothing stored is an empty one.
pub(crate) fn history(stored: Option<&str>) -> Result<Vec<Attempt>> {
    let Some(stored) = stored else {
        return Ok(Vec::new());
    };
    let attempts: Vec<AttemptText> = parse("a task's history", stored)?;
    attempts
        .into_iter()
        .map(|attempt| {
            Ok(Attempt {
                worker: worker_id(&attempt.worker)?,
                claimed_at: instant(&attempt.claimed_at)?,
                ended_at: instant(&attempt.ended_at)?,
                end: attempt
                    .end
                    .parse::<AttemptEnd>()
                    .map_err(|e| corrupt("a task's history", e))?,
                error: attempt.error,
            })
        })
        .collect()
}

/// An instant within JSON, as the database writes it.
fn instant(stored: &str) -> Result<Timestamp> {
    stored.parse().map_err(|e| corrupt("a task's history", e))
}

/// Headers as they are stored: nothing when there are none.
pub(crate) fn headers_text(headers: &Headers) -> Result<Option<String>> {
    if headers.is_empty() {
        return Ok(None);
    }
    text(headers).map(Some)
}

/// Headers as they are read back.
pub(crate) fn headers(stored: Option<&str>) -> Result<Headers> {
    match stored {
        None => Ok(BTreeMap::new()),
        Some(stored) => parse("a task's headers", stored),
    }
}

/// A stored queue name.
pub(crate) fn queue_name(stored: &str) -> Result<QueueName> {
    QueueName::new(stored).map_err(|e| corrupt("a queue's name", e))
}

/// A stored worker id.
pub(crate) fn worker_id(stored: &str) -> Result<WorkerId> {
    WorkerId::new(stored).map_err(|e| corrupt("a worker's id", e))
}

/// JSON text of a value.
pub(crate) fn text(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| StoreError::Invalid(e.to_string()))
}

/// A value from its JSON text.
pub(crate) fn parse<'a, T: Deserialize<'a>>(what: &str, stored: &'a str) -> Result<T> {
    serde_json::from_str(stored).map_err(|e| corrupt(what, e))
}

/// A duration as it is stored.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
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

/// A stored encoding.
pub(crate) fn encoding(stored: i16) -> Result<Encoding> {
    Encoding::ALL
        .into_iter()
        .find(|encoding| encoding_number(*encoding) == stored)
        .ok_or_else(|| corrupt("a task's encoding", stored))
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
