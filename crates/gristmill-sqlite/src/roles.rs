//! Roles, workers and the manager's word.

use std::time::Duration;

use gristmill_core::assignment::MANAGER;
use gristmill_core::policy::role::{self, Role};
use gristmill_core::{
    Assignment, Leadership, Published, Result, Timestamp, WorkerId, WorkerReport, WorkerView,
};
use gristmill_text::{NamedProcessor, WorkerText};

use crate::codec;
use crate::db::Db;
use crate::delta::{signed, unsigned};
use crate::sql::{Sql, at, bind};
use crate::write::Write;

fn report(stored: &str) -> Result<WorkerReport> {
    let text: WorkerText<NamedProcessor> = gristmill_text::parse("a worker's report", stored)?;
    text.into_report()
}

impl Write<'_, '_> {
    fn role(&self, role: &str) -> Result<Option<Role>> {
        self.db.one(Sql::RoleGet, bind!(RoleGet { role }), |row| {
            Ok(Role {
                leader: codec::worker_id(&row.get::<_, String>(at!(RoleGet.leader))?),
                term: unsigned(row.get(at!(RoleGet.term))?),
                until: Timestamp::from_micros(row.get(at!(RoleGet.until))?),
                hold: Duration::from_micros(unsigned(row.get(at!(RoleGet.hold))?)),
            })
        })
    }

    fn save_role(&self, name: &str, role: &Role) -> Result<()> {
        self.db.run(
            Sql::RoleSave,
            bind!(RoleSave {
                role: name,
                leader: role.leader.as_str(),
                term: signed(role.term),
                until: role.until.as_micros(),
                hold: codec::span(role.hold)
            }),
        )?;
        Ok(())
    }

    /// Asks for a role, or renews it.
    pub(crate) fn campaign(
        &self,
        role: &str,
        who: &WorkerId,
        hold: Duration,
    ) -> Result<Leadership> {
        let spared = |heartbeat| self.known.guard.held_back(self.monotonic, heartbeat);
        let (answer, changed) = role::campaign(self.role(role)?, who, hold, self.now, spared);
        if let Some(changed) = changed {
            self.save_role(role, &changed)?;
        }
        Ok(answer)
    }

    /// Gives a role up; its term stays on record.
    pub(crate) fn resign(&self, role: &str, who: &WorkerId) -> Result<bool> {
        let given_up = self.role(role)?.and_then(|known| known.given_up(who, self.now));
        if let Some(given_up) = &given_up {
            self.save_role(role, given_up)?;
        }
        Ok(given_up.is_some())
    }

    /// Keeps a worker's report as its last.
    pub(crate) fn report_worker(&self, report: &WorkerReport) -> Result<()> {
        let text = gristmill_text::text(&WorkerText::<NamedProcessor>::new(report))?;
        let now = self.now.as_micros();
        self.db.run(
            Sql::WorkerSave,
            bind!(WorkerSave { id: report.id.as_str(), report: text, now }),
        )?;
        Ok(())
    }

    /// Forgets a worker that ended.
    pub(crate) fn forget_worker(&self, id: &WorkerId) -> Result<bool> {
        Ok(self.db.run(Sql::WorkerForget, bind!(WorkerForget { id: id.as_str() }))? > 0)
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
            bind!(AssignmentSave {
                term: signed(assignment.term),
                shares,
                published_at: self.now.as_micros()
            }),
        )?;
        Ok(Published::Accepted)
    }
}

/// All workers heard of lately, by id.
pub(crate) fn workers(db: &Db<'_>, now: Timestamp) -> Result<Vec<WorkerView>> {
    let stored = db.all(Sql::WorkerAll, [], |row| {
        Ok((
            row.get::<_, String>(at!(WorkerAll.report))?,
            row.get::<_, i64>(at!(WorkerAll.since))?,
            row.get::<_, i64>(at!(WorkerAll.seen))?,
        ))
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
        Ok((
            row.get::<_, i64>(at!(AssignmentGet.term))?,
            row.get::<_, String>(at!(AssignmentGet.shares))?,
            row.get::<_, i64>(at!(AssignmentGet.published_at))?,
        ))
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
