//! What can go wrong in a store, by what the caller can do next.

/// A store's result.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a store could not answer. A refused put, a lost lease or a duplicate is
/// an answer, not an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process held the store's lock for too long. Nothing was
    /// written; try again.
    #[error("the store is busy: {0}; nothing was written, try again")]
    Busy(String),
    /// Somebody else's open transaction holds what one of the tasks needs.
    /// Nothing was written; ask for each by itself, or try again when that
    /// transaction is over.
    #[error("somebody's open transaction is in the way: {0}; nothing was written, try again")]
    Held(String),
    /// The store cannot be reached or cannot work now. Nothing was written;
    /// try again later.
    #[error("the store is unavailable: {0}; nothing was written")]
    Unavailable(String),
    /// The write was sent and no answer came: it may or may not have happened.
    /// Repeat it only if it is harmless twice (a put with an id is).
    #[error("the outcome is unknown: {0}; the write may or may not have happened")]
    Unknown(String),
    /// The disk has no room. Nothing was written; make room and try again.
    #[error("the disk is full: {0}; nothing was written")]
    DiskFull(String),
    /// The request itself cannot be served; repeating it will not help.
    #[error("{0}")]
    Invalid(String),
    /// No such queue. Declare it first.
    #[error("there is no queue '{name}'{}", match suggestion { Some(s) => format!("; did you mean '{s}'?"), None => String::new() })]
    UnknownQueue {
        /// What was asked for.
        name: String,
        /// A declared queue with a similar name.
        suggestion: Option<String>,
    },
    /// The file or database holds something else, or a damaged store.
    #[error("{0}")]
    NotAStore(String),
    /// The store was written by a newer Gristmill. Upgrade this program.
    #[error(
        "the store has schema {found} and this program knows up to {known}: use a newer gristmill"
    )]
    NewerSchema {
        /// The store's schema version.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// The operating system denies access.
    #[error("no permission: {0}")]
    Permission(String),
    /// The store failed at it, and would fail again: a fault in its programs or
    /// in what was added to them. Nothing was written; somebody has to look.
    #[error("the store has a fault: {0}; nothing was written, and trying again will not help")]
    Fault(String),
    /// Stored data cannot be read.
    #[error("stored data is damaged: {0}")]
    Corrupt(String),
    /// This store does not have what was asked for (see its capabilities).
    #[error("this store cannot do that: {0}")]
    NotSupported(String),
    /// The store was closed by this program.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether the same call may succeed later without anyone's help.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(
            self,
            StoreError::Busy(_)
                | StoreError::Held(_)
                | StoreError::Unavailable(_)
                | StoreError::DiskFull(_)
        )
    }

    /// Whether it is certain that nothing was written.
    #[must_use]
    pub const fn wrote_nothing(&self) -> bool {
        !matches!(self, StoreError::Unknown(_))
    }
}
