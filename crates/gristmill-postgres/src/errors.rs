//! What the server or the driver says, by what the caller can do next.

use gristmill_core::claim::token_claimed_before;
use gristmill_core::{Result, StoreError};
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

/// The store's error for the driver's.
pub(crate) fn fault(error: &Error, intent: Intent) -> StoreError {
    let Some(said) = error.as_db_error() else {
        let words = told(error);
        return match intent {
            Intent::Read => StoreError::Unavailable(words),
            Intent::Write => StoreError::Unknown(words),
        };
    };
    let words = said.message().to_owned();
    let code = said.code();
    match code.code() {
        "GM400" => return StoreError::Invalid(words),
        "GM409" => return token_claimed_before(),
        // The store asks for the names and suggests one.
        "GM404" => return StoreError::UnknownQueue { name: words, suggestion: None },
        _ => {}
    }
    if is_retryable(error) || *code == SqlState::QUERY_CANCELED {
        return StoreError::Busy(words);
    }
    match code.code().get(..2) {
        // The server ends this connection: it may have committed before.
        Some("57" | "08") if intent == Intent::Write => StoreError::Unknown(words),
        Some("53") if *code == SqlState::DISK_FULL => StoreError::DiskFull(words),
        Some("42") if *code == SqlState::INSUFFICIENT_PRIVILEGE => StoreError::Permission(words),
        Some("42" | "3F") => StoreError::NotAStore(format!(
            "{words}; the schema is missing or another version: run `gristmill migrate`"
        )),
        Some("23") if said.constraint() == Some("lease_pkey") => token_claimed_before(),
        _ => StoreError::Unavailable(format!("{words} ({})", code.code())),
    }
}

/// Whether the same transaction would succeed when tried again: it lost a race
/// and nothing of it stands.
pub(crate) fn is_retryable(error: &Error) -> bool {
    let lost = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
    ];
    let slot = error.as_db_error().is_some_and(|e| e.constraint() == Some("lease_slot"));
    slot || error.code().is_some_and(|code| lost.contains(code))
}

/// Why a connection could not be made.
pub(crate) fn connecting(error: &Error) -> StoreError {
    let words = told(error);
    match error.code().map(SqlState::code) {
        Some(code) if code.starts_with("28") || code == "42501" => StoreError::Permission(words),
        Some("3D000") => StoreError::NotAStore(words),
        _ => StoreError::Unavailable(words),
    }
}

/// The error and its cause: the driver's own words leave the cause out.
fn told(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Reads a column, or says that stored data is not what it should be.
pub(crate) fn column<'a, T: tokio_postgres::types::FromSql<'a>>(
    row: &'a tokio_postgres::Row,
    at: usize,
) -> Result<T> {
    row.try_get(at).map_err(|e| corrupt("an answer of the database", told(&e)))
}
