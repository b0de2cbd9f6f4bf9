//! Reading: one task, pages of tasks, keys, and the kept numbers.

use std::time::Duration;

use super::state::{Row, State};
use crate::{
    KeyStanding, ListRequest, Minute, Order, Page, QueueName, QueueStats, Result, StandingPlace,
    State as TaskState, Task, TaskId, Timestamp, Token,
};

impl State {
    /// One task, whatever its state.
    pub fn get(&self, id: TaskId) -> Option<Task> {
        let row = self.rows.get(&id.0).or_else(|| self.done.get(&id.0))?;
        Some(self.shown(row))
    }

    /// A task as readers see it, with how far it is.
    fn shown(&self, row: &Row) -> Task {
        let mut task = row.task.clone();
        if let Some(view) = &mut task.lease {
            let lease = row.lease.and_then(|token| self.leases.get(&token));
            view.progress = lease.and_then(|lease| lease.progress.of(task.id.0)).cloned();
        }
        task
    }

    /// The tasks that are open under a token, by id.
    pub fn open_under(&self, token: Token) -> Vec<TaskId> {
        let Some(lease) = self.leases.get(&token) else { return Vec::new() };
        let is_open = |id: &&i64| self.rows.get(*id).is_some_and(|row| row.lease == Some(token));
        let mut ids: Vec<TaskId> = lease.ids.iter().filter(is_open).map(|id| TaskId(*id)).collect();
        ids.sort_unstable();
        ids
    }

    /// A page of tasks by id.
    pub fn list(&self, request: &ListRequest) -> Page {
        let rows = match request.filter.state {
            Some(TaskState::Done) => &self.done,
            _ => &self.rows,
        };
        let after = request.after.map(|id| id.0);
        if request.filter.state == Some(TaskState::Processing) {
            let mut held: Vec<i64> = self.leases.values().flat_map(|l| l.ids.clone()).collect();
            held.sort_unstable();
            held.dedup();
            let row = |id: &i64| self.rows.get_key_value(id);
            return match request.order {
                Order::Oldest => {
                    held.retain(|id| after.is_none_or(|after| *id > after));
                    self.look(request, held.iter().filter_map(row))
                }
                Order::Newest => {
                    held.retain(|id| after.is_none_or(|after| *id < after));
                    self.look(request, held.iter().rev().filter_map(row))
                }
            };
        }
        match request.order {
            Order::Oldest => {
                let from = after.map_or(i64::MIN, |id| id.saturating_add(1));
                self.look(request, rows.range(from..))
            }
            Order::Newest => self.look(request, rows.range(..after.unwrap_or(i64::MAX)).rev()),
        }
    }

    /// Looks at so many, so that whoever works does not wait for who looks.
    fn look<'a>(
        &self,
        request: &ListRequest,
        rows: impl Iterator<Item = (&'a i64, &'a Box<Row>)>,
    ) -> Page {
        let limit = request.limit.clamp(1, self.limits.page);
        let mut page = Page::default();
        for (id, row) in rows {
            page.looked += 1;
            if request.filter.matches(&row.task) {
                page.tasks.push(self.shown(row));
            }
            if page.tasks.len() == limit || page.looked >= self.limits.looks as u64 {
                page.next = Some(TaskId(*id));
                break;
            }
        }
        page
    }

    /// The tasks that stand for these keys.
    ///
    /// # Errors
    /// As [`Store::find`](crate::Store::find).
    pub fn find(&self, queue: &QueueName, keys: &[String]) -> Result<Vec<KeyStanding>> {
        let number = self.number(queue)?;
        let wanted: std::collections::HashSet<&str> = keys.iter().map(String::as_str).collect();
        let mut found: Vec<KeyStanding> = self
            .rows
            .values()
            .filter(|row| row.number == number)
            .filter_map(|row| {
                let key = row.task.key.as_deref().filter(|key| wanted.contains(key))?;
                let place = match (row.task.state, row.in_flight) {
                    (TaskState::Failed, _) => StandingPlace::Failed,
                    (_, true) => StandingPlace::InFlight,
                    (_, false) => StandingPlace::Waiting,
                };
                Some(KeyStanding {
                    key: key.to_owned(),
                    id: row.task.id,
                    place,
                    state: row.task.state,
                })
            })
            .collect();
        found.sort_by(|a, b| (&a.key, a.id).cmp(&(&b.key, b.id)));
        Ok(found)
    }

    /// All queues' numbers.
    pub fn stats(&mut self, now: Timestamp) -> Vec<QueueStats> {
        self.promote(now);
        self.queues
            .values()
            .map(|queue| QueueStats {
                queue: queue.queue.name.clone(),
                number: queue.queue.number,
                ready: queue.counts.ready,
                delayed: queue.delayed.len() as u64,
                blocked: queue.counts.blocked,
                processing: queue.counts.processing,
                failed: queue.counts.failed,
                done_kept: queue.counts.done_kept,
                oldest_ready: queue.lane.oldest_due(now).map(|at| now.since(at)),
                paused: queue.queue.paused,
                capacity: queue.queue.settings.capacity,
                counters: queue.counters,
            })
            .collect()
    }

    /// A queue's minutes of so long back.
    ///
    /// # Errors
    /// As [`Store::minutes`](crate::Store::minutes).
    pub fn minutes(
        &self,
        queue: &QueueName,
        back: Duration,
        now: Timestamp,
    ) -> Result<Vec<Minute>> {
        let number = self.number(queue)?;
        let span = now.before(back).minute()..=now;
        let minutes = self
            .queues
            .get(&number)
            .map(|queue| queue.minutes.range(span).map(|(_, minute)| *minute).collect());
        Ok(minutes.unwrap_or_default())
    }
}
