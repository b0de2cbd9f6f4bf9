//! The judge: clients that write down every call before it is made and every
//! answer after it, faults by seed, and a verdict from those files and the final
//! store alone.
//!
//! A run has a folder: a journal a client ([`Journal`]), the plan ([`Plan`]: what
//! was declared) and what stood at the end ([`Standing`]).
//! `gristmill-judge` is the program for people; it runs clients as processes, over
//! any store's URL. [`together`] runs them in this process, for stores that live in
//! one.

mod case;
mod client;
mod event;
mod gather;
mod journal;
mod noted;
mod plan;
mod rule;
mod standing;
#[cfg(test)]
mod tests;
mod together;
mod verdict;

pub use client::{Client, Dice, Leave, Role, drain};
pub use event::{
    Answer, Call, Ending, Fault, FaultKind, Follow, Given, How, Line, Phase, PutSaid, SettleSaid,
    Wanted, Went,
};
pub use journal::{History, Journal, Placed};
pub use noted::Noted;
pub use plan::{Plan, QueueRules, declare};
pub use standing::{Counted, Standing, Stands};
pub use together::together;
pub use verdict::{Tally, Verdict, Violation, judge, judge_folder};

/// How long leases last in a run, in milliseconds: short, so that the tasks of
/// killed clients come back while it lasts.
pub const LEASE_MS: u64 = 700;
