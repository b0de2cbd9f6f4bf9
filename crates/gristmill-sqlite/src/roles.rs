//! Roles, workers and the manager's word.

use std::time::Duration;

use gristmill_core::assignment::MANAGER;
use gristmill_core::policy::reclaim_guard::heartbeat;
use gristmill_core::{
    Assignment, Leadership, Published, Result, Timestamp, WorkerId, WorkerReport, WorkerView,
};
use gristmill_text::{NamedProcessor, WorkerText};
use rusqlite::params;

use crate::codec;
use crate::db::Db;
use crate::delta::{signed, unsigned};
use crate::sql::Sql;
use crate::write::Write;

fn report(stored: &str) -> Result<WorkerReport> {
    let text: WorkerText<NamedProcessor> = gristmill_text::parse("a worker's report", stored)?;
    text.into_report()
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
        let spared = self.known.guard.held_back(self.monotonic, heartbeat(hold));
        let term = match self.role(role)? {
            Some(held) if held.until > self.now && held.leader == who.as_str() => held.term,
            Some(held) if held.until > self.now.after(hold) => {
                // A clock that was ahead gave it more than anybody asks for.
                self.save_role(role, &held.leader, held.term, self.now.after(hold))?;
                let leader = codec::worker_id(&held.leader);
                return Ok(Leadership { leader, term: held.term, remaining: hold, mine: false });
            }
            Some(held) if held.until > self.now => {
                return Ok(Leadership {
                    leader: codec::worker_id(&held.leader),
                    term: held.term,
                    remaining: held.until.since(self.now),
                    mine: false,
                });
            }
            // After a jump its holder has until its next renewal to say that it
            // is alive.
            Some(held) if held.leader != who.as_str() && spared.is_some() => {
                return Ok(Leadership {
                    leader: codec::worker_id(&held.leader),
                    term: held.term,
                    remaining: spared.unwrap_or_default(),
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
        let text = gristmill_text::text(&WorkerText::<NamedProcessor>::new(report))?;
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
        let shares = gristmill_text::shares_text(&assignment.shares)?;
        self.db.run(
            Sql::AssignmentSave,
            params![signed(assignment.term), shares, self.now.as_micros()],
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
    Ok(Some(Assignment {
        term: unsigned(term),
        shares: gristmill_text::shares(&shares)?,
        published_at: Timestamp::from_micros(published_at),
    }))
}
