//! What clients write down: a line before every call, a line after every answer,
//! and a line for every fault. JSON, one object a line, so that a client in any
//! language can write it and a person can read it.

use serde::{Deserialize, Serialize};

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// One line of a journal: a call, an answer or a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Microseconds of the machine's steady clock. All clients of a run are on one
    /// machine, so their times can be compared, whatever the wall clock does.
    pub t: u64,
    /// Microseconds since 1970 by the wall clock of the process.
    pub w: i64,
    /// The call's number in its file; its answer has the same.
    #[serde(default, skip_serializing_if = "is_default")]
    pub n: u64,
    /// What is about to be called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Call>,
    /// What was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// What was done to the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// A task as its producer wants it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Wanted {
    /// Its data: a text that no other put of the run has.
    pub payload: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What it is counted with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Who produced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Lower runs first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i16,
    /// Not before this much time has passed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub delay_ms: u64,
    /// The producer's own id for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// A task put together with a settlement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follow {
    /// Where it goes.
    pub queue: String,
    /// The task.
    pub task: Wanted,
}

/// How a client ends an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It succeeded.
    Done,
    /// It went wrong; the queue decides.
    Error,
    /// Again, at a time that is named.
    Retry,
    /// For good, now.
    Fail,
    /// Given back.
    Release,
    /// The handler obeyed a cancel.
    Cancelled,
}

/// One settlement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// The task.
    pub task: i64,
    /// The token it is settled under.
    pub token: String,
    /// How.
    pub how: How,
    /// What is put in the same step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub follow_ups: Vec<Follow>,
}

/// What a client is about to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Puts tasks on a queue.
    Put {
        /// The queue.
        queue: String,
        /// The tasks.
        tasks: Vec<Wanted>,
        /// All or nothing.
        #[serde(default, skip_serializing_if = "is_default")]
        atomic: bool,
        /// The caller's transaction it is a part of: true when that commits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transaction: Option<u64>,
    },
    /// Commits the caller's transaction of this number.
    Commit {
        /// Which one.
        transaction: u64,
    },
    /// Rolls it back.
    Rollback {
        /// Which one.
        transaction: u64,
    },
    /// Takes tasks of a queue.
    Claim {
        /// The queue.
        queue: String,
        /// At most this many.
        max: usize,
        /// The fresh token.
        token: String,
        /// Only tasks of this source.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<String>,
    },
    /// Ends attempts.
    Settle {
        /// Each by itself.
        endings: Vec<Ending>,
    },
    /// Prolongs a lease.
    Extend {
        /// Its token.
        token: String,
        /// Its new length from now.
        lease_ms: u64,
    },
    /// An operator's action on tasks.
    Operate {
        /// `retry`, `resolve`, `discard` or `cancel`.
        action: String,
        /// The tasks, where they are named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<i64>,
        /// All of this queue, where none is named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queue: Option<String>,
    },
    /// Stops or resumes a queue's claims.
    Pause {
        /// The queue.
        queue: String,
        /// Stop, or resume.
        paused: bool,
    },
    /// Fires one instant of a schedule.
    Fire {
        /// The schedule.
        schedule: String,
        /// Where its task goes.
        queue: String,
        /// The instant, in microseconds since 1970.
        instant: i64,
        /// What is put for it.
        payload: String,
    },
    /// Tidies up.
    Sweep {},
    /// Takes back what is past its lease.
    Reclaim {},
}

/// What a put says of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PutSaid {
    /// It stands under this number.
    Enqueued(i64),
    /// This one stands for it.
    Duplicate(i64),
    /// This one took over its data.
    Replaced(i64),
    /// It was not taken, and why.
    Refused(String),
}

impl PutSaid {
    /// The task it names, if any.
    #[must_use]
    pub const fn task(&self) -> Option<i64> {
        match self {
            PutSaid::Enqueued(id) | PutSaid::Duplicate(id) | PutSaid::Replaced(id) => Some(*id),
            PutSaid::Refused(_) => None,
        }
    }
}

/// Where a settled task went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Went {
    /// Done.
    Done,
    /// Back in its queue.
    Pending,
    /// Failed for good.
    Failed,
    /// Deleted, because it was cancelled.
    Cancelled,
}

/// What a store says to a settlement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettleSaid {
    /// It is on record.
    Recorded {
        /// Where the task went.
        went: Went,
        /// What became of its follow-ups.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        follow_ups: Vec<PutSaid>,
    },
    /// It was on record before.
    AlreadyRecorded,
    /// There is no such task.
    Gone,
    /// The token is not the task's.
    LeaseLost,
}

/// A task as a claim gives it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Given {
    /// Its number.
    pub task: i64,
    /// Its data.
    pub payload: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What it is counted with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Its priority.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i16,
    /// When it fell due, in microseconds since 1970.
    pub run_at: i64,
    /// Which run this is.
    pub attempt: u32,
    /// Claims ever.
    pub claims: u32,
    /// Its slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<u32>,
}

/// What a client was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Of a put or a fire: one a task.
    Put(Vec<PutSaid>),
    /// Of a claim.
    Claim {
        /// What was taken.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<Given>,
        /// The lease's length.
        lease_ms: u64,
        /// The token, where the store chose it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
        /// Tasks that failed because their last lease ran out.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failed: Vec<i64>,
    },
    /// Of a settlement: one each.
    Settle(Vec<SettleSaid>),
    /// Of an extension: the lease lasts.
    Extended {
        /// Tasks that are to be cancelled.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cancelled: Vec<i64>,
        /// Tasks that are gone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lost: Vec<i64>,
    },
    /// Of an extension: nothing is open under the token.
    LeaseLost,
    /// Of an operator's action: each task and a word.
    Operate(Vec<(i64, String)>),
    /// Of a fire: decided before, passed over or not to be made.
    NotFired(String),
    /// Of a sweep: tasks that failed because their last lease ran out.
    Swept {
        /// Which.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failed: Vec<i64>,
    },
    /// It was done, and there is nothing more to say.
    Fine,
    /// An error. Only an unknown one may have written something.
    Error {
        /// Whether it may have happened.
        unknown: bool,
        /// In words.
        words: String,
    },
}

/// What was done to the system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Which.
    pub kind: FaultKind,
    /// To whom: a client, the server, a disk.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Whether this line is about its beginning, its end, or all of it.
    pub phase: Phase,
    /// How far a clock jumped.
    #[serde(default, skip_serializing_if = "is_default")]
    pub jump_ms: i64,
}

/// Which part of a fault a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It begins.
    Begin,
    /// It is over.
    End,
    /// It happened at once.
    Whole,
}

macro_rules! fault_kinds {
    ($( $(#[$doc:meta])* $name:ident = $word:literal, )+) => {
        /// The faults there are.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum FaultKind { $( $(#[$doc])* $name, )+ }

        impl FaultKind {
            /// All of them.
            pub const ALL: &'static [FaultKind] = &[ $( FaultKind::$name, )+ ];

            /// Its name on the command line and in journals.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $( FaultKind::$name => $word, )+ }
            }
        }
    };
}

fault_kinds! {
    /// A client is killed with SIGKILL and another takes its place.
    Kill = "kill",
    /// A client is stopped for longer than its leases last.
    Stop = "stop",
    /// A client leaves in good order, and another joins.
    Join = "join",
    /// The server is killed, or ended without writing anything more.
    ServerKill = "server_kill",
    /// The server stands still for a while.
    ServerFreeze = "server_freeze",
    /// A standby becomes the server.
    Promote = "promote",
    /// Connections are ended.
    Cut = "cut",
    /// Connections carry nothing any more, and nobody is told.
    Stall = "stall",
    /// System calls of a client fail.
    Syscall = "syscall",
    /// The power of the disk is cut.
    Power = "power",
    /// The disk has no room for a while.
    DiskFull = "disk_full",
    /// The wall clock jumps.
    Clock = "clock",
    /// A caller's transaction stays open.
    OpenTransaction = "open_transaction",
}

impl FaultKind {
    /// Whether claims that did not wait for the disk may be forgotten by it.
    #[must_use]
    pub const fn forgets_claims(self) -> bool {
        matches!(self, FaultKind::ServerKill | FaultKind::Promote | FaultKind::Power)
    }
}

impl std::str::FromStr for FaultKind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().copied().find(|kind| kind.word() == word.replace('-', "_"));
        found.ok_or_else(|| {
            let all: Vec<&str> = Self::ALL.iter().map(|kind| kind.word()).collect();
            format!("there is no fault '{word}': use some of {}", all.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_it_must_and_no_more() {
        let line = Line {
            t: 5,
            w: 7,
            n: 1,
            call: Some(Call::Claim { queue: "q".into(), max: 3, token: "00".into(), source: None }),
            answer: None,
            fault: None,
        };
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(
            text,
            r#"{"t":5,"w":7,"n":1,"call":{"claim":{"queue":"q","max":3,"token":"00"}}}"#
        );
        assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line);
    }

    #[test]
    fn an_answer_survives_its_line() {
        let answer = Answer::Settle(vec![
            SettleSaid::Recorded { went: Went::Done, follow_ups: vec![PutSaid::Enqueued(3)] },
            SettleSaid::Gone,
        ]);
        let text = serde_json::to_string(&answer).unwrap();
        assert_eq!(
            text,
            r#"{"settle":[{"recorded":{"went":"done","follow_ups":[{"enqueued":3}]}},"gone"]}"#
        );
        assert_eq!(serde_json::from_str::<Answer>(&text).unwrap(), answer);
    }

    #[test]
    fn a_fault_is_known_by_its_word() {
        for kind in FaultKind::ALL {
            assert_eq!(kind.word().parse(), Ok(*kind));
            assert_eq!(serde_json::to_string(kind).unwrap(), format!("\"{}\"", kind.word()));
        }
        let error = "quake".parse::<FaultKind>().unwrap_err();
        assert!(error.contains("server_kill"), "{error}");
    }
}
