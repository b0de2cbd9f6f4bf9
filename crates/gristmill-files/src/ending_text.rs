//! What came of a task as it is written down: in the intent when it came true, and in
//! the state file of a checkpoint as long as it is kept.

use gristmill_core::memory::EndingRecord;
use gristmill_core::{Ending, Payload, Result, TaskId};
use serde::{Deserialize, Serialize};

use crate::errors::corrupt;
use crate::fact::instant;
use crate::task_file::{hex, unhex};

/// An ending; one that is `open` says that the task's end is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndingText {
    task: i64,
    queue: u32,
    ending: String,
    until: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<ValueText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What a handler returned: as text where it is some, else in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ValueText {
    encoding: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
}

impl EndingText {
    pub(crate) fn new(id: TaskId, record: &EndingRecord) -> Self {
        let value = record.ending.value().map(|value| {
            let text = String::from_utf8(value.bytes.to_vec()).ok();
            let hex = text.is_none().then(|| hex(&value.bytes));
            ValueText { encoding: value.encoding.as_str().to_owned(), text, hex }
        });
        EndingText {
            task: id.0,
            queue: record.number,
            ending: record.ending.as_str().to_owned(),
            until: record.until.as_micros(),
            value,
            error: record.ending.error().map(str::to_owned),
        }
    }

    pub(crate) fn into_record(self) -> Result<(TaskId, EndingRecord)> {
        let value = match self.value {
            None => None,
            Some(ValueText { encoding, text, hex }) => {
                let encoding = encoding.parse().map_err(|e| corrupt("a result", e))?;
                let bytes = match (text, hex) {
                    (Some(text), _) => text.into_bytes(),
                    (None, hex) => unhex(hex.as_deref().unwrap_or_default())
                        .ok_or_else(|| corrupt("a result", "it is not in hexadecimal"))?,
                };
                Some(Payload { bytes: bytes.into(), encoding })
            }
        };
        let ending = Ending::from_parts(&self.ending, value, self.error)
            .ok_or_else(|| corrupt("an ending", &self.ending))?;
        let until = instant(self.until);
        Ok((TaskId(self.task), EndingRecord { number: self.queue, ending, until }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_core::Timestamp;

    #[test]
    fn every_ending_survives_the_round_trip() {
        let until = Timestamp::from_micros(7);
        let endings = [
            Ending::Open { wanted: true },
            Ending::Done { value: None },
            Ending::Done { value: Some(Payload::json("{\"a\":1}")) },
            Ending::Done { value: Some(Payload::raw(vec![0, 255, 7])) },
            Ending::Failed { error: "no".to_owned() },
            Ending::Cancelled,
            Ending::Discarded,
        ];
        for ending in endings {
            let record = EndingRecord { number: 3, ending, until };
            let text = serde_json::to_string(&EndingText::new(TaskId(42), &record)).unwrap();
            let read: EndingText = serde_json::from_str(&text).unwrap();
            assert_eq!(read.into_record(), Ok((TaskId(42), record)), "{text}");
        }
    }
}
