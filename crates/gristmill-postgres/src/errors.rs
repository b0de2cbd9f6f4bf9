//! What the server or the driver says, by what the caller can do next.

use gristmill_core::StoreError;
use gristmill_core::claim::token_claimed_before;
pub(crate) use gristmill_text::corrupt;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// What a failed statement was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Nothing would have changed.
    Read,
    /// Something may have changed: without an answer the outcome is unknown.
    Write,
}

/// What the server said of a statement, whichever driver brought it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said<'a> {
    pub(crate) words: &'a str,
    pub(crate) code: &'a str,
    pub(crate) constraint: Option<&'a str>,
}

impl<'a> Said<'a> {
    fn of(error: &'a Error) -> Option<Self> {
        let said = error.as_db_error()?;
        let (words, code) = (said.message(), said.code().code());
        Some(Said { words, code, constraint: said.constraint() })
    }

    /// The store's error for it.
    pub(crate) fn fault(self, intent: Intent) -> StoreError {
        let words = self.words.to_owned();
        match self.code {
            "GM400" => return StoreError::Invalid(words),
            "GM409" => return token_claimed_before(),
            // The store asks for the names and suggests one.
            "GM404" => return StoreError::UnknownQueue { name: words, suggestion: None },
            _ => {}
        }
        if self.is_held() {
            return StoreError::Held(words);
        }
        if self.lost_a_race() || self.code == SqlState::QUERY_CANCELED.code() {
            return StoreError::Busy(words);
        }
        match self.code.get(..2) {
            // The server ends this connection: it may have committed before.
            Some("57" | "08") if intent == Intent::Write => StoreError::Unknown(words),
            Some("53") if self.code == SqlState::DISK_FULL.code() => StoreError::DiskFull(words),
            Some("42") if self.code == SqlState::INSUFFICIENT_PRIVILEGE.code() => {
                StoreError::Permission(words)
            }
            // What one connection prepared is there on another one: a pooler lends
            // them out by the transaction.
            Some("42" | "26") if self.is_pooled() => StoreError::Invalid(format!(
                "{words}: a pooler stands in between; say statement_mode=unnamed in the URL"
            )),
            Some("42" | "3F") => StoreError::NotAStore(format!(
                "{words}; the schema is missing or another version: run `gristmill migrate`"
            )),
            Some("23") if self.constraint == Some("lease_pkey") => token_claimed_before(),
            _ => StoreError::Unavailable(format!("{words} ({})", self.code)),
        }
    }

    fn lost_a_race(self) -> bool {
        let lost = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
        self.constraint == Some("lease_slot") || lost.iter().any(|lost| lost.code() == self.code)
    }

    /// A prepared statement that should not be there, or should and is not.
    fn is_pooled(self) -> bool {
        let codes = [SqlState::DUPLICATE_PSTATEMENT, SqlState::INVALID_SQL_STATEMENT_NAME];
        codes.iter().any(|code| code.code() == self.code)
    }

    /// It waited in vain for somebody else's open transaction: trying again at
    /// once would do no better.
    fn is_held(self) -> bool {
        self.code == SqlState::LOCK_NOT_AVAILABLE.code()
    }
}

/// The store's error for the driver's.
pub(crate) fn fault(error: &Error, intent: Intent) -> StoreError {
    match (Said::of(error), intent) {
        (Some(said), _) => said.fault(intent),
        (None, Intent::Read) => StoreError::Unavailable(told(error)),
        (None, Intent::Write) => StoreError::Unknown(told(error)),
    }
}

/// Whether the same transaction would succeed when tried again: it lost a race
/// and nothing of it stands.
pub(crate) fn is_retryable(error: &Error) -> bool {
    Said::of(error).is_some_and(Said::lost_a_race)
}

/// Why a connection could not be made.
pub(crate) fn connecting(error: &Error) -> StoreError {
    if let Some(why) = std::error::Error::source(error).and_then(encrypting) {
        return StoreError::Invalid(why);
    }
    let words = told(error);
    match error.code().map(SqlState::code) {
        Some(code) if code.starts_with("28") || code == "42501" => StoreError::Permission(words),
        Some("3D000") => StoreError::NotAStore(words),
        _ => StoreError::Unavailable(words),
    }
}

/// Why a connection could not be encrypted as the URL asks, which trying again
/// does not change.
fn encrypting(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
    // The driver's own word, which has no type to tell it by.
    if cause.to_string() == "server does not support TLS" {
        let why = "the server does not encrypt, and sslmode asks for it: switch on `ssl` there, \
                   or say sslmode=prefer where the network can be trusted";
        return Some(why.to_owned());
    }
    #[cfg(feature = "tls")]
    return crate::tls::advice(cause);
    #[cfg(not(feature = "tls"))]
    None
}

/// The error and its cause: the driver's own words leave the cause out.
pub(crate) fn told(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pooler that lends connections out by the transaction: what to say in the
    /// URL, and not that the schema is another one.
    #[test]
    fn a_prepared_statement_behind_a_pooler_names_the_remedy() {
        for code in ["42P05", "26000"] {
            let words = "prepared statement \"s0\" already exists";
            let said = Said { words, code, constraint: None };
            let fault = said.fault(Intent::Write);
            let StoreError::Invalid(told) = &fault else { panic!("{fault:?}") };
            assert!(told.contains("statement_mode=unnamed") && told.contains(words), "{told}");
        }
    }
}
