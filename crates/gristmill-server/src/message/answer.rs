//! What became of a put, per task.

use gristmill::PutAnswer;
use serde::Serialize;

/// The answer to one task.
#[derive(Debug, Serialize)]
pub(crate) struct PutOut {
    pub(crate) outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// When the standing task may run, of a duplicate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    /// Why it was refused: a stable word, and a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// The field at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
}

impl PutOut {
    const fn new(outcome: &'static str) -> Self {
        PutOut {
            outcome,
            id: None,
            run_at: None,
            source: None,
            reason: None,
            detail: None,
            field: None,
        }
    }

    /// A task that was not taken.
    pub(crate) fn refused(reason: &'static str, detail: &str, field: Option<&str>) -> Self {
        PutOut {
            reason: Some(reason),
            detail: Some(detail.to_owned()),
            field: field.map(str::to_owned),
            ..PutOut::new("refused")
        }
    }

    /// A task of which the store did not say what became.
    pub(crate) fn failed(outcome: &'static str, reason: &'static str, detail: &str) -> Self {
        PutOut { reason: Some(reason), detail: Some(detail.to_owned()), ..PutOut::new(outcome) }
    }
}

impl From<PutAnswer> for PutOut {
    fn from(answer: PutAnswer) -> Self {
        match answer {
            PutAnswer::Enqueued { id } => {
                PutOut { id: Some(id.to_string()), ..PutOut::new("enqueued") }
            }
            PutAnswer::Replaced { id } => {
                PutOut { id: Some(id.to_string()), ..PutOut::new("replaced") }
            }
            PutAnswer::Duplicate { id, run_at, source } => PutOut {
                id: Some(id.to_string()),
                run_at: run_at.map(|at| at.to_string()),
                source,
                ..PutOut::new("duplicate")
            },
            PutAnswer::Refused(why) => PutOut::refused(why.code(), &why.to_string(), None),
        }
    }
}
