//! Roles, workers and the manager's word.

use std::time::Duration;

use super::state::{Role, State};
use crate::assignment::MANAGER;
use crate::policy::reclaim_guard::heartbeat;
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
        let known = self.roles.get(role);
        let term = match known {
            Some(known) if known.held.leader == *who && known.until > now => known.held.term,
            Some(known) if known.until > now.after(hold) => {
                // A clock that was ahead gave it more than anybody asks for.
                let held = Leadership { remaining: hold, mine: false, ..known.held.clone() };
                let role_now = Role { held: held.clone(), until: now.after(hold) };
                self.roles.insert(role.to_owned(), role_now);
                return held;
            }
            Some(known) if known.until > now => {
                return Leadership {
                    remaining: known.until.since(now),
                    mine: false,
                    ..known.held.clone()
                };
            }
            // After a jump its holder has until its next renewal to say that it
            // is alive.
            Some(known)
                if known.held.leader != *who
                    && self.guard.held_back(self.monotonic, heartbeat(hold)).is_some() =>
            {
                let left = self.guard.held_back(self.monotonic, heartbeat(hold));
                let remaining = left.unwrap_or_default();
                return Leadership { remaining, mine: false, ..known.held.clone() };
            }
            // A holder that let its time run out begins a new term: somebody
            // else may have led in between, in another process's eyes.
            Some(known) => known.held.term + 1,
            None => 1,
        };
        let held = Leadership { leader: who.clone(), term, remaining: hold, mine: true };
        let role_now = Role { held: held.clone(), until: now.after(hold) };
        self.roles.insert(role.to_owned(), role_now);
        held
    }

    /// Gives a role up.
    pub fn resign(&mut self, role: &str, who: &WorkerId, now: Timestamp) -> bool {
        let Some(known) = self.roles.get_mut(&role.to_owned()) else {
            return false;
        };
        if known.held.leader != *who || known.until <= now {
            return false;
        }
        // The term stays on record, so that the next holder's is higher.
        known.until = now;
        true
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
        let current = self.roles.get(MANAGER).map_or(0, |role| role.held.term);
        if assignment.term != current || current == 0 {
            return Published::StaleTerm { current };
        }
        self.assignment = Some(Assignment { published_at: now, ..assignment });
        self.note(|changes| changes.assignment = true);
        Published::Accepted
    }
}
