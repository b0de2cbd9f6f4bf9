//! How a command can end badly: one sentence for people, one word for
//! programs, and the exit code scripts rely on.

use std::fmt;

use gristmill::StoreError;
use gristmill::port::NameError;
use serde_json::json;

use crate::secret::hidden;
use crate::stderr;

/// What the process ends with. Documented in `docs/cli.md` and `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Something else went wrong.
    Wrong,
    /// The command line or the configuration cannot be understood.
    Usage,
    /// A task was not taken, or what was named is not there.
    Refused,
    /// The store is busy or away; the same command may succeed later.
    Unavailable,
    /// The store cannot be used as it is; somebody has to look.
    Unusable,
    /// The time to wait for a task's end is up.
    TimeUp,
    /// A task's program ended with this.
    Handler(u8),
    /// A signal ended it before its work was done.
    Interrupted,
    /// Nobody reads our output any more.
    PipeClosed,
}

impl Exit {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Exit::Wrong => 1,
            Exit::Usage => 2,
            Exit::Refused => 3,
            Exit::Unavailable => 4,
            Exit::Unusable => 5,
            Exit::TimeUp => 75,
            Exit::Handler(status) => status,
            Exit::Interrupted => 130,
            // What a shell reports of a program that SIGPIPE ended.
            Exit::PipeClosed => 141,
        }
    }
}

/// Why a command did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// Stable, for programs.
    pub(crate) code: &'static str,
    /// One sentence, for people; may change.
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Failure { exit, code, message: message.into() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::new(Exit::Usage, "usage", message)
    }

    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Failure::new(Exit::Interrupted, "interrupted", message)
    }

    /// The operating system said no to something that is not the store.
    pub(crate) fn io(what: &str, error: &std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Failure::new(Exit::PipeClosed, "pipe_closed", "");
        }
        Failure::new(Exit::Wrong, "io", format!("{what}: {error}"))
    }

    /// Says it on standard error, as text or as one line of JSON.
    pub(crate) fn report(&self, as_json: bool) {
        if self.exit == Exit::PipeClosed {
            return;
        }
        // What was typed in a wrong place may be a URL with a password.
        let message = hidden(&self.message);
        if as_json {
            stderr::plain(json!({ "error": { "code": self.code, "message": message } }));
        } else {
            stderr::say(format_args!("gristmill: {message}"));
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let said = error.whole();
        let (exit, code, message) = match &error {
            StoreError::Busy(_) => (Exit::Unavailable, "store_busy", said),
            StoreError::Held(_) => (Exit::Unavailable, "store_held", said),
            StoreError::Unavailable(_) => {
                (Exit::Unavailable, "store_unavailable", format!("{said}; try again later"))
            }
            StoreError::DiskFull(_) => {
                (Exit::Unavailable, "disk_full", format!("{said}; make room and try again"))
            }
            StoreError::Unknown(_) => (
                Exit::Wrong,
                "outcome_unknown",
                format!("{said}; look with 'gristmill list' before you repeat it"),
            ),
            StoreError::Invalid(_) => (Exit::Usage, "invalid", said),
            StoreError::UnknownQueue { name, .. } => (
                Exit::Refused,
                "unknown_queue",
                // The sentence may end in a question already.
                if said.ends_with('?') {
                    said
                } else {
                    format!("{said}; declare it with 'gristmill queue add {name}'")
                },
            ),
            StoreError::NotAStore(_) => {
                (Exit::Unusable, "not_a_store", format!("{said}; name another with --store"))
            }
            StoreError::Fault(_) => (Exit::Unusable, "store_fault", said),
            StoreError::NewerSchema { .. } => (Exit::Unusable, "newer_schema", said),
            // A service has said already whose permission it is about.
            StoreError::Permission(_) if std::error::Error::source(&error).is_none() => {
                (Exit::Unusable, "no_permission", said)
            }
            StoreError::Permission(_) => (
                Exit::Unusable,
                "no_permission",
                format!(
                    "{said}; check the path, and who may read and write the file and its folder"
                ),
            ),
            StoreError::Corrupt(_) => (
                Exit::Unusable,
                "damaged",
                format!("{said}; run 'gristmill check' and restore a backup"),
            ),
            StoreError::NotSupported(_) => (Exit::Wrong, "not_supported", said),
            _ => (Exit::Wrong, "wrong", said),
        };
        Failure { exit, code, message }
    }
}

impl From<gristmill::Error> for Failure {
    fn from(error: gristmill::Error) -> Self {
        match error {
            gristmill::Error::Store(error) => error.into(),
            gristmill::Error::Name(error) => error.into(),
            gristmill::Error::Url(error) => Failure::usage(error.to_string()),
            error @ gristmill::Error::Contract { .. } => {
                Failure::new(Exit::Refused, "contract", error.to_string())
            }
            other => Failure::new(Exit::Wrong, "wrong", other.whole()),
        }
    }
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Self {
        Failure::usage(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_repeated_has_a_code_of_its_own() {
        for error in [
            StoreError::busy("x".to_owned()),
            StoreError::held("x".to_owned()),
            StoreError::unavailable("x".to_owned()),
            StoreError::disk_full("x".to_owned()),
        ] {
            assert!(error.is_retryable());
            assert_eq!(Failure::from(error).exit, Exit::Unavailable);
        }
        let unknown = Failure::from(StoreError::unknown("x".to_owned()));
        assert_eq!((unknown.exit.code(), unknown.code), (1, "outcome_unknown"));
    }

    #[test]
    fn an_unknown_queue_says_what_to_do() {
        let name = "emial".to_owned();
        let lost = StoreError::UnknownQueue { name: name.clone(), suggestion: None };
        assert!(Failure::from(lost).message.contains("queue add emial"));
        let near = StoreError::UnknownQueue { name, suggestion: Some("email".to_owned()) };
        assert!(Failure::from(near).message.ends_with("did you mean 'email'?"));
    }
}
