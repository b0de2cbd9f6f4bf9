//! Looking the whole file over: is it sound, and do its parts agree?
//!
//! Slow on purpose: it counts rows, which nothing else here does. For tests
//! and for a doctor.

use std::collections::HashMap;

use gristmill_core::{Encoding, Result, StoreError, Timestamp};

use crate::SqliteStore;
use crate::checkpoint;
use crate::checksum;
use crate::db::Db;
use crate::endings;
use crate::errors::{corrupt, fault};
use crate::lease::{self, Lease};
use crate::row::Row;
use crate::sql::{Sql, at, bind};
use crate::stats::{self, Counts};
use crate::subject;

/// Tasks looked at in one go.
const PAGE: i64 = 1_000;

/// Something that is not as it must be, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding(pub String);

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl SqliteStore {
    /// Looks the file over; nothing found is the good answer.
    ///
    /// # Errors
    /// When the file cannot be read at all.
    pub async fn check(&self) -> Result<Vec<Finding>> {
        let now = self.clock.now();
        self.read(move |db, _| check(db, now)).await
    }
}

fn check(db: &Db<'_>, now: Timestamp) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    file(db, &mut findings)?;
    if !schema(db, &mut findings)? {
        // What is left cannot be compared with what is not there.
        return Ok(findings);
    }
    values(db, &mut findings)?;
    counts(db, &mut findings)?;
    tasks(db, &mut findings)?;
    rows(db, &mut findings)?;
    leases(db, now, &mut findings)?;
    endings::check(db, &mut findings)?;
    for queue in stats::queues(db)? {
        if let Some(bind) = &queue.settings.bind {
            let name = &queue.name;
            if !subject::table_exists(db, &bind.table)? {
                findings.push(Finding(format!(
                    "queue '{name}' is bound to table {}, which does not exist",
                    bind.table
                )));
            } else if !subject::is_bound(db, &queue)? {
                findings.push(Finding(format!(
                    "queue '{name}' is bound to table {}, which lacks its triggers",
                    bind.table
                )));
            }
        }
    }
    Ok(findings)
}

fn file(db: &Db<'_>, findings: &mut Vec<Finding>) -> Result<()> {
    let said: Vec<String> = db
        .conn()
        .prepare("PRAGMA integrity_check")
        .and_then(|mut statement| statement.query_map([], |row| row.get(0))?.collect())
        .map_err(fault)?;
    findings.extend(
        said.into_iter()
            .filter(|line| line != "ok")
            .map(|line| Finding(format!("the file is damaged: {line}"))),
    );
    Ok(())
}

/// Compares the tables, indexes and views with those of a new store. Returns
/// whether all are there.
fn schema(db: &Db<'_>, findings: &mut Vec<Finding>) -> Result<bool> {
    let parts = |db: &Db<'_>| {
        db.all(Sql::CheckSchema, [], |row| {
            let (kind, name): (String, String) =
                (row.get(at!(CheckSchema.type))?, row.get(at!(CheckSchema.name))?);
            Ok((format!("{kind} {name}"), row.get::<_, String>(at!(CheckSchema.sql))?))
        })
    };
    let found: HashMap<String, String> = parts(db)?.into_iter().collect();
    let anew = crate::migration::anew()?;
    let mut whole = true;
    for (part, made) in parts(&Db::guest(&anew))? {
        match found.get(&part) {
            Some(text) if *text == made => {}
            Some(_) => findings.push(Finding(format!("{part} is not as it was made"))),
            None => {
                whole = false;
                findings.push(Finding(format!("{part} is missing")));
            }
        }
    }
    Ok(whole)
}

/// The values that every store has.
fn values(db: &Db<'_>, findings: &mut Vec<Finding>) -> Result<()> {
    for value in ["store_id", "settings"] {
        if !db.any(Sql::MetaGet, bind!(MetaGet { key: value }))? {
            findings.push(Finding(format!("the store's value {value} is missing")));
        }
    }
    Ok(())
}

/// Every task can be read: one that cannot is told of by its number.
fn rows(db: &Db<'_>, findings: &mut Vec<Finding>) -> Result<()> {
    let mut after = i64::MIN;
    loop {
        // By number first: a row that cannot be read must not hide the others.
        let page: Vec<i64> =
            db.all(Sql::ListOldest, bind!(ListOldest { from: after, limit: PAGE }), |row| {
                row.get(at!(ListOldest.id))
            })?;
        let Some(last) = page.last() else { return Ok(()) };
        after = *last;
        for id in page {
            let looked = Row::load(db, id).and_then(|row| match row {
                Some(row) => payload(db, id, row.readable()?),
                None => Ok(()),
            });
            if let Err(error) = looked {
                let why = match error {
                    StoreError::Corrupt(why) => format!("{why:#}"),
                    other => other.whole(),
                };
                findings.push(Finding(format!("task {id}: {why}")));
            }
        }
    }
}

fn payload(db: &Db<'_>, id: i64, encoding: Encoding) -> Result<()> {
    let fits = db.one(Sql::TaskPayload, bind!(TaskPayload { id }), |row| {
        let payload = row.get_ref(at!(TaskPayload.payload))?.as_blob().unwrap_or_default();
        let sum: Option<i64> = row.get(at!(TaskPayload.checksum))?;
        let torn = checkpoint::read(row.get(at!(TaskPayload.checkpoint))?).1;
        Ok((sum.is_none_or(|sum| checksum::of(encoding, payload) == sum), torn))
    })?;
    match fits {
        Some((_, Some(torn))) => Err(StoreError::corrupt(torn)),
        Some((false, _)) => Err(corrupt("the payload", "it does not fit its checksum")),
        _ => Ok(()),
    }
}

fn counts(db: &Db<'_>, findings: &mut Vec<Finding>) -> Result<()> {
    let kept = db.all(Sql::CountAll, [], Counts::read)?;
    let counted = db.all(Sql::CheckCounts, [], |row| {
        let mut counts = [0u64; 6];
        for (column, count) in (1usize..).zip(&mut counts) {
            *count = crate::delta::unsigned(row.get(column)?);
        }
        Ok((row.get::<_, u32>(at!(CheckCounts.number))?, counts))
    })?;
    let names = ["ready", "delayed", "blocked", "processing", "failed", "done"];
    for (queue, counted) in counted {
        let kept = kept.iter().find(|kept| kept.queue == queue);
        let kept = kept.map_or([0; 6], |kept| kept.standing);
        for (name, (kept, counted)) in names.iter().zip(kept.into_iter().zip(counted)) {
            if kept != counted {
                findings.push(Finding(format!(
                    "queue {queue} keeps {kept} {name} tasks in its counts and has {counted}"
                )));
            }
        }
    }
    Ok(())
}

fn tasks(db: &Db<'_>, findings: &mut Vec<Finding>) -> Result<()> {
    let wrong = db.all(Sql::CheckTasks, [], |row| {
        Ok((row.get::<_, i64>(at!(CheckTasks.id))?, row.get::<_, String>(at!(CheckTasks.why))?))
    })?;
    findings.extend(wrong.into_iter().map(|(id, why)| Finding(format!("task {id}: {why}"))));
    Ok(())
}

/// Every processing task is open under exactly one lease, and nothing else is
/// (but tasks that went with their subject).
fn leases(db: &Db<'_>, now: Timestamp, findings: &mut Vec<Finding>) -> Result<()> {
    for (open, bytes) in db.all(Sql::CheckLeases, [], |row| {
        Ok((row.get::<_, i64>(at!(CheckLeases.open))?, row.get::<_, i64>(at!(CheckLeases.bytes))?))
    })? {
        findings
            .push(Finding(format!("a lease says {open} tasks are open and names {}", bytes / 8)));
    }
    let mut open: HashMap<i64, u32> = HashMap::new();
    for (lease, is_said) in db.all(Sql::LeaseAll, [], |row| {
        let progress = row.get_ref(at!(LeaseAll.progress))?.as_str_or_null();
        Ok((Lease::read(row)?, progress.is_ok_and(|progress| lease::said(progress).1)))
    })? {
        if !is_said {
            findings.push(Finding(format!(
                "how far the tasks of a lease of worker {} are cannot be read, and is not shown",
                lease.worker
            )));
        }
        if lease.claimed_at > now.after(std::time::Duration::from_secs(60)) {
            findings.push(Finding(format!(
                "a lease of worker {} was claimed in the future: a clock was wrong",
                lease.worker
            )));
        }
        for id in lease.ids {
            *open.entry(id).or_default() += 1;
        }
    }
    for id in db.all(Sql::CheckProcessing, [], |row| row.get::<_, i64>(at!(CheckProcessing.id)))? {
        match open.remove(&id) {
            Some(1) => {}
            Some(n) => findings.push(Finding(format!("task {id} is open under {n} leases"))),
            None => findings.push(Finding(format!(
                "task {id} is neither pending nor failed, and no lease holds it"
            ))),
        }
    }
    for id in open.into_keys() {
        if db.any(Sql::TaskCancelAsked, bind!(TaskCancelAsked { id }))? {
            findings
                .push(Finding(format!("task {id} is open under a lease and is not processing")));
        }
    }
    Ok(())
}
