//! What the tasks do: read a slice, talk to the market place, write it down.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill::TaskId;
use gristmill::sqlite::rusqlite::{self, Connection};
use tokio::sync::Barrier;

use crate::db::{self, Began};
use crate::error::Result;
use crate::slice::Slice;

/// How long a batch waits for others before it goes on alone.
const PATIENCE: Duration = Duration::from_secs(10);

/// The shop's tables, and the market place far away.
pub(crate) struct Market {
    db: Mutex<Connection>,
    /// Batches wait here for each other, so that they run side by side.
    meet: Option<Barrier>,
    /// How long the market place takes.
    pause: Duration,
}

impl Market {
    pub(crate) fn open(path: &Path, meet: usize, pause: Duration) -> Result<Self> {
        let meet = (meet > 1).then(|| Barrier::new(meet));
        Ok(Market { db: Mutex::new(db::open(path)?), meet, pause })
    }

    fn db(&self) -> MutexGuard<'_, Connection> {
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs a slice of the offers; with shares, of those not synced yet.
    pub(crate) async fn sync(&self, task: TaskId, slice: Slice, share: Option<u32>) -> Result<()> {
        let eans = match share {
            None => db::offer_slice(&self.db(), slice)?,
            Some(shares) => db::offer_share(&self.db(), slice, shares)?,
        };
        self.batch(task, "sync", Some(slice.number), &eans, db::offers_synced).await
    }

    /// Looks at a slice of the processes.
    pub(crate) async fn check(&self, task: TaskId, slice: Slice) -> Result<()> {
        let ids = db::process_slice(&self.db(), slice)?;
        self.batch(task, "check", Some(slice.number), &ids, db::processes_checked).await
    }

    /// Writes the listed offers.
    pub(crate) async fn upsert(&self, task: TaskId, offers: Vec<(i64, i64)>) -> Result<()> {
        let eans: Vec<i64> = offers.iter().map(|(ean, _)| *ean).collect();
        self.batch(task, "upsert", None, &eans, move |db, _| db::upsert(db, &offers)).await
    }

    async fn batch(
        &self,
        task: TaskId,
        kind: &str,
        number: Option<u32>,
        rows: &[i64],
        write: impl FnOnce(&mut Connection, &[i64]) -> rusqlite::Result<()>,
    ) -> Result<()> {
        let began = Began { task: task.0, kind, number, rows };
        let slice = db::slice_begin(&self.db(), &began)?;
        if let Some(meet) = &self.meet {
            // Who comes last may be alone: then it goes on by itself.
            let _ = tokio::time::timeout(PATIENCE, meet.wait()).await;
        }
        tokio::time::sleep(self.pause).await;
        let mut db = self.db();
        write(&mut db, rows)?;
        db::slice_end(&db, slice)?;
        Ok(())
    }
}
