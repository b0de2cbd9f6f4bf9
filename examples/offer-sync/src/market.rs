//! What the tasks do: read a slice, talk to the market place, write it down.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill::Context;
use gristmill::sqlite::rusqlite::Connection;
use tokio::sync::Barrier;

use crate::db::{self, Mark, Row, Take};
use crate::error::Result;
use crate::out::say;
use crate::record::{self, Begins};
use crate::slice::Slice;

/// How long a batch waits for others before it goes on alone.
const PATIENCE: Duration = Duration::from_secs(10);

/// The shop's tables, and the market place far away.
pub(crate) struct Market {
    db: Mutex<Connection>,
    /// Batches of a kind wait here for each other, so that they run side by side.
    meet: HashMap<&'static str, Barrier>,
    /// How long the market place takes.
    pause: Duration,
}

impl Market {
    pub(crate) fn open(path: &Path, meet: usize, pause: Duration) -> Result<Self> {
        let kinds = ["sync", "check"].into_iter().filter(|_| meet > 1);
        let meet = kinds.map(|kind| (kind, Barrier::new(meet))).collect();
        Ok(Market { db: Mutex::new(db::open(path)?), meet, pause })
    }

    fn db(&self) -> MutexGuard<'_, Connection> {
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tasks that have offers in their hands, but this one.
    pub(crate) fn held(&self, but: i64) -> Result<Vec<i64>> {
        Ok(db::offer_held(&self.db(), but)?)
    }

    /// What this task had in its hands is anybody's again: it is gone.
    pub(crate) fn free(&self, task: i64) -> Result<()> {
        let freed = db::offer_free(&self.db(), task)?;
        Ok(say!("task {task} is gone: the {freed} offers in its hands are free again")?)
    }

    /// Syncs a slice of the offers, whether or not they were synced before.
    pub(crate) async fn sync(&self, run: &Context, slice: Slice) -> Result<()> {
        let take = |db: &Connection| db::offer_slice(db, slice);
        self.batch(run, "sync", Some(slice.number), &take, &db::offers_synced).await
    }

    /// Syncs offers that are not synced yet, of the slot's share first.
    pub(crate) async fn sync_due(&self, run: &Context, slice: Slice, shares: u32) -> Result<()> {
        let task = run.id.0;
        let take = |db: &Connection| db::offer_take(db, task, slice, shares);
        let mark = |db: &Connection, rows: &[Row]| db::offers_marked(db, task, rows);
        self.batch(run, "sync", Some(slice.number), &take, &mark).await
    }

    /// Looks at a slice of the processes.
    pub(crate) async fn check(&self, run: &Context, slice: Slice) -> Result<()> {
        let take = |db: &Connection| db::process_slice(db, slice);
        self.batch(run, "check", Some(slice.number), &take, &db::processes_checked).await
    }

    /// Writes the listed offers.
    pub(crate) async fn upsert(&self, run: &Context, offers: Vec<(i64, i64)>) -> Result<()> {
        let row = |(ean, _): &(i64, i64)| Row { number: *ean, version: None };
        let take = |_: &Connection| Ok(offers.iter().map(row).collect());
        let write = |db: &Connection, _: &[Row]| db::upsert(db, &offers);
        self.batch(run, "upsert", None, &take, &write).await
    }

    async fn batch(
        &self,
        run: &Context,
        kind: &'static str,
        number: Option<u32>,
        take: Take<'_>,
        mark: Mark<'_>,
    ) -> Result<()> {
        let begins = Begins { task: run.id.0, worker: run.worker.as_str(), kind, number };
        let (entry, rows) = record::begin(&mut self.db(), &begins, take)?;
        let slot = number.map_or_else(String::new, |number| format!(" {number}"));
        say!("{kind}{slot}: task {} has {} rows", run.id, rows.len())?;
        if let Some(meet) = self.meet.get(kind) {
            // Who comes last may be alone: then it goes on by itself.
            let _ = tokio::time::timeout(PATIENCE, meet.wait()).await;
        }
        tokio::time::sleep(self.pause).await;
        let marked = record::end(&mut self.db(), entry, &rows, mark)?;
        Ok(say!("{kind}{slot}: task {} wrote {marked} rows", run.id)?)
    }
}
