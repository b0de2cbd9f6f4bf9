//! Looking everything over: can each row be read, and do the parts agree?
//!
//! Slow on purpose: it counts rows, which nothing else here does. For tests and
//! for an operator.

use std::time::Duration;

use gristmill_core::{DocumentList, Result, TaskId};
use gristmill_text::{ASSIGNMENTS, ROLES, WORKERS, check_document};
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::answer::column;
use crate::codec;
use crate::schedules;
use crate::sql::{Sql, at};
use crate::store::Inner;

/// Tasks in one step of the walk.
const PAGE: usize = 1_000;
/// What a sweep puts right by itself it has found by then.
const SWEPT: Duration = Duration::from_millis(1_500);

/// Something that is not as it must be, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding(pub String);

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl PostgresStore {
    /// Looks everything over; nothing found is the good answer. Others may go
    /// on working meanwhile.
    ///
    /// # Errors
    /// When the database cannot be read at all.
    pub async fn check(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        self.inner.check_declared(&mut findings).await?;
        self.inner.check_tasks(&mut findings).await?;
        self.inner.check_counts(&mut findings).await?;
        self.inner.check_places(&mut findings).await?;
        Ok(findings)
    }
}

impl Inner {
    /// Queues, schedules, roles, workers and the manager's word: can each be read?
    async fn check_declared(&self, findings: &mut Vec<Finding>) -> Result<()> {
        for row in &self.pool.read(Sql::QueueAll, &[]).await? {
            let name = column::<&str>(row, at!(QueueAll.name))?;
            note(findings, format_args!("queue '{name}'"), codec::queue(row));
        }
        for row in &self.pool.read(Sql::ScheduleAll, &[]).await? {
            let name = column::<&str>(row, at!(ScheduleAll.name))?;
            note(findings, format_args!("schedule '{name}'"), schedules::schedule(row));
        }
        for kind in [ROLES, WORKERS, ASSIGNMENTS] {
            let mut list = DocumentList { kind: kind.to_owned(), after: None, limit: PAGE };
            loop {
                let page = self.documents(&list).await?;
                for one in &page {
                    note(findings, format_args!("{kind} '{}'", one.name), check_document(one));
                }
                list.after = page.last().map(|last| last.name.clone());
                if page.len() < list.page() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Every task, a page at a time: can it be read?
    async fn check_tasks(&self, findings: &mut Vec<Finding>) -> Result<()> {
        let mut after = i64::MIN;
        loop {
            let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
            let rows = self.pool.read(Sql::CheckTasks, &[&after, &limit]).await?;
            for row in &rows {
                after = column(row, at!(CheckTasks.id))?;
                for fault in faults(row)? {
                    findings.push(Finding(format!("task {}: {fault}", TaskId(after))));
                }
            }
            if rows.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// The kept counts against what they count.
    async fn check_counts(&self, findings: &mut Vec<Finding>) -> Result<()> {
        let names = ["ready", "delayed", "blocked", "processing", "failed", "done"];
        for row in &self.pool.read(Sql::CheckCounts, &[]).await? {
            let queue: &str = column(row, at!(CheckCounts.queue))?;
            if !column::<bool>(row, at!(CheckCounts.is_kept))? {
                findings.push(Finding(format!("queue '{queue}' keeps no counts")));
                continue;
            }
            let (kept, counted): (Vec<i64>, Vec<i64>) =
                (column(row, at!(CheckCounts.kept))?, column(row, at!(CheckCounts.counted))?);
            for (name, (kept, counted)) in names.iter().zip(kept.into_iter().zip(counted)) {
                if kept != counted {
                    findings.push(Finding(format!(
                        "queue '{queue}' keeps {kept} {name} tasks in its counts and has {counted}"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Tasks against the places they hold. A missed un-blocking is nothing
    /// wrong while somebody sweeps: only what is still so a moment later is told.
    async fn check_places(&self, findings: &mut Vec<Finding>) -> Result<()> {
        let first = self.misfits().await?;
        if first.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(SWEPT).await;
        let still = self.misfits().await?;
        findings.extend(still.into_iter().filter(|finding| first.contains(finding)));
        Ok(())
    }

    async fn misfits(&self) -> Result<Vec<Finding>> {
        let rows = self.pool.read(Sql::CheckPlaces, &[]).await?;
        let finding = |row: &Row| {
            let (id, why): (i64, &str) =
                (column(row, at!(CheckPlaces.id))?, column(row, at!(CheckPlaces.why))?);
            Ok(Finding(format!("task {}: {why}", TaskId(id))))
        };
        rows.iter().map(finding).collect()
    }
}

/// What is wrong with a row of `check_tasks` (`check.sql`).
fn faults(row: &Row) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    match column::<Option<&str>>(row, at!(CheckTasks.queue))? {
        None => {
            let number: Option<i32> = column(row, at!(CheckTasks.number))?;
            let number = number.map_or_else(|| "no number".to_owned(), |n| n.to_string());
            faults.push(format!("its queue ({number}) does not exist, and no list shows it"));
        }
        Some(name) => faults.extend(codec::queue_name(name).err().map(|error| error.whole())),
    }
    match column::<Option<i16>>(row, at!(CheckTasks.encoding))? {
        None => faults.push("its encoding is missing".to_owned()),
        Some(encoding) => faults.extend(codec::encoding(encoding).fault),
    }
    faults.extend(codec::history(column(row, at!(CheckTasks.history))?).fault);
    faults.extend(codec::headers(column(row, at!(CheckTasks.headers))?).fault);
    faults.extend(codec::task_settings(column(row, at!(CheckTasks.settings))?).fault);
    let progress: Option<&str> = column(row, at!(CheckTasks.progress))?;
    if progress.is_some_and(|said| gristmill_text::progress::<String>(said).is_none()) {
        faults.push("how far it is cannot be read, and is not shown".to_owned());
    }
    if column(row, at!(CheckTasks.is_torn))? {
        faults.push("a part that every task has is missing".to_owned());
    }
    Ok(faults)
}

fn note<T>(findings: &mut Vec<Finding>, whose: std::fmt::Arguments<'_>, read: Result<T>) {
    findings.extend(read.err().map(|error| Finding(format!("{whose}: {error:#}"))));
}
