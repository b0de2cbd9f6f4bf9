//! What can go wrong for a user of the library.

use gristmill_core::{NameError, Refusal, StoreError, Why};

use crate::{BulkError, BulkRefused, StoreUrlError};

/// Why a call did not do what was asked. A duplicate task is an answer, not an
/// error.
///
/// [`source`](std::error::Error::source) leads to what it was caused by, down to the
/// driver's error or the operating system's (see [`StoreError`]). `{}` leaves those
/// causes out, as whoever walks them tells each by itself; `{:#}` tells them, on one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store could not answer; its variants say what to do next.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store's URL cannot be used.
    #[error(transparent)]
    Url(#[from] StoreUrlError),
    /// A queue's name cannot be used.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A task could not be turned into a payload.
    #[error(transparent)]
    Encode(Why),
    /// A task's value has no form in its contract.
    #[error("the task does not fit its contract: {0}")]
    DoesNotFit(String),
    /// A payload is not of the type it should be.
    #[error(transparent)]
    Decode(Why),
    /// A contract cannot take the place of the one that the store keeps.
    #[error("queue '{queue}': {why}")]
    Contract {
        /// The queue.
        queue: String,
        /// Why, and what to do.
        why: String,
    },
    /// Both a delay and a start time were given.
    #[error("a task starts after a delay or at a time, not both")]
    TwoStarts,
    /// The task was not taken. [`Put::answer`](crate::Put::answer) gives this as
    /// one of the answers instead.
    #[error("the task was refused: {0}")]
    Refused(#[from] Refusal),
    /// A bulk put stopped midway.
    #[error(transparent)]
    Bulk(#[from] Box<BulkError>),
    /// A bulk put went to its end, and some of its tasks were not taken.
    #[error(transparent)]
    BulkRefused(#[from] Box<BulkRefused>),
    /// A queue has two handlers: each would take the other's tasks.
    #[error(
        "queue '{queue}' has two handlers, for {first} and for {second}, and each would take the \
         other's tasks: give each type a queue of its own, or have the types share the queue as \
         one enum"
    )]
    TwoHandlers {
        /// The queue.
        queue: String,
        /// What the first handler is for.
        first: &'static str,
        /// What the second handler is for.
        second: &'static str,
    },
    /// A worker without a handler would do nothing, for ever.
    #[error("the worker has no handler: say handle, handle_batch or queue before it runs")]
    NoHandlers,
    /// A worker without a processor would do nothing, for ever.
    #[error("the worker has no processor: say processors(1) or more, or leave it out")]
    NoProcessors,
    /// This needs the SQLite store.
    #[error("{0} needs a SQLite store, and this is another")]
    NotSqlite(&'static str),
    /// This needs the PostgreSQL store.
    #[error("{0} needs a PostgreSQL store, and this is another")]
    NotPostgres(&'static str),
    /// What a handler wants to keep has no form or is too large, or what was kept is
    /// not of the type it should be.
    #[error("{0}")]
    Checkpoint(String),
    /// A step of a handler went wrong.
    #[error("step '{name}' failed")]
    Step {
        /// The step.
        name: String,
        /// Why.
        #[source]
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The task's lease went to another worker, or the task is gone.
    #[error("the lease was lost: roll back, another worker may have the task")]
    LeaseLost,
}

impl Error {
    /// Whether the task was refused because there is no room for it now.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self, Error::Refused(Refusal::QueueFull { .. } | Refusal::StoreFull { .. }))
    }

    /// What is said of it, with every cause, on one line: for logs and for people.
    #[must_use]
    pub fn whole(&self) -> String {
        format!("{self:#}")
    }

    /// Whether it is certain that nothing was written.
    #[must_use]
    pub const fn wrote_nothing(&self) -> bool {
        match self {
            Error::Store(error) => error.wrote_nothing(),
            Error::Bulk(_) | Error::BulkRefused(_) => false,
            _ => true,
        }
    }
}
