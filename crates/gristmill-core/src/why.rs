//! Why something went wrong: our own words, and the error of a driver or of the
//! operating system that is below them.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Most causes that are told: an error that has itself as its cause would be
/// followed for ever.
const CAUSES: usize = 32;

/// Why, in words, and what it was caused by.
///
/// `{}` gives the words alone, as whoever walks [`Error::source`] tells each cause by
/// itself. `{:#}` gives the words and every cause, on one line.
#[derive(Clone)]
pub struct Why {
    words: String,
    /// Shared: one failed commit answers everybody who waited for it.
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl Why {
    /// The error below these words: of the driver, or of the operating system.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Error + Send + Sync + 'static) -> Self {
        self.cause = Some(Arc::new(cause));
        self
    }

    /// The error below these words, if one is.
    #[must_use]
    pub fn cause(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }

    /// The same cause below other words.
    #[must_use]
    pub fn reworded(self, words: impl Into<String>) -> Self {
        Why { words: words.into(), cause: self.cause }
    }

    /// Whether there is nothing to say.
    pub(crate) fn says_nothing(&self, with_causes: bool) -> bool {
        self.words.is_empty() && !(with_causes && self.cause.is_some())
    }
}

/// Its words.
impl Deref for Why {
    type Target = str;

    fn deref(&self) -> &str {
        &self.words
    }
}

impl From<String> for Why {
    fn from(words: String) -> Self {
        Why { words, cause: None }
    }
}

impl From<Cow<'_, str>> for Why {
    fn from(words: Cow<'_, str>) -> Self {
        Why { words: words.into_owned(), cause: None }
    }
}

impl From<&str> for Why {
    fn from(words: &str) -> Self {
        Why { words: words.to_owned(), cause: None }
    }
}

/// The words alone.
impl From<Why> for String {
    fn from(why: Why) -> Self {
        why.words
    }
}

/// By the words: drivers' errors cannot be compared.
impl PartialEq for Why {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

impl Eq for Why {}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)?;
        if !f.alternate() {
            return Ok(());
        }
        let mut before = self.words.clone();
        let mut cause = self.cause();
        for _ in 0..CAUSES {
            let Some(error) = cause else { break };
            // A server's details come on lines of their own, and may hold what stands
            // in a row.
            let said = error.to_string().lines().next().unwrap_or_default().to_owned();
            // Some errors tell their cause themselves: it is not told twice.
            if !before.contains(&said) {
                f.write_str(if before.is_empty() { "" } else { ": " })?;
                f.write_str(&said)?;
            }
            (before, cause) = (said, error.source());
        }
        Ok(())
    }
}

impl fmt::Debug for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            None => fmt::Debug::fmt(&self.words, f),
            Some(cause) => {
                f.debug_struct("Why").field("words", &self.words).field("cause", cause).finish()
            }
        }
    }
}

impl Error for Why {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn full() -> io::Error {
        io::Error::new(io::ErrorKind::StorageFull, "no room\nDETAIL: on the disk")
    }

    #[test]
    fn words_leave_the_cause_to_who_walks_the_chain() {
        let why = Why::from("writing the log").caused_by(full());
        assert_eq!(why.to_string(), "writing the log");
        assert_eq!(format!("{why:#}"), "writing the log: no room");
        let cause = why.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        assert_eq!(cause.map(io::Error::kind), Some(io::ErrorKind::StorageFull));
    }

    #[test]
    fn where_there_are_no_words_the_cause_is_all_that_is_said() {
        let why = Why::from("").caused_by(full());
        assert_eq!((why.to_string().as_str(), format!("{why:#}").as_str()), ("", "no room"));
    }
}
