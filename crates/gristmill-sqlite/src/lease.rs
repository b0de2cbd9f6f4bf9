//! One row a claim: who holds it, until when, and which tasks are still open.

use gristmill_core::{Result, Timestamp, Token};
use rusqlite::{Row as SqlRow, params};

use crate::codec;
use crate::db::Db;
use crate::errors::corrupt;
use crate::sql::Sql;

/// A stored lease.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    pub(crate) number: i64,
    pub(crate) queue: u32,
    pub(crate) worker: String,
    pub(crate) claimed_at: Timestamp,
    pub(crate) until: Timestamp,
    pub(crate) slot: Option<u32>,
    /// Open tasks, in the order they were claimed.
    pub(crate) ids: Vec<i64>,
}

impl Lease {
    pub(crate) fn read(row: &SqlRow<'_>) -> rusqlite::Result<Self> {
        Ok(Lease {
            number: row.get(0)?,
            queue: row.get(1)?,
            worker: row.get(2)?,
            claimed_at: Timestamp::from_micros(row.get(3)?),
            until: Timestamp::from_micros(row.get(4)?),
            slot: row.get(5)?,
            ids: codec::ids(row.get_ref(6)?.as_blob()?),
        })
    }

    /// The lease of that token, while anything is open under it.
    pub(crate) fn load(db: &Db<'_>, token: Token) -> Result<Option<Lease>> {
        db.one(Sql::LeaseByToken, params![token.to_bytes().as_slice()], Lease::read)
    }

    /// Writes which tasks are still open; with none, the lease has ended.
    pub(crate) fn save(&self, db: &Db<'_>) -> Result<()> {
        if self.ids.is_empty() {
            db.run(Sql::LeaseEnd, params![self.number])?;
        } else {
            let open = i64::try_from(self.ids.len()).unwrap_or(i64::MAX);
            let ids = codec::ids_blob(&self.ids);
            db.run(Sql::LeaseShrink, params![self.number, open, ids])?;
        }
        Ok(())
    }
}

/// A token as it is read back.
pub(crate) fn token(stored: &[u8]) -> Result<Token> {
    let bytes: [u8; 16] =
        stored.try_into().map_err(|_| corrupt("a lease's token", "it has not 16 bytes"))?;
    Ok(Token::from_bytes(bytes))
}
