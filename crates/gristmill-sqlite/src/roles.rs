//! Roles, workers and the manager's word.

use std::time::Duration;

use gristmill_core::assignment::MANAGER;
use gristmill_core::{
    Assignment, HandlerStats, Leadership, ProcessorReport, Published, Result, Share, Timestamp,
    WorkerId, WorkerReport, WorkerView,
};
use rusqlite::params;
use serde::{Deserialize, Serialize};

use crate::codec;
use crate::db::Db;
use crate::delta::{signed, unsigned};
use crate::sql::Sql;
use crate::write::Write;

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

/// Who holds a role.
struct Role {
    leader: String,
    term: u64,
    until: Timestamp,
}

impl Write<'_, '_> {
    fn role(&self, role: &str) -> Result<Option<Role>> {
        self.db.one(Sql::RoleGet, params![role], |row| {
            Ok(Role {
                leader: row.get(0)?,
                term: unsigned(row.get(1)?),
                until: Timestamp::from_micros(row.get(2)?),
            })
        })
    }

    fn save_role(&self, role: &str, leader: &str, term: u64, until: Timestamp) -> Result<()> {
        self.db.run(Sql::RoleSave, params![role, leader, signed(term), until.as_micros()])?;
        Ok(())
    }

    /// Asks for a role, or renews it.
    pub(crate) fn campaign(
        &self,
        role: &str,
        who: &WorkerId,
        hold: Duration,
    ) -> Result<Leadership> {
        let term = match self.role(role)? {
            Some(held) if held.until > self.now && held.leader == who.as_str() => held.term,
            Some(held) if held.until > self.now => {
                return Ok(Leadership {
                    leader: codec::worker_id(&held.leader)?,
                    term: held.term,
                    remaining: held.until.since(self.now),
                    mine: false,
                });
            }
            // A holder that let its time run out begins a new term: somebody
            // else may have led in between.
            Some(held) => held.term + 1,
            None => 1,
        };
        self.save_role(role, who.as_str(), term, self.now.after(hold))?;
        Ok(Leadership { leader: who.clone(), term, remaining: hold, mine: true })
    }

    /// Gives a role up; its term stays on record.
    pub(crate) fn resign(&self, role: &str, who: &WorkerId) -> Result<bool> {
        match self.role(role)? {
            Some(held) if held.leader == who.as_str() && held.until > self.now => {
                self.save_role(role, &held.leader, held.term, self.now)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Keeps a worker's report as its last.
    pub(crate) fn report_worker(&self, report: &WorkerReport) -> Result<()> {
        let text = report_text(report)?;
        let now = self.now.as_micros();
        self.db.run(Sql::WorkerSave, params![report.id.as_str(), text, now])?;
        Ok(())
    }

    /// Forgets a worker that ended.
    pub(crate) fn forget_worker(&self, id: &WorkerId) -> Result<bool> {
        Ok(self.db.run(Sql::WorkerForget, params![id.as_str()])? > 0)
    }

    /// Publishes the manager's word, if its term is the current one.
    pub(crate) fn publish_assignment(&self, assignment: &Assignment) -> Result<Published> {
        let current = self.role(MANAGER)?.map_or(0, |role| role.term);
        if assignment.term != current || current == 0 {
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
        self.db.run(
            Sql::AssignmentSave,
            params![signed(assignment.term), codec::text(&shares)?, self.now.as_micros()],
        )?;
        Ok(Published::Accepted)
    }
}

/// All workers heard of lately, by id.
pub(crate) fn workers(db: &Db<'_>, now: Timestamp) -> Result<Vec<WorkerView>> {
    let stored = db.all(Sql::WorkerAll, [], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
    })?;
    stored
        .into_iter()
        .map(|(text, since, seen)| {
            Ok(WorkerView {
                report: report(&text)?,
                since: Timestamp::from_micros(since),
                silent_for: now.since(Timestamp::from_micros(seen)),
            })
        })
        .collect()
}

/// The manager's last word.
pub(crate) fn assignment(db: &Db<'_>) -> Result<Option<Assignment>> {
    let stored = db.one(Sql::AssignmentGet, [], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?))
    })?;
    let Some((term, shares, published_at)) = stored else {
        return Ok(None);
    };
    let shares: Vec<ShareText> = codec::parse("the assignment", &shares)?;
    Ok(Some(Assignment {
        term: unsigned(term),
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
        published_at: Timestamp::from_micros(published_at),
    }))
}
