//! What can go wrong in a store, by what the caller can do next.

use std::error::Error;
use std::fmt;

use crate::Why;

/// A store's result.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a store could not answer. A refused put, a lost lease or a duplicate is
/// an answer, not an error.
///
/// [`source`](Error::source) leads to what it was caused by, as the driver or the
/// operating system gave it: `rusqlite::Error`, `tokio_postgres::error::DbError` with
/// its SQLSTATE, `std::io::Error` with its kind. `{}` leaves those causes out, and
/// `{:#}` tells them, on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process held the store's lock for too long. Nothing was
    /// written; try again.
    Busy(Why),
    /// Somebody else's open transaction holds what one of the tasks needs.
    /// Nothing was written; ask for each by itself, or try again when that
    /// transaction is over.
    Held(Why),
    /// The store cannot be reached or cannot work now. Nothing was written;
    /// try again later.
    Unavailable(Why),
    /// The write was sent and no answer came: it may or may not have happened.
    /// Repeat it only if it is harmless twice (a put with an id is).
    Unknown(Why),
    /// The disk has no room. Nothing was written; make room and try again.
    DiskFull(Why),
    /// The request itself cannot be served; repeating it will not help.
    Invalid(Why),
    /// No such queue. Declare it first.
    UnknownQueue {
        /// What was asked for.
        name: String,
        /// A declared queue with a similar name.
        suggestion: Option<String>,
    },
    /// The file or database holds something else, or a damaged store.
    NotAStore(Why),
    /// The store was written by a newer Gristmill. Upgrade this program.
    NewerSchema {
        /// The store's schema version.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// The operating system denies access.
    Permission(Why),
    /// The store failed at it, and would fail again: a fault in its programs or
    /// in what was added to them. Nothing was written; somebody has to look.
    Fault(Why),
    /// Stored data cannot be read.
    Corrupt(Why),
    /// This store does not have what was asked for (see its capabilities).
    NotSupported(Why),
    /// The store was closed by this program.
    Closed,
}

/// Makes one of each kind that has words.
macro_rules! worded {
    ($($name:ident $kind:ident)*) => {
        impl StoreError {
            $(
                #[doc = concat!("[`StoreError::", stringify!($kind), "`] with these words.")]
                #[must_use]
                pub fn $name(why: impl Into<Why>) -> Self {
                    StoreError::$kind(why.into())
                }
            )*

            /// Why, where it is said in words.
            #[must_use]
            pub const fn why(&self) -> Option<&Why> {
                match self {
                    $(StoreError::$kind(why) => Some(why),)*
                    _ => None,
                }
            }

            /// The same with other words, where it has any; what it was caused by stays.
            #[must_use]
            pub fn map_why(self, change: impl FnOnce(Why) -> Why) -> Self {
                match self {
                    $(StoreError::$kind(why) => StoreError::$kind(change(why)),)*
                    other => other,
                }
            }
        }
    };
}

worded! {
    busy Busy
    held Held
    unavailable Unavailable
    unknown Unknown
    disk_full DiskFull
    invalid Invalid
    not_a_store NotAStore
    permission Permission
    fault Fault
    corrupt Corrupt
    not_supported NotSupported
}

impl StoreError {
    /// Keeps what it was caused by, for [`source`](Error::source).
    #[must_use]
    pub fn caused_by(self, cause: impl Error + Send + Sync + 'static) -> Self {
        self.map_why(|why| why.caused_by(cause))
    }

    /// The same of a write that may have happened after all.
    #[must_use]
    pub fn into_unknown(self) -> Self {
        match self.why() {
            Some(why) => StoreError::unknown(why.clone()),
            None => StoreError::unknown(self.to_string()),
        }
    }

    /// What is said of it, with every cause, on one line: for logs and for people.
    #[must_use]
    pub fn whole(&self) -> String {
        format!("{self:#}")
    }

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

    /// What is said before the words and behind them.
    const fn frame(&self) -> (&'static str, &'static str) {
        match self {
            StoreError::Busy(_) => ("the store is busy", "; nothing was written, try again"),
            StoreError::Held(_) => {
                ("somebody's open transaction is in the way", "; nothing was written, try again")
            }
            StoreError::Unavailable(_) => ("the store is unavailable", "; nothing was written"),
            StoreError::Unknown(_) => {
                ("the outcome is unknown", "; the write may or may not have happened")
            }
            StoreError::DiskFull(_) => ("the disk is full", "; nothing was written"),
            StoreError::Permission(_) => ("no permission", ""),
            StoreError::Fault(_) => {
                ("the store has a fault", "; nothing was written, and trying again will not help")
            }
            StoreError::Corrupt(_) => ("stored data is damaged", ""),
            StoreError::NotSupported(_) => ("this store cannot do that", ""),
            StoreError::Closed => ("the store is closed", ""),
            StoreError::Invalid(_)
            | StoreError::NotAStore(_)
            | StoreError::UnknownQueue { .. }
            | StoreError::NewerSchema { .. } => ("", ""),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::UnknownQueue { name, suggestion } => {
                write!(f, "there is no queue '{name}'")?;
                return match suggestion {
                    Some(similar) => write!(f, "; did you mean '{similar}'?"),
                    None => Ok(()),
                };
            }
            StoreError::NewerSchema { found, known } => {
                return write!(
                    f,
                    "the store has schema {found} and this program knows up to {known}: use a \
                     newer gristmill"
                );
            }
            _ => {}
        }
        let (before, behind) = self.frame();
        f.write_str(before)?;
        if let Some(why) = self.why().filter(|why| !why.says_nothing(f.alternate())) {
            f.write_str(if before.is_empty() { "" } else { ": " })?;
            fmt::Display::fmt(why, f)?;
        }
        f.write_str(behind)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.why().and_then(Why::cause)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// As `anyhow` writes an error with `{:#}`.
    fn chain(error: &dyn Error) -> String {
        let mut told = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            told = format!("{told}: {error}");
            cause = error.source();
        }
        told
    }

    #[test]
    fn a_cause_is_told_once_by_who_walks_the_chain() {
        let denied = || io::Error::from_raw_os_error(13);
        let error = StoreError::permission("/spool/lock").caused_by(denied());
        assert_eq!(error.to_string(), "no permission: /spool/lock");
        assert_eq!(chain(&error), format!("no permission: /spool/lock: {}", denied()));
        assert_eq!(error.whole(), chain(&error));
        let copy = error.clone();
        let below = copy.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        assert_eq!(below.map(io::Error::kind), Some(io::ErrorKind::PermissionDenied));
    }

    #[test]
    fn what_to_do_next_is_said_last() {
        let error = StoreError::disk_full("").caused_by(io::Error::other("no room"));
        assert_eq!(error.to_string(), "the disk is full; nothing was written");
        assert_eq!(error.whole(), "the disk is full: no room; nothing was written");
        assert_eq!(StoreError::invalid("no").whole(), "no");
        assert!(StoreError::Closed.caused_by(io::Error::other("x")).source().is_none());
    }
}
