//! Roles, workers and the manager's word.

use std::time::Duration;

use gristmill_core::assignment::MANAGER;
use gristmill_core::policy::role::{self, Role};
use gristmill_core::{
    Assignment, Leadership, Published, Result, Timestamp, WorkerId, WorkerReport, WorkerView,
};
use gristmill_text::{NamedProcessor, WorkerText};

use crate::answer::{column, readable};
use crate::codec;
use crate::deadline::Class;
use crate::pool::Taken;
use crate::sql::{Sql, at};
use crate::store::Inner;
use crate::wire::At;

pub(crate) fn report(stored: &str) -> Result<WorkerReport> {
    let text: WorkerText<NamedProcessor> = gristmill_text::parse("a worker's report", stored)?;
    text.into_report()
}

impl Inner {
    /// Asks for a role, or renews it.
    pub(crate) async fn campaign(
        &self,
        role: &str,
        who: &WorkerId,
        hold: Duration,
    ) -> Result<Leadership> {
        let mut connection = self.pool.take(Class::Flow).await?;
        connection.begin().await?;
        connection.run(Sql::RoleEnsure, &[&role, &At(Timestamp::EPOCH)]).await?;
        let now = self.time(&mut connection).await?;
        let held = held(&connection.run(Sql::RoleGet, &[&role]).await?)?;
        let spared = |heartbeat| self.held_back(heartbeat);
        let (answer, changed) = role::campaign(held, who, hold, now, spared);
        if let Some(changed) = changed {
            save(&mut connection, role, &changed).await?;
            connection.commit().await?;
        } else {
            connection.roll_back().await?;
        }
        Ok(answer)
    }

    /// Gives a role up; its term stays on record.
    pub(crate) async fn resign(&self, role: &str, who: &WorkerId) -> Result<bool> {
        let mut connection = self.pool.take(Class::Flow).await?;
        connection.begin().await?;
        let now = self.time(&mut connection).await?;
        let held = held(&connection.run(Sql::RoleGet, &[&role]).await?)?;
        let given_up = held.and_then(|held| held.given_up(who, now));
        if let Some(given_up) = &given_up {
            save(&mut connection, role, given_up).await?;
        }
        connection.commit().await?;
        Ok(given_up.is_some())
    }

    /// Keeps a worker's report as its last.
    pub(crate) async fn report_worker(&self, report: &WorkerReport) -> Result<()> {
        let text = gristmill_text::text(&WorkerText::<NamedProcessor>::new(report))?;
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
        Ok(readable(&rows, "a worker's report", |row| {
            let now = self.now().map_or_else(|| column::<At>(row, at!(WorkerAll.now)), Ok)?.0;
            Ok(WorkerView {
                report: report(column(row, at!(WorkerAll.report))?)?,
                since: column::<At>(row, at!(WorkerAll.since))?.0,
                silent_for: now.since(column::<At>(row, at!(WorkerAll.seen))?.0),
            })
        }))
    }

    /// Publishes the manager's word, if its term is the current one.
    pub(crate) async fn publish_assignment(&self, assignment: &Assignment) -> Result<Published> {
        let mut connection = self.pool.take(Class::Flow).await?;
        connection.begin().await?;
        let held = held(&connection.run(Sql::RoleGet, &[&MANAGER]).await?)?;
        let current = held.map_or(0, |role| role.term);
        if assignment.term != current || current == 0 {
            connection.roll_back().await?;
            return Ok(Published::StaleTerm { current });
        }
        let shares = gristmill_text::shares_text(&assignment.shares)?;
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
        Ok(Some(Assignment {
            term: codec::count(column(row, at!(AssignmentGet.term))?),
            shares: gristmill_text::shares(column(row, at!(AssignmentGet.shares))?)?,
            published_at: column::<At>(row, at!(AssignmentGet.published_at))?.0,
        }))
    }
}

/// The role's holder; none while nobody ever held it.
fn held(rows: &[tokio_postgres::Row]) -> Result<Option<Role>> {
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let role = Role {
        leader: codec::worker_id(column(row, at!(RoleGet.leader))?),
        term: codec::count(column(row, at!(RoleGet.term))?),
        until: column::<At>(row, at!(RoleGet.until))?.0,
        hold: codec::from_span(column(row, at!(RoleGet.hold))?),
    };
    Ok(Some(role).filter(|role| role.term > 0))
}

async fn save(connection: &mut Taken<'_>, name: &str, role: &Role) -> Result<()> {
    let (term, hold) = (signed(role.term), codec::span(role.hold));
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
        [&name, &role.leader.as_str(), &term, &At(role.until), &hold];
    connection.run(Sql::RoleSave, &values).await.map(drop)
}

fn signed(term: u64) -> i64 {
    i64::try_from(term).unwrap_or(i64::MAX)
}
