//! Roles, workers and the manager's word.

use std::time::Duration;

use super::state::State;
use crate::assignment::MANAGER;
use crate::policy::role;
use crate::{Assignment, Leadership, Published, Timestamp, WorkerId, WorkerReport, WorkerView};

impl State {
    /// Asks for a role, or renews it.
    pub fn campaign(
        &mut self,
        role: &str,
        who: &WorkerId,
        hold: Duration,
        now: Timestamp,
    ) -> Leadership {
        let spared = |heartbeat| self.guard.held_back(self.monotonic, heartbeat);
        let known = self.roles.get(role).cloned();
        let (answer, changed) = role::campaign(known, who, hold, now, spared);
        if let Some(changed) = changed {
            self.roles.insert(role.to_owned(), changed);
        }
        answer
    }

    /// Gives a role up.
    pub fn resign(&mut self, role: &str, who: &WorkerId, now: Timestamp) -> bool {
        let known = self.roles.get(role).cloned();
        let given_up = known.and_then(|known| known.given_up(who, now));
        let resigned = given_up.is_some();
        if let Some(given_up) = given_up {
            self.roles.insert(role.to_owned(), given_up);
        }
        resigned
    }

    /// Keeps a worker's report as its last.
    pub fn report_worker(&mut self, report: WorkerReport, now: Timestamp) {
        let since = self.workers.get(&report.id).map_or(now, |(_, since, _)| *since);
        self.workers.insert(report.id.clone(), (report, since, now));
    }

    /// All workers heard of lately.
    pub fn workers(&self, now: Timestamp) -> Vec<WorkerView> {
        self.workers
            .values()
            .map(|(report, since, seen)| WorkerView {
                report: report.clone(),
                since: *since,
                silent_for: now.since(*seen),
            })
            .collect()
    }

    /// Publishes the manager's word.
    pub fn publish_assignment(&mut self, assignment: Assignment, now: Timestamp) -> Published {
        let current = self.roles.get(MANAGER).map_or(0, |role| role.term);
        if assignment.term != current || current == 0 {
            return Published::StaleTerm { current };
        }
        self.assignment = Some(Assignment { published_at: now, ..assignment });
        self.note(|changes| changes.assignment = true);
        Published::Accepted
    }
}
