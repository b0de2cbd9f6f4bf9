//! Values that are stored as JSON text: settings, histories, reports.
//!
//! The model knows no serialisation, so small mirrors stand here, and a
//! renamed field of the model cannot silently change what is stored.

use std::collections::BTreeMap;
use std::time::Duration;

use gristmill_core::{
    Attempt, AttemptEnd, Headers, Origin, Override, Queue, QueueName, Result, Settings,
    SettingsPatch, StoreError, Timestamp, WorkerId,
};
use rusqlite::Row;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::errors::corrupt;
use crate::settings_codec;

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
    created_at: i64,
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
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(QueueRow {
            number: row.get(0)?,
            name: row.get(1)?,
            declared: row.get(2)?,
            overridden: row.get(3)?,
            paused: row.get(4)?,
            paused_by: row.get(5)?,
            contract: row.get(6)?,
            created_at: row.get(7)?,
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
            created_at: Timestamp::from_micros(self.created_at),
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
    claimed_at: i64,
    ended_at: i64,
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
                claimed_at: Timestamp::from_micros(attempt.claimed_at),
                ended_at: Timestamp::from_micros(attempt.ended_at),
                end: attempt
                    .end
                    .parse::<AttemptEnd>()
                    .map_err(|e| corrupt("a task's history", e))?,
                error: attempt.error,
            })
        })
        .collect()
}

/// A history as it is stored.
pub(crate) fn history_text(attempts: &[Attempt]) -> Result<String> {
    let attempts: Vec<AttemptText> = attempts
        .iter()
        .map(|attempt| AttemptText {
            worker: attempt.worker.to_string(),
            claimed_at: attempt.claimed_at.as_micros(),
            ended_at: attempt.ended_at.as_micros(),
            end: attempt.end.as_str().to_owned(),
            error: attempt.error.clone(),
        })
        .collect();
    text(&attempts)
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

/// Task ids as they are stored: eight bytes each, big end first.
pub(crate) fn ids_blob(ids: &[i64]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_be_bytes()).collect()
}

/// Task ids as they are read back.
pub(crate) fn ids(blob: &[u8]) -> Vec<i64> {
    let (whole, _) = blob.as_chunks::<8>();
    whole.iter().map(|bytes| i64::from_be_bytes(*bytes)).collect()
}
