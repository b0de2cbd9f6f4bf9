//! What the histories of one run met, by the words of the answers: a run that
//! never saw a lost lease has shown nothing about lost leases.

use std::collections::BTreeMap;

use gristmill_core::{
    ExtendAnswer, FireAnswer, OperationAnswer, Published, PutAnswer, SettleAnswer,
};

use super::call::Answer;

/// How often each answer was given.
#[derive(Debug, Default)]
pub struct Seen(BTreeMap<&'static str, u64>);

impl Seen {
    /// Every word that a run of a few hundred histories must have met.
    pub const WORDS: &'static [&'static str] = &[
        "enqueued",
        "duplicate",
        "replaced",
        "refused",
        "claimed",
        "claimed nothing",
        "recorded",
        "recorded with follow-ups",
        "already recorded",
        "gone",
        "lease lost",
        "extended",
        "extension refused",
        "reclaimed",
        "moved",
        "cancel requested",
        "duplicate of",
        "wrong state",
        "fired",
        "already decided",
        "overlapped",
        "paused",
        "leader",
        "not leader",
        "published",
        "stale term",
        "error",
    ];

    /// How often this answer was given.
    #[must_use]
    pub fn count(&self, word: &str) -> u64 {
        self.0.get(word).copied().unwrap_or(0)
    }

    pub(super) fn note(&mut self, answer: &Answer) {
        match answer {
            Answer::Put(report) => report.answers.iter().for_each(|answer| self.put(answer)),
            Answer::Claim(claim) if claim.tasks.is_empty() => self.one("claimed nothing"),
            Answer::Claim(_) => self.one("claimed"),
            Answer::Settle(answers) => answers.iter().for_each(|answer| self.settle(answer)),
            Answer::Extend(answers) => answers.iter().for_each(|answer| {
                self.one(match answer {
                    ExtendAnswer::Extended { .. } => "extended",
                    ExtendAnswer::LeaseLost => "extension refused",
                });
            }),
            Answer::Count(0) => self.one("reclaimed nothing"),
            Answer::Count(_) => self.one("reclaimed"),
            Answer::Operate(answers) => answers.iter().for_each(|(_, answer)| {
                self.one(match answer {
                    OperationAnswer::Moved => "moved",
                    OperationAnswer::CancelRequested => "cancel requested",
                    OperationAnswer::DuplicateOf(_) => "duplicate of",
                    OperationAnswer::WrongState(_) => "wrong state",
                    OperationAnswer::Held => "held",
                    OperationAnswer::Gone => "operated on nothing",
                });
            }),
            Answer::Fire(answer) => self.one(match answer {
                FireAnswer::Fired(_) => "fired",
                FireAnswer::Asked => "asked",
                FireAnswer::AlreadyDecided => "already decided",
                FireAnswer::Overlapped(_) => "overlapped",
                FireAnswer::Paused => "paused",
                FireAnswer::NotYet(_) => "not yet",
                FireAnswer::Unknown => "no schedule",
            }),
            Answer::Campaign(held) => self.one(if held.mine { "leader" } else { "not leader" }),
            Answer::Publish(Published::Accepted) => self.one("published"),
            Answer::Publish(Published::StaleTerm { .. }) => self.one("stale term"),
            Answer::Error(_) => self.one("error"),
            _ => self.one("other"),
        }
    }

    fn put(&mut self, answer: &PutAnswer) {
        self.one(match answer {
            PutAnswer::Enqueued { .. } => "enqueued",
            PutAnswer::Duplicate { .. } => "duplicate",
            PutAnswer::Replaced { .. } => "replaced",
            PutAnswer::Refused(_) => "refused",
        });
    }

    fn settle(&mut self, answer: &SettleAnswer) {
        self.one(match answer {
            SettleAnswer::Recorded { follow_ups, .. } if !follow_ups.is_empty() => {
                "recorded with follow-ups"
            }
            SettleAnswer::Recorded { .. } => "recorded",
            SettleAnswer::AlreadyRecorded => "already recorded",
            SettleAnswer::Gone => "gone",
            SettleAnswer::LeaseLost => "lease lost",
        });
    }

    fn one(&mut self, word: &'static str) {
        *self.0.entry(word).or_default() += 1;
    }
}
