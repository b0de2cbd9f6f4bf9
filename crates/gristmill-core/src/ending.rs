//! What came of a task: its end, with the value that its handler returned.

use crate::{Limits, Outcome, Payload, Settlement};

/// What came of a task. None of these is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// It has not ended.
    Open {
        /// Somebody waits for its end, which is therefore kept for a while.
        wanted: bool,
    },
    /// It is done.
    Done {
        /// What its handler returned, where it returned something.
        value: Option<Payload>,
    },
    /// It failed for good. An operator may still retry it.
    Failed {
        /// Its last error.
        error: String,
    },
    /// An operator cancelled it.
    Cancelled,
    /// It had failed, and an operator discarded it.
    Discarded,
    /// There is no such task, or it ended and nothing kept its end.
    NotKnown,
}

impl Ending {
    /// Its name, the same on every surface.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Ending::Open { .. } => "open",
            Ending::Done { .. } => "done",
            Ending::Failed { .. } => "failed",
            Ending::Cancelled => "cancelled",
            Ending::Discarded => "discarded",
            Ending::NotKnown => "not_known",
        }
    }

    /// Whether the task has not ended.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self, Ending::Open { .. })
    }

    /// What the handler returned.
    #[must_use]
    pub const fn value(&self) -> Option<&Payload> {
        match self {
            Ending::Done { value } => value.as_ref(),
            _ => None,
        }
    }

    /// The last error of a task that failed.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match self {
            Ending::Failed { error } => Some(error),
            _ => None,
        }
    }

    /// What of it takes room where it is kept, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.value().map_or(0, |value| value.bytes.len()) + self.error().map_or(0, str::len)
    }

    /// An ending as it is stored, in parts; an unknown word is none.
    #[must_use]
    pub fn from_parts(word: &str, value: Option<Payload>, error: Option<String>) -> Option<Self> {
        Some(match word {
            "open" => Ending::Open { wanted: true },
            "done" => Ending::Done { value },
            "failed" => Ending::Failed { error: error.unwrap_or_default() },
            "cancelled" => Ending::Cancelled,
            "discarded" => Ending::Discarded,
            _ => return None,
        })
    }
}

impl Limits {
    /// Why this value cannot be kept of any task, if so.
    #[must_use]
    pub fn refuse_result(&self, value: &Payload) -> Option<String> {
        let bytes = value.bytes.len();
        (bytes > self.result_bytes)
            .then(|| format!("the result has {bytes} bytes and {} are allowed", self.result_bytes))
    }
}

impl Settlement {
    /// The settlement as it is recorded: one whose result is too large fails its task,
    /// because no repeating makes it smaller, and puts no follow-ups.
    #[must_use]
    pub fn admitted(mut self, limits: &Limits) -> Self {
        if let Some(value) = &self.result {
            let done = matches!(self.outcome, Outcome::Done);
            let refused = limits.refuse_result(value);
            if let (true, Some(why)) = (done, &refused) {
                self.outcome = Outcome::Fail(why.clone());
                self.follow_ups.clear();
            }
            if !done || refused.is_some() {
                self.result = None;
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TaskId, Token};

    #[test]
    fn a_result_over_the_limit_fails_its_task() {
        let limits = Limits { result_bytes: 3, ..Limits::default() };
        let with = |text: &str, outcome| {
            let token = Token::from_bytes([1; 16]);
            let mut settlement = Settlement::new(TaskId(1), token, outcome);
            settlement.result = Some(Payload::json(text.to_owned()));
            settlement.admitted(&limits)
        };
        assert_eq!(with("123", Outcome::Done).result, Some(Payload::json("123".to_owned())));
        let over = with("1234", Outcome::Done);
        let why = "the result has 4 bytes and 3 are allowed".to_owned();
        assert_eq!((over.outcome, over.result), (Outcome::Fail(why), None));
        // Only what is done has a result.
        let failed = with("1", Outcome::Fail("no".to_owned()));
        assert_eq!((failed.outcome, failed.result), (Outcome::Fail("no".to_owned()), None));
    }
}
