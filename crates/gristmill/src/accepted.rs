//! What became of a put that was taken.

use gristmill_core::{PutAnswer, Refusal, TaskId, Timestamp};

/// What became of a put that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Accepted {
    /// It stands in the store.
    Enqueued {
        /// Its number.
        id: TaskId,
    },
    /// A task like it stands already (by key), or stood (by your id).
    Duplicate {
        /// The standing one.
        id: TaskId,
        /// When that one may run; unknown once it is gone.
        run_at: Option<Timestamp>,
        /// Who produced that one.
        source: Option<String>,
    },
    /// The standing task of its key took over its data.
    Replaced {
        /// The standing one.
        id: TaskId,
    },
}

impl Accepted {
    /// The task that stands for this put.
    #[must_use]
    pub const fn id(&self) -> TaskId {
        match self {
            Accepted::Enqueued { id }
            | Accepted::Duplicate { id, .. }
            | Accepted::Replaced { id } => *id,
        }
    }

    /// Whether a new task was stored.
    #[must_use]
    pub const fn is_enqueued(&self) -> bool {
        matches!(self, Accepted::Enqueued { .. })
    }
}

impl TryFrom<PutAnswer> for Accepted {
    type Error = Refusal;

    fn try_from(answer: PutAnswer) -> Result<Self, Refusal> {
        Ok(match answer {
            PutAnswer::Enqueued { id } => Accepted::Enqueued { id },
            PutAnswer::Duplicate { id, run_at, source } => {
                Accepted::Duplicate { id, run_at, source }
            }
            PutAnswer::Replaced { id } => Accepted::Replaced { id },
            PutAnswer::Refused(why) => return Err(why),
        })
    }
}
