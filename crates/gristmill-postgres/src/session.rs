//! What a new connection is asked first, and how its transactions are begun.
//!
//! A statement by itself is a transaction as the server's defaults have it. Where
//! those are not ours, BEGIN and COMMIT are sent around it at once: no more
//! waiting, and nothing that outlives the transaction, which a pooler would hand
//! to somebody else.

use std::time::Duration;

use gristmill_core::Result;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::deadline::{Deadline, at_the_server};
use crate::errors::{Intent, fault};

/// What a session does by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Session {
    /// A statement by itself would be a stricter transaction than ours.
    is_strict: bool,
    /// How long it lets a statement go on, in milliseconds.
    limit: Option<u64>,
    /// It takes no writes: a standby, or a primary that was demoted.
    pub(crate) is_read_only: bool,
    /// A plan that is kept uses indexes, also when it was made for an empty table.
    pub(crate) keeps_to_indexes: bool,
}

/// What a server is asked to do for a connection, as it is made: to end what was
/// given up here, to notice by itself when this machine is gone, and to plan for
/// tables that will not stay empty. (It takes a plan without an index for so costly
/// that it would compile it, too.)
pub(crate) fn startup(limit: Duration) -> String {
    let limit = at_the_server(limit);
    format!(
        "-c statement_timeout={limit} -c idle_in_transaction_session_timeout={limit} \
         -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 \
         -c tcp_user_timeout=15000 -c enable_seqscan=off -c jit=off"
    )
}

const LOOK: &str = "SHOW default_transaction_isolation; SHOW statement_timeout; SHOW transaction_read_only; \
     SHOW enable_seqscan";

/// Asks a new connection what it does by default.
pub(crate) async fn look(client: &Client) -> Result<Session> {
    let said = client.simple_query(LOOK).await.map_err(|e| fault(e, Intent::Read))?;
    let mut rows = said.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default()),
        _ => None,
    });
    let mut next = || rows.next().unwrap_or_default();
    let (level, limit, read_only, scans) = (next(), next(), next(), next());
    // "read uncommitted" is the same in PostgreSQL.
    Ok(Session {
        is_strict: !level.starts_with("read "),
        limit: millis(limit),
        is_read_only: read_only == "on",
        keeps_to_indexes: scans == "off",
    })
}

impl Session {
    /// Whether a statement by itself is what we want.
    pub(crate) fn suits(self, deadline: &Deadline) -> bool {
        !self.is_strict && self.limit == Some(deadline.at_the_server)
    }
}

/// Begins a transaction as our statements are written for: who waited for a lock
/// sees what its holder did. A database or role may have stricter ones as its
/// default, in which he would be told to try again instead.
pub(crate) fn begin(deadline: &Deadline) -> String {
    let limit = deadline.at_the_server;
    format!("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = {limit}")
}

/// The same for several statements: who is frozen between two of them keeps its
/// locks no longer. And whether it can write at all.
pub(crate) fn begin_several(deadline: &Deadline) -> String {
    let (begin, limit) = (begin(deadline), deadline.at_the_server);
    format!(
        "{begin}; SET LOCAL idle_in_transaction_session_timeout = {limit}; \
         SHOW transaction_read_only"
    )
}

/// A time as the server writes it; nothing for none.
fn millis(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok().map(|number| number.saturating_mul(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_times_are_read() {
        let texts = ["0", "250ms", "11s", "2min", "1h", "3d", "", "soon"];
        let read = texts.map(millis);
        let wanted =
            [None, Some(250), Some(11_000), Some(120_000), Some(3_600_000), Some(259_200_000)];
        assert_eq!(read[..6], wanted);
        assert_eq!(read[6..], [None, None]);
    }

    #[test]
    fn a_statement_goes_by_itself_where_the_session_has_its_limit() {
        let session = |limit, is_strict| Session {
            is_strict,
            limit,
            is_read_only: false,
            keeps_to_indexes: true,
        };
        let deadline = Deadline::after(Duration::from_secs(10));
        assert!(session(Some(11_000), false).suits(&deadline));
        assert!(!session(Some(6_000), false).suits(&deadline));
        assert!(!session(None, false).suits(&deadline));
        assert!(!session(Some(11_000), true).suits(&deadline));
    }
}
