//! How long a call may take, by what it is for. Past it the caller has an
//! answer, and the connection is thrown away: who does not answer once keeps
//! others waiting as well.
//!
//! The server is told, too, with a second more (`statement_timeout`), so that
//! what was given up here does not come true there minutes later, and keeps no
//! locks.

use std::time::Duration;

use gristmill_core::StoreError;
use tokio::time::Instant;

use crate::errors::Intent;
use crate::sql::Sql;

/// How much longer the server goes on with what was given up here.
const GRACE: Duration = Duration::from_secs(1);
/// The least an extension gets, however short its lease is.
const LEAST: Duration = Duration::from_millis(250);

/// How long calls may take, taking and making a connection included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// An extension of leases; never more than a third of the shortest one.
    pub heartbeat: Duration,
    /// A put, a claim, a settlement, and whatever else goes with the flow.
    pub flow: Duration,
    /// Readers, operators' actions and a step of maintenance; also how long a
    /// put waits for somebody else's open transaction.
    pub operator: Duration,
    /// What is long by nature: migrations, imports, a check of every row.
    pub long: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            heartbeat: Duration::from_secs(5),
            flow: Duration::from_secs(10),
            operator: Duration::from_secs(30),
            long: Duration::from_secs(3600),
        }
    }
}

/// What a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Heartbeat,
    Flow,
    Operator,
    Long,
}

impl Class {
    pub(crate) fn of(sql: Sql) -> Self {
        match sql {
            Sql::Extend => Class::Heartbeat,
            Sql::Reclaim
            | Sql::DoChore
            | Sql::CutLeases
            | Sql::CountUndue
            | Sql::Fold
            | Sql::Find
            | Sql::Get
            | Sql::Look
            | Sql::List
            | Sql::Operate
            | Sql::Stats
            | Sql::Minutes
            | Sql::DiagnoseLoad
            | Sql::DiagnoseObjects
            | Sql::DiagnoseSettings
            | Sql::DiagnoseStandbys
            | Sql::DiagnoseSubjects
            | Sql::DiagnoseTables
            | Sql::DiagnoseTransactions => Class::Operator,
            Sql::CheckTasks | Sql::CheckCounts | Sql::CheckPlaces | Sql::Import => Class::Long,
            _ => Class::Flow,
        }
    }
}

impl Timeouts {
    pub(crate) fn of(&self, class: Class) -> Duration {
        match class {
            Class::Heartbeat => self.heartbeat,
            Class::Flow => self.flow,
            Class::Operator => self.operator,
            Class::Long => self.long,
        }
    }

    /// A third of the shortest lease: the next beat comes by then.
    pub(crate) fn of_lease(&self, lease: Duration) -> Duration {
        self.heartbeat.min((lease / 3).max(LEAST))
    }
}

/// When a call must have its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    pub(crate) limit: Duration,
    pub(crate) at: Instant,
    /// How long the server may go on with a statement, in milliseconds.
    pub(crate) at_the_server: u64,
}

impl Deadline {
    pub(crate) fn after(limit: Duration) -> Self {
        Deadline { limit, at: Instant::now() + limit, at_the_server: at_the_server(limit) }
    }

    /// The same, sooner here: at the server it is a statement like its others.
    pub(crate) fn sooner(self, limit: Duration) -> Self {
        let limit = self.limit.min(limit);
        Deadline { limit, at: Instant::now() + limit, ..self }
    }

    pub(crate) fn has_passed(&self) -> bool {
        Instant::now() >= self.at
    }

    /// What is said when nobody answered. What was never sent did not happen.
    pub(crate) fn missed(&self, intent: Intent, sent: bool) -> StoreError {
        let words = format!("no answer within {:?}", self.limit);
        match intent {
            Intent::Write if sent => StoreError::unknown(words),
            _ => StoreError::unavailable(words),
        }
    }
}

/// How long the server may go on with what is given up here after `limit`.
pub(crate) fn at_the_server(limit: Duration) -> u64 {
    let millis = u64::try_from(limit.saturating_add(GRACE).as_millis()).unwrap_or(u64::MAX);
    millis.min(i32::MAX.unsigned_abs().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_has_a_third_of_its_lease() {
        let limits = Timeouts::default();
        assert_eq!(limits.of_lease(Duration::from_secs(60)), Duration::from_secs(5));
        assert_eq!(limits.of_lease(Duration::from_secs(3)), Duration::from_secs(1));
        assert_eq!(limits.of_lease(Duration::from_millis(30)), LEAST);
    }

    #[test]
    fn the_server_goes_on_for_a_second_longer() {
        let deadline = Deadline::after(Duration::from_secs(10));
        assert_eq!(deadline.at_the_server, 11_000);
        assert_eq!(deadline.sooner(Duration::from_secs(2)).at_the_server, 11_000);
        assert_eq!(at_the_server(Duration::MAX), 2_147_483_647);
    }

    #[test]
    fn only_a_write_that_was_sent_is_unknown() {
        let deadline = Deadline::after(Duration::from_secs(10));
        for (intent, sent) in [(Intent::Read, true), (Intent::Read, false), (Intent::Write, false)]
        {
            assert!(matches!(deadline.missed(intent, sent), StoreError::Unavailable(_)));
        }
        assert!(matches!(deadline.missed(Intent::Write, true), StoreError::Unknown(_)));
    }
}
