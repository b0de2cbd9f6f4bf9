//! One row a claim: who holds it, until when, and which tasks are still open.

use std::collections::BTreeMap;

use gristmill_core::{ProgressView, Result, TaskProgress, Timestamp, Token};
use rusqlite::Row as SqlRow;

use crate::codec;
use crate::db::Db;
use crate::errors::corrupt;
use crate::sql::{Sql, at, bind};

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
            number: row.get(at!(LeaseByToken.number))?,
            queue: row.get(at!(LeaseByToken.queue))?,
            worker: row.get(at!(LeaseByToken.worker))?,
            claimed_at: Timestamp::from_micros(row.get(at!(LeaseByToken.claimed_at))?),
            until: Timestamp::from_micros(row.get(at!(LeaseByToken.until))?),
            slot: row.get(at!(LeaseByToken.slot))?,
            ids: codec::ids(row.get_ref(at!(LeaseByToken.ids))?.as_blob()?),
        })
    }

    /// The lease of that token, while anything is open under it.
    pub(crate) fn load(db: &Db<'_>, token: Token) -> Result<Option<Lease>> {
        db.one(
            Sql::LeaseByToken,
            bind!(LeaseByToken { token: token.to_bytes().as_slice() }),
            Lease::read,
        )
    }

    /// Writes how far tasks of it are, and forgets those that ended. Only where there is
    /// news: a lease of which nobody says anything costs no more than its deadline.
    pub(crate) fn tell(&self, db: &Db<'_>, news: &[TaskProgress], now: Timestamp) -> Result<()> {
        let stored = db
            .one(Sql::LeaseProgress, bind!(LeaseProgress { number: self.number }), |row| {
                Ok(row
                    .get_ref(at!(LeaseProgress.progress))?
                    .as_str_or_null()
                    .ok()
                    .flatten()
                    .map(str::to_owned))
            })?
            .flatten();
        let mut all = said(stored.as_deref()).0;
        for TaskProgress { id, progress } in news {
            all.insert(id.0, ProgressView { progress: progress.clone(), at: now });
        }
        all.retain(|id, _| self.ids.contains(id));
        let progress =
            (!all.is_empty()).then(|| gristmill_text::progress_text(&all)).transpose()?;
        db.run(Sql::LeaseTell, bind!(LeaseTell { progress, number: self.number }))?;
        Ok(())
    }

    /// Writes which tasks are still open; with none, the lease has ended.
    pub(crate) fn save(&self, db: &Db<'_>) -> Result<()> {
        if self.ids.is_empty() {
            db.run(Sql::LeaseEnd, bind!(LeaseEnd { number: self.number }))?;
        } else {
            let open = i64::try_from(self.ids.len()).unwrap_or(i64::MAX);
            let ids = codec::ids_blob(&self.ids);
            db.run(Sql::LeaseShrink, bind!(LeaseShrink { open, ids, number: self.number }))?;
        }
        Ok(())
    }
}

/// How far a lease's tasks are, as it is stored, and whether all of it can be read.
pub(crate) fn said(stored: Option<&str>) -> (BTreeMap<i64, ProgressView>, bool) {
    stored.map_or_else(|| (BTreeMap::new(), true), gristmill_text::progress_by_task)
}

/// A token as it is read back.
pub(crate) fn token(stored: &[u8]) -> Result<Token> {
    let bytes: [u8; 16] =
        stored.try_into().map_err(|_| corrupt("a lease's token", "it has not 16 bytes"))?;
    Ok(Token::from_bytes(bytes))
}
