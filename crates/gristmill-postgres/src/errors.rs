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

    /// Whether it is said by the store's own functions, whose words are the error's.
    pub(crate) fn is_ours(self) -> bool {
        self.code.starts_with("GM")
    }

    /// The store's error for it. What was said goes below it, as its cause.
    pub(crate) fn fault(self, intent: Intent) -> StoreError {
        match self.code {
            "GM400" => return StoreError::invalid(self.words),
            "GM409" => return token_claimed_before(),
            // The store asks for the names and suggests one.
            "GM404" => {
                let name = self.words.to_owned();
                return StoreError::UnknownQueue { name, suggestion: None };
            }
            _ => {}
        }
        let words = coded(self.code);
        if self.is_held() {
            return StoreError::held(words);
        }
        if self.lost_a_race() || self.code == SqlState::QUERY_CANCELED.code() {
            return StoreError::busy(words);
        }
        if self.is_read_only() {
            return read_only();
        }
        match self.code.get(..2) {
            // The server ends this connection: it may have committed before.
            Some("57" | "08") if intent == Intent::Write => StoreError::unknown(words),
            _ if self.code == "40003" && intent == Intent::Write => StoreError::unknown(words),
            Some("53") if self.code == SqlState::DISK_FULL.code() => StoreError::disk_full(words),
            _ if self.code == SqlState::INSUFFICIENT_PRIVILEGE.code() => {
                StoreError::permission(words)
            }
            _ if self.lacks_schema() => StoreError::not_a_store(
                "the schema is missing or another version: run `gristmill migrate`",
            ),
            _ if self.lost_statement() => StoreError::invalid(
                "a transaction pooler is between: say statement_mode=unnamed in the URL",
            ),
            Some("23") if self.constraint == Some("lease_pkey") => token_claimed_before(),
            Some("0A") => StoreError::not_supported(words),
            _ if matches!(self.code, "XX001" | "XX002") => StoreError::corrupt(words),
            // The server's troubles, which pass: its connections, its resources,
            // its state, what it was told from outside, its system.
            Some("08" | "25" | "53" | "55" | "57" | "58" | "72") => StoreError::unavailable(words),
            // Ours, or the application's triggers': they stay until somebody
            // looks.
            _ => StoreError::fault(words),
        }
    }

    /// The server takes no writes: a standby, or a primary that was demoted.
    /// It says so before it writes anything.
    fn is_read_only(self) -> bool {
        self.code == SqlState::READ_ONLY_SQL_TRANSACTION.code()
    }

    /// A table, a function, a column or a type that the schema should have.
    fn lacks_schema(self) -> bool {
        matches!(self.code, "3F000" | "42P01" | "42883" | "42703" | "42704")
    }

    /// A statement that was prepared is not there, or another one is.
    fn lost_statement(self) -> bool {
        matches!(self.code, "42P05" | "26000")
    }

    fn lost_a_race(self) -> bool {
        let lost = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
        self.constraint == Some("lease_slot") || lost.iter().any(|lost| lost.code() == self.code)
    }

    /// A key stands already that a put took to be new.
    fn stands_already(self) -> bool {
        self.constraint == Some("task_waiting") && self.code == SqlState::UNIQUE_VIOLATION.code()
    }

    /// It waited in vain for somebody else's open transaction: trying again at
    /// once would do no better.
    fn is_held(self) -> bool {
        self.code == SqlState::LOCK_NOT_AVAILABLE.code()
    }
}

/// The store's error for the driver's.
pub(crate) fn fault(error: Error, intent: Intent) -> StoreError {
    let failed = "the connection to PostgreSQL failed";
    let fault = match (Said::of(&error), intent) {
        (Some(said), _) => said.fault(intent),
        (None, Intent::Read) => StoreError::unavailable(failed),
        (None, Intent::Write) => StoreError::unknown(failed),
    };
    below(fault, error)
}

/// Keeps what the server said, or else what the driver did.
fn below(fault: StoreError, error: Error) -> StoreError {
    match (Said::of(&error), error.as_db_error()) {
        (Some(said), _) if said.is_ours() => fault,
        // Not the driver's own error, which says no more than that there is one.
        (_, Some(said)) => fault.caused_by(said.clone()),
        (_, None) => fault.caused_by(error),
    }
}

/// Which of its errors PostgreSQL gave.
fn coded(code: &str) -> String {
    format!("PostgreSQL says {code}")
}

/// Whether a put failed because a key stands already that it took to be new.
pub(crate) fn stands_already(error: &Error) -> bool {
    Said::of(error).is_some_and(Said::stands_already)
}

/// What an error means for the connection, and for those made before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Means {
    /// The same transaction would succeed when tried again: nothing of it stands.
    LostRace,
    /// What this connection has prepared is out of date; nothing was done.
    StalePlan,
    /// The server takes no writes any more; nothing was done.
    ReadOnly,
    /// The connection is over, and others to the same server may be.
    ServerGone,
    /// Only this connection is not to be used again.
    Unusable,
    /// Nothing.
    Refused,
}

/// What an error means beyond its statement.
pub(crate) fn means(error: &Error) -> Means {
    let Some(said) = Said::of(error) else {
        let cause = std::error::Error::source(error);
        let ended = error.is_closed() || cause.is_some_and(|cause| cause.is::<std::io::Error>());
        // Else the driver could not make sense of something.
        return if ended { Means::ServerGone } else { Means::Unusable };
    };
    // "cached plan must not change result type", in whatever language.
    let routine = error.as_db_error().and_then(tokio_postgres::error::DbError::routine);
    match said.code {
        _ if said.lost_a_race() => Means::LostRace,
        _ if said.is_read_only() => Means::ReadOnly,
        "0A000" if routine == Some("RevalidateCachedQuery") => Means::StalePlan,
        // Somebody cancelled this one statement.
        "57014" => Means::Refused,
        // Idle for too long, alone.
        "57P05" | "25P03" => Means::ServerGone,
        code if code.starts_with("57") || code.starts_with("08") => Means::ServerGone,
        _ => Means::Refused,
    }
}

/// The server takes no writes.
pub(crate) fn read_only() -> StoreError {
    StoreError::unavailable(
        "the server takes no writes: it is a standby, or was demoted (25006)".to_owned(),
    )
}

/// A write stands at the server, and the standbys were not waited for.
pub(crate) fn unsynced() -> StoreError {
    StoreError::unknown(
        "the server was told not to wait for its standbys: it stands there, and a failover may \
         lose it"
            .to_owned(),
    )
}

/// Whether a connection was refused for what was asked of the server at the
/// start, as a pooler does.
pub(crate) fn refuses_options(error: &Error) -> bool {
    matches!(error.code().map(SqlState::code), Some("08P01" | "0A000"))
}

/// Why a connection could not be made.
pub(crate) fn connecting(error: Error) -> StoreError {
    if let Some(why) = std::error::Error::source(&error).and_then(encrypting) {
        // It says what is below it.
        return StoreError::invalid(why);
    }
    let fault = match error.code().map(SqlState::code) {
        Some(code) if code.starts_with("28") || code == "42501" => {
            StoreError::permission(coded(code))
        }
        Some("3D000") => StoreError::not_a_store("there is no such database"),
        Some(code) => StoreError::unavailable(coded(code)),
        None => StoreError::unavailable("no connection was made"),
    };
    below(fault, error)
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
            assert!(told.contains("statement_mode=unnamed"), "{told}");
        }
    }

    fn said(code: &str, intent: Intent) -> StoreError {
        Said { words: "why", code, constraint: None }.fault(intent)
    }

    #[test]
    fn only_what_passes_is_worth_another_try() {
        // Resources, a standby, a start, the system, a wait that was cancelled.
        for code in ["53300", "25006", "25P03", "57P03", "58030", "55000", "40001", "57014"] {
            assert!(said(code, Intent::Read).is_retryable(), "{code}");
        }
        // What the server cannot, its own faults, ours, and the application's.
        for code in
            ["0A000", "XX000", "XX001", "42601", "42804", "22P02", "23514", "P0001", "42P01"]
        {
            for intent in [Intent::Read, Intent::Write] {
                let error = said(code, intent);
                assert!(!error.is_retryable() && error.wrote_nothing(), "{code}: {error}");
            }
        }
    }

    #[test]
    fn an_error_says_what_it_is() {
        assert!(matches!(said("0A000", Intent::Write), StoreError::NotSupported(_)));
        assert!(matches!(said("XX000", Intent::Write), StoreError::Fault(_)));
        assert!(matches!(said("XX002", Intent::Write), StoreError::Corrupt(_)));
        assert!(matches!(said("42601", Intent::Write), StoreError::Fault(_)));
        assert!(matches!(said("42883", Intent::Write), StoreError::NotAStore(_)));
    }

    #[test]
    fn a_write_whose_connection_ends_is_unknown() {
        for code in ["57P01", "57P02", "08006", "40003"] {
            assert!(matches!(said(code, Intent::Write), StoreError::Unknown(_)), "{code}");
        }
        assert!(matches!(said("57P01", Intent::Read), StoreError::Unavailable(_)));
        // It was refused before anything was written.
        assert!(matches!(said("25006", Intent::Write), StoreError::Unavailable(_)));
    }
}
