//! Names that are safe to print, to store and to turn into a file name.

use std::fmt;
use std::sync::Arc;

use crate::StoreError;

/// Why a name was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is not a {what} name: {why}")]
pub struct NameError {
    what: &'static str,
    name: String,
    why: String,
}

/// Longest name of a queue, schedule or worker, in bytes.
pub const NAME_MAX: usize = 64;

fn check(what: &'static str, name: &str) -> Result<(), NameError> {
    let fail = |why: String| {
        // The refused text may be a megabyte of rubbish: show its beginning.
        let name: String = name.chars().take(80).collect();
        Err(NameError { what, name, why })
    };
    if name.is_empty() {
        return fail("it is empty".to_owned());
    }
    if name.len() > NAME_MAX {
        return fail(format!("it has {} bytes and {NAME_MAX} are allowed", name.len()));
    }
    if let Some(c) = name.chars().find(|c| !c.is_ascii_alphanumeric() && !"_.-".contains(*c)) {
        return fail(format!("{c:?} is not allowed (letters, digits, '_', '.', '-' are)"));
    }
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return fail("it must start with a letter or digit".to_owned());
    }
    Ok(())
}

macro_rules! name_type {
    ($(#[$doc:meta])* $type:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks and takes the name.
            ///
            /// # Errors
            /// When it is empty, too long, or has a character outside
            /// `[A-Za-z0-9_.-]` or a first one outside `[A-Za-z0-9]`.
            pub fn new(name: &str) -> Result<Self, NameError> {
                check($what, name)?;
                Ok($type(Arc::from(name)))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl std::borrow::Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $type {
            type Err = NameError;

            fn from_str(name: &str) -> Result<Self, NameError> {
                Self::new(name)
            }
        }
    };
}

name_type!(
    /// A queue's name.
    QueueName,
    "queue"
);
name_type!(
    /// A schedule's name.
    ScheduleName,
    "schedule"
);
name_type!(
    /// A worker's id: random at each start, so that a restarted process is
    /// never taken for the one before it.
    WorkerId,
    "worker"
);

impl WorkerId {
    /// An id that stands in a store, whatever it is: clients of other languages
    /// call themselves as they like, and one odd name must not hide the tasks
    /// that it held.
    #[must_use]
    pub fn stored(text: &str) -> Self {
        WorkerId(Arc::from(text))
    }

    /// A fresh id.
    ///
    /// # Errors
    /// When the operating system has no randomness to give.
    pub fn random() -> Result<Self, StoreError> {
        let token = crate::Token::random()?.to_string();
        let short = token.get(..16).unwrap_or(&token);
        Self::new(short).map_err(|e| StoreError::invalid(e.to_string()))
    }
}

/// The name in `known` that `typed` was most likely meant to be.
#[must_use]
pub fn did_you_mean<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (typed.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (distance(typed, name), name))
        .filter(|(d, _)| *d <= allowed)
        .min()
        .map(|(_, name)| name)
}

/// Edits between two names: insert, delete, change, or swap of neighbours
/// counted as two.
fn distance(a: &str, b: &str) -> usize {
    strsim::levenshtein(&a.to_ascii_lowercase(), &b.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for good in ["emails", "offer.sync.batch", "PRICE_UPDATED", "a-1", "9"] {
            assert!(QueueName::new(good).is_ok(), "{good}");
        }
        let long = "x".repeat(65);
        for bad in ["", ".hidden", "a b", "a/b", "naïve", "a\0b", "-x", long.as_str()] {
            assert!(QueueName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_typo_finds_its_name() {
        let known = ["emails", "orders", "feeds"];
        assert_eq!(did_you_mean("email", known), Some("emails"));
        assert_eq!(did_you_mean("Oders", known), Some("orders"));
        assert_eq!(did_you_mean("payments", known), None);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
    }
}
