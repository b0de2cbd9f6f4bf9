//! The values that settings have which are no plain numbers, times or texts.

use std::time::Duration;

use crate::settings::SPAN_MAX;

/// When a put counts as a duplicate of a standing task with the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Unique {
    /// Of a task that was never claimed. An event that arrives while its key
    /// is being processed is not lost.
    #[default]
    Pending,
    /// Also of one that is being processed or came back.
    Active,
}

/// What a put does when it is a duplicate of a waiting task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnDuplicate {
    /// Nothing; the standing task is the answer.
    #[default]
    Skip,
    /// Gives the standing task its data and the more urgent priority.
    Replace,
    /// As replace, and moves its start later (debounce).
    Postpone,
}

/// What an acknowledged put or settlement survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Durability {
    /// A killed process and a power cut.
    #[default]
    Full,
    /// A killed process; a power cut may take the last second.
    Relaxed,
}

/// What a claim survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Claims {
    /// A killed process. A power cut or a crash of the server may take the last
    /// ones back: the tasks are claimed again, under the same numbers.
    #[default]
    Async,
    /// A power cut as well: `claims` never falls, so that who is given it can
    /// refuse whatever is not higher than what it saw.
    Durable,
}

/// What a limit holds for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Per {
    /// The queue as a whole.
    #[default]
    Queue,
    /// Each of its groups by itself; tasks without one are a group, too.
    Group,
}

/// Between whom claims take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fair {
    /// Nobody: the oldest task comes first.
    #[default]
    None,
    /// The groups that have due tasks, within a priority.
    Group,
}

/// The words of an enumeration, both ways.
macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $type {
            /// Its name, the same on every surface.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $($type::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::SettingsError;

            fn from_str(word: &str) -> std::result::Result<Self, $crate::SettingsError> {
                match word {
                    $($word => Ok($type::$variant),)+
                    _ => Err($crate::SettingsError(format!(
                        "'{word}' is not one of {}", [$($word),+].join(", ")
                    ))),
                }
            }
        }
    };
}
pub(crate) use words;
words!(Unique { Pending = "pending", Active = "active" });
words!(OnDuplicate { Skip = "skip", Replace = "replace", Postpone = "postpone" });
words!(Durability { Full = "full", Relaxed = "relaxed" });
words!(Claims { Async = "async", Durable = "durable" });
words!(Fair { None = "none", Group = "group" });
words!(Per { Queue = "queue", Group = "group" });

/// How long a task waits after an error: `base × 2ⁿ`, at most `cap`, spread
/// evenly between nothing and that (full jitter) so that many failed at once
/// do not come back at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Backoff {
    /// The first wait.
    pub base: Duration,
    /// The longest wait.
    pub cap: Duration,
    /// Spread evenly (default), or wait exactly that long.
    pub jitter: bool,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { base: Duration::from_secs(2), cap: Duration::from_secs(3600), jitter: true }
    }
}

/// The application's table whose rows a queue's tasks are about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Binding {
    /// The table.
    pub table: String,
    /// The column whose value is the task's key.
    pub column: String,
}

/// So many tasks a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    /// So many.
    pub tasks: u32,
    /// In this time.
    pub per: Duration,
}

impl Rate {
    /// So many in this time.
    #[must_use]
    pub const fn new(tasks: u32, per: Duration) -> Self {
        Rate { tasks, per }
    }

    /// How many that is in a second, rounded up.
    #[must_use]
    pub fn in_a_second(self) -> u32 {
        let per = self.per.as_micros().max(1);
        u32::try_from((u128::from(self.tasks) * 1_000_000).div_ceil(per)).unwrap_or(u32::MAX).max(1)
    }

    pub(crate) fn fault(self) -> Option<String> {
        if self.tasks == 0 {
            return Some("rate is 0: no task could ever run; pause the queue instead".to_owned());
        }
        if self.per > SPAN_MAX {
            return Some("rate: its time is over a year".to_owned());
        }
        (u128::from(self.tasks) > self.per.as_micros())
            .then(|| "rate is over a million a second: that is no limit".to_owned())
    }
}
