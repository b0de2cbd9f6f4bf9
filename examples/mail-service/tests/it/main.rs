//! The mail service end to end: its queues on a store, its handlers in a
//! worker, and its command.

#![expect(clippy::unwrap_used, reason = "tests assert by panicking, in helpers too")]

mod command;
mod delivery;
mod processors;
