//! One step of a history, before it is known what it will meet: it names tasks
//! and leases by how recent they are, so that a shortened history still makes
//! sense.

use std::fmt;
use std::time::Duration;

use gristmill_core::{Action, State};

/// The queues of every history. Each has one setting that matters.
pub(super) const QUEUES: [&str; 15] = [
    "plain",
    "replace",
    "postpone",
    "active",
    "slots",
    "count",
    "bounded",
    "kept",
    "limited",
    "grouped",
    "rated",
    "paced",
    "fair",
    "throttled",
    "absent",
];
/// Few keys, so that they meet.
pub(super) const KEYS: [&str; 3] = ["a", "b", "c"];
/// Few sources and groups, likewise.
pub(super) const SOURCES: [&str; 2] = ["shop", "feed"];
pub(super) const GROUPS: [&str; 2] = ["g", "h"];
/// Who takes part.
pub(super) const WORKERS: [&str; 3] = ["w1", "w2", "w3"];

/// Where in a list of everything so far, counted from the newest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Back(pub(super) u8);

impl Back {
    /// The element meant, if there is any.
    pub(super) fn of<T: Clone>(self, list: &[T]) -> Option<T> {
        let newest = list.len().checked_sub(1)?;
        list.get(newest - usize::from(self.0) % list.len()).cloned()
    }
}

impl fmt::Debug for Back {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} back", self.0)
    }
}

/// When a task starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    Now,
    In(u16),
    At(u16),
    Ago(u16),
}

/// A task to be put. Indices are into the lists above.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Sketch {
    pub(super) payload: u8,
    pub(super) key: Option<u8>,
    pub(super) group: Option<u8>,
    pub(super) source: Option<u8>,
    pub(super) priority: i16,
    pub(super) begin: Begin,
    pub(super) id: Option<u8>,
    /// Attempts of its own; 0 stands for no limit.
    pub(super) attempts: Option<u8>,
    /// Something no store can keep.
    pub(super) invalid: bool,
}

impl fmt::Debug for Sketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "payload {}", self.payload)?;
        let named = [("key", self.key, &KEYS[..]), ("group", self.group, &GROUPS[..])];
        for (what, index, names) in named.iter().chain(&[("source", self.source, &SOURCES[..])]) {
            if let Some(index) = index {
                write!(f, ", {what} {}", names[usize::from(*index)])?;
            }
        }
        if self.priority != 0 {
            write!(f, ", priority {}", self.priority)?;
        }
        if self.begin != Begin::Now {
            write!(f, ", start {:?}", self.begin)?;
        }
        if let Some(id) = self.id {
            write!(f, ", id {id}")?;
        }
        if let Some(attempts) = self.attempts {
            write!(f, ", {attempts} attempts")?;
        }
        if self.invalid {
            write!(f, ", invalid")?;
        }
        Ok(())
    }
}

/// How an attempt is said to have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Done,
    Error,
    TimedOut,
    RetryIn(u16),
    Fail,
    Release,
    ReleaseStarted,
    ReleaseIn(u16),
    Cancelled,
}

/// Which token a settlement shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// The one its task was claimed with, which may be stale by now.
    Own,
    /// Another claim's.
    Of(Back),
    /// One that no claim ever had.
    Unknown,
}

/// One settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) lease: Back,
    pub(super) token: Shown,
    pub(super) end: End,
    pub(super) follow_ups: Vec<(u8, Sketch)>,
}

/// A change of one queue's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    MaxAttempts(Option<u32>),
    Unique(bool),
    OnDuplicate(u8),
    Capacity(Option<u64>),
    KeepDone(Option<u16>),
    KeepFailed(Option<u16>),
    Lease(u16),
    IdWindow(u16),
    UniqueFor(Option<u16>),
}

/// To which tasks an operator does something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meant {
    Tasks(Vec<Back>),
    Matching { queue: Option<u8>, state: Option<State>, key: Option<u8>, source: Option<u8> },
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Put {
        queue: u8,
        tasks: Vec<Sketch>,
        atomic: bool,
    },
    Claim {
        queue: u8,
        max: u8,
        worker: u8,
        source: Option<u8>,
        lease: Option<u16>,
    },
    Settle(Vec<Ending>),
    /// With how far that many of the tasks under the last leases are.
    Extend {
        lease: Back,
        token: Shown,
        seconds: u16,
        told: Vec<(Back, u8)>,
    },
    Advance(Duration),
    Reclaim,
    Sweep,
    Operate {
        action: Action,
        meant: Meant,
        limit: u8,
        note: bool,
    },
    Pause {
        queue: u8,
        paused: bool,
    },
    Override {
        queue: u8,
        change: Change,
    },
    Reset {
        queue: u8,
    },
    Find {
        queue: u8,
    },
    Minutes {
        queue: u8,
        back: u16,
    },
    Contract {
        queue: u8,
        text: u8,
        replaces: Option<u8>,
        breaking: bool,
    },
    Schedule {
        overlap_skip: bool,
        queue: u8,
    },
    Unschedule,
    PauseSchedule(bool),
    Fire {
        behind: i16,
        tasks: Vec<Sketch>,
        by_hand: bool,
    },
    Campaign {
        who: u8,
        hold: u16,
    },
    Resign {
        who: u8,
    },
    Publish {
        term: u8,
    },
    Report {
        who: u8,
    },
    Forget {
        who: u8,
    },
}
