//! Roles, workers and the manager's word.

use std::time::Duration;

use gristmill_core::assignment::MANAGER;
use gristmill_core::{
    Assignment, HandlerStats, Leadership, ProcessorReport, Published, Result, Share, Timestamp,
    WorkerId, WorkerReport, WorkerView,
};
use serde::{Deserialize, Serialize};

use crate::codec;
use crate::errors::column;
use crate::sql::Sql;
use crate::store::Inner;
use crate::wire::At;

#[derive(Serialize, Deserialize)]
struct ReportText {
    id: String,
    host: String,
    pid: u32,
    version: String,
    queues: Vec<String>,
    processors: Vec<ProcessorText>,
    handled: Vec<HandledText>,
    follows_term: Option<u64>,
    stopping: bool,
}

#[derive(Serialize, Deserialize)]
struct ProcessorText {
    queue: Option<String>,
    holding: u32,
    cycle: u64,
}

#[derive(Serialize, Deserialize)]
struct HandledText {
    queue: String,
    processed: u64,
    errors: u64,
    retried: u64,
    duration: u64,
    last_error: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct ShareText {
    worker: String,
    queue: String,
    processors: u32,
}

fn report_text(report: &WorkerReport) -> Result<String> {
    codec::text(&ReportText {
        id: report.id.to_string(),
        host: report.host.clone(),
        pid: report.pid,
        version: report.version.clone(),
        queues: report.queues.iter().map(ToString::to_string).collect(),
        processors: report
            .processors
            .iter()
            .map(|processor| ProcessorText {
                queue: processor.queue.as_ref().map(ToString::to_string),
                holding: processor.holding,
                cycle: codec::micros(processor.cycle),
            })
            .collect(),
        handled: report
            .handled
            .iter()
            .map(|(queue, stats)| HandledText {
                queue: queue.to_string(),
                processed: stats.processed,
                errors: stats.errors,
                retried: stats.retried,
                duration: codec::micros(stats.duration),
                last_error: stats.last_error.clone(),
            })
            .collect(),
        follows_term: report.follows_term,
        stopping: report.stopping,
    })
}

fn report(stored: &str) -> Result<WorkerReport> {
    let text: ReportText = codec::parse("a worker's report", stored)?;
    Ok(WorkerReport {
        id: codec::worker_id(&text.id)?,
        host: text.host,
        pid: text.pid,
        version: text.version,
        queues: text.queues.iter().map(|queue| codec::queue_name(queue)).collect::<Result<_>>()?,
        processors: text
            .processors
            .into_iter()
            .map(|processor| {
                let queue = processor.queue.as_deref().map(codec::queue_name);
                Ok(ProcessorReport {
                    queue: queue.transpose()?,
                    holding: processor.holding,
                    cycle: Duration::from_micros(processor.cycle),
                })
            })
            .collect::<Result<_>>()?,
        handled: text
            .handled
            .into_iter()
            .map(|handled| {
                let stats = HandlerStats {
                    processed: handled.processed,
                    errors: handled.errors,
                    retried: handled.retried,
                    duration: Duration::from_micros(handled.duration),
                    last_error: handled.last_error,
                };
                Ok((codec::queue_name(&handled.queue)?, stats))
            })
            .collect::<Result<_>>()?,
        follows_term: text.follows_term,
        stopping: text.stopping,
    })
}

impl Inner {
    /// Asks for a role, or renews it.
    pub(crate) async fn campaign(
        &self,
        role: &str,
        who: &WorkerId,
        hold: Duration,
    ) -> Result<Leadership> {
        let mut connection = self.pool.take().await?;
        connection.begin().await?;
        connection.run(Sql::RoleEnsure, &[&role, &At(Timestamp::EPOCH)]).await?;
        let now = self.time(&mut connection).await?;
        let held = held(&connection.run(Sql::RoleGet, &[&role]).await?)?;
        let term = match held {
            Some(held) if held.until > now && held.leader == who.as_str() => held.term,
            Some(held) if held.until > now => {
                connection.roll_back().await?;
                return Ok(Leadership {
                    leader: codec::worker_id(&held.leader)?,
                    term: held.term,
                    remaining: held.until.since(now),
                    mine: false,
                });
            }
            // A holder that let its time run out begins a new term: somebody
            // else may have led in between.
            Some(held) => held.term + 1,
            None => 1,
        };
        let until = At(now.after(hold));
        connection.run(Sql::RoleSave, &[&role, &who.as_str(), &signed(term), &until]).await?;
        connection.commit().await?;
        Ok(Leadership { leader: who.clone(), term, remaining: hold, mine: true })
    }

    /// Gives a role up; its term stays on record.
    pub(crate) async fn resign(&self, role: &str, who: &WorkerId) -> Result<bool> {
        let mut connection = self.pool.take().await?;
        connection.begin().await?;
        let now = self.time(&mut connection).await?;
        let held = held(&connection.run(Sql::RoleGet, &[&role]).await?)?;
        let mine = held.filter(|held| held.leader == who.as_str() && held.until > now);
        let resigned = mine.is_some();
        if let Some(held) = mine {
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
                [&role, &held.leader, &signed(held.term), &At(now)];
            connection.run(Sql::RoleSave, &values).await?;
        }
        connection.commit().await?;
        Ok(resigned)
    }

    /// Keeps a worker's report as its last.
    pub(crate) async fn report_worker(&self, report: &WorkerReport) -> Result<()> {
        let text = report_text(report)?;
        self.pool.write(Sql::WorkerSave, &[&report.id.as_str(), &text, &self.now()]).await?;
        Ok(())
    }

    /// Forgets a worker that ended.
    pub(crate) async fn forget_worker(&self, id: &WorkerId) -> Result<bool> {
        Ok(!self.pool.write(Sql::WorkerForget, &[&id.as_str()]).await?.is_empty())
    }

    /// All workers heard of lately, by id.
    pub(crate) async fn workers(&self) -> Result<Vec<WorkerView>> {
        let rows = self.pool.read(Sql::WorkerAll, &[]).await?;
        rows.iter()
            .map(|row| {
                let now = self.now().map_or_else(|| column::<At>(row, 3), Ok)?.0;
                Ok(WorkerView {
                    report: report(column(row, 0)?)?,
                    since: column::<At>(row, 1)?.0,
                    silent_for: now.since(column::<At>(row, 2)?.0),
                })
            })
            .collect()
    }

    /// Publishes the manager's word, if its term is the current one.
    pub(crate) async fn publish_assignment(&self, assignment: &Assignment) -> Result<Published> {
        let mut connection = self.pool.take().await?;
        connection.begin().await?;
        let held = held(&connection.run(Sql::RoleGet, &[&MANAGER]).await?)?;
        let current = held.map_or(0, |role| role.term);
        if assignment.term != current || current == 0 {
            connection.roll_back().await?;
            return Ok(Published::StaleTerm { current });
        }
        let shares: Vec<ShareText> = assignment
            .shares
            .iter()
            .map(|share| ShareText {
                worker: share.worker.to_string(),
                queue: share.queue.to_string(),
                processors: share.processors,
            })
            .collect();
        let shares = codec::text(&shares)?;
        let term = signed(assignment.term);
        connection.run(Sql::AssignmentSave, &[&term, &shares, &self.now()]).await?;
        connection.commit().await?;
        Ok(Published::Accepted)
    }

    /// The manager's last word.
    pub(crate) async fn assignment(&self) -> Result<Option<Assignment>> {
        let rows = self.pool.read(Sql::AssignmentGet, &[]).await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let shares: Vec<ShareText> = codec::parse("the assignment", column(row, 1)?)?;
        Ok(Some(Assignment {
            term: codec::count(column(row, 0)?),
            shares: shares
                .into_iter()
                .map(|share| {
                    Ok(Share {
                        worker: codec::worker_id(&share.worker)?,
                        queue: codec::queue_name(&share.queue)?,
                        processors: share.processors,
                    })
                })
                .collect::<Result<_>>()?,
            published_at: column::<At>(row, 2)?.0,
        }))
    }
}

/// Who holds a role.
struct Role {
    leader: String,
    term: u64,
    until: Timestamp,
}

/// The role's holder; none while nobody ever held it.
fn held(rows: &[tokio_postgres::Row]) -> Result<Option<Role>> {
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let term = codec::count(column(row, 1)?);
    let role = Role { leader: column(row, 0)?, term, until: column::<At>(row, 2)?.0 };
    Ok(Some(role).filter(|role| role.term > 0))
}

fn signed(term: u64) -> i64 {
    i64::try_from(term).unwrap_or(i64::MAX)
}
