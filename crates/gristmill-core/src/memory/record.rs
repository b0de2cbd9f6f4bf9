//! Tasks and leases as another store writes them down, and their way back.

use std::time::Duration;

use super::reported::Reported;
use super::state::{Lease, Row, State};
use crate::policy::duplicate::Places;
use crate::{
    CheckpointMark, LeaseView, ProgressView, Result, State as TaskState, StoreError, Task, TaskId,
    Timestamp, Token, WorkerId,
};

/// A task as it is written down: as it stood before the claim under which it
/// runs, so that a claim need not write it anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRecord {
    /// The task, without its lease. Its payload's bytes may be missing.
    pub task: Task,
    /// The payload's size.
    pub payload_len: usize,
    /// What it keeps for its next attempt. The bytes may be missing in `task`.
    pub checkpoint: Option<CheckpointMark>,
    /// Whether it holds its key's in-flight place rather than the waiting one.
    pub in_flight: bool,
    /// Releases after a start that were free so far.
    pub started_releases: u32,
    /// The token that last settled it.
    pub settled: Option<Token>,
}

/// One claim as it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Its token.
    pub token: Token,
    /// The queue's number.
    pub number: u32,
    /// Who claimed.
    pub worker: WorkerId,
    /// When.
    pub claimed_at: Timestamp,
    /// When it ends unless it is extended.
    pub until: Timestamp,
    /// How long it lasts from its last extension on.
    pub length: Duration,
    /// Its tasks that are not settled.
    pub ids: Vec<TaskId>,
    /// Their group, on queues with `count` or `slots`.
    pub group: String,
    /// Their slot, on queues with `slots`.
    pub slot: Option<u32>,
    /// How far they are, where their handlers say so.
    pub progress: Vec<(TaskId, ProgressView)>,
}

impl State {
    /// A task as it is written down.
    #[must_use]
    pub fn task_record(&self, id: TaskId) -> Option<TaskRecord> {
        let row = self.rows.get(&id.0).or_else(|| self.done.get(&id.0))?;
        let mut task = row.task.clone();
        if task.lease.take().is_some() {
            task.attempts = task.attempts.saturating_sub(1);
            task.claims = task.claims.saturating_sub(1);
        }
        Some(TaskRecord {
            task,
            payload_len: row.payload_len,
            checkpoint: row.checkpoint,
            in_flight: row.in_flight,
            started_releases: row.started_releases,
            settled: row.settled,
        })
    }

    /// Every standing and kept task's id.
    pub fn ids(&self) -> impl Iterator<Item = TaskId> {
        self.rows.keys().chain(self.done.keys()).map(|id| TaskId(*id))
    }

    /// The token a task runs under.
    #[must_use]
    pub fn token_of(&self, id: TaskId) -> Option<Token> {
        self.rows.get(&id.0)?.lease
    }

    /// Whether the payload's bytes are elsewhere.
    #[must_use]
    pub fn is_hollow(&self, id: TaskId) -> bool {
        let row = self.rows.get(&id.0).or_else(|| self.done.get(&id.0));
        row.is_some_and(|row| row.task.payload.bytes.len() != row.payload_len)
    }

    /// What a task keeps for its next attempt.
    #[must_use]
    pub fn checkpoint_mark(&self, id: TaskId) -> Option<CheckpointMark> {
        self.rows.get(&id.0)?.checkpoint
    }

    /// Lets go of the bytes of the payload and of what is kept: they are elsewhere
    /// now.
    pub fn hollow(&mut self, id: TaskId) {
        let row = match self.rows.derived_mut(&id.0) {
            Some(row) => Some(row),
            None => self.done.derived_mut(&id.0),
        };
        if let Some(row) = row {
            row.task.payload.bytes = bytes::Bytes::new();
            row.task.checkpoint = None;
        }
    }

    /// A lease as it is written down.
    #[must_use]
    pub fn lease_record(&self, token: Token) -> Option<LeaseRecord> {
        let lease = self.leases.get(&token)?;
        Some(LeaseRecord {
            token,
            number: lease.number,
            worker: lease.worker.clone(),
            claimed_at: lease.claimed_at,
            until: lease.until,
            length: lease.length,
            ids: lease
                .ids
                .iter()
                .filter(|id| self.rows.get(id).is_some_and(|row| row.lease == Some(token)))
                .map(|id| TaskId(*id))
                .collect(),
            group: lease.group.clone(),
            slot: lease.slot,
            progress: lease.progress.all(),
        })
    }

    /// Every task a lease took, settled or not.
    #[must_use]
    pub fn lease_ids(&self, token: Token) -> Vec<TaskId> {
        let lease = self.leases.get(&token);
        lease.map(|lease| lease.ids.iter().map(|id| TaskId(*id)).collect()).unwrap_or_default()
    }

    /// Every open lease's token.
    pub fn tokens(&self) -> impl Iterator<Item = Token> {
        self.leases.keys().copied()
    }

    /// Puts a lease back. Its tasks follow with [`State::restore_task`].
    pub fn restore_lease(&mut self, lease: LeaseRecord) {
        let (token, until) = (lease.token, lease.until);
        let progress = Reported::from(lease.progress);
        self.bytes += progress.bytes();
        let lease = Lease {
            number: lease.number,
            worker: lease.worker,
            claimed_at: lease.claimed_at,
            until,
            length: lease.length,
            ids: lease.ids.into_iter().map(|id| id.0).collect(),
            open: 0,
            group: lease.group,
            slot: lease.slot,
            progress,
        };
        if let Some(before) = self.leases.insert(token, lease) {
            self.bytes -= before.progress.bytes();
        }
        self.expiring.insert((until, token));
    }

    /// Says how far a lease's tasks are, in place of all that was said before.
    pub fn restore_progress(&mut self, token: Token, progress: Vec<(TaskId, ProgressView)>) {
        if let Some(lease) = self.leases.get_mut(&token) {
            self.bytes -= lease.progress.bytes();
            lease.progress = Reported::from(progress);
            self.bytes += lease.progress.bytes();
        }
    }

    /// Gives a lease another deadline.
    pub fn restore_until(&mut self, token: Token, until: Timestamp, length: Duration) {
        let Some(lease) = self.leases.get_mut(&token) else {
            return;
        };
        self.expiring.remove(&(lease.until, token));
        (lease.until, lease.length) = (until, length);
        self.expiring.insert((until, token));
        for id in &lease.ids {
            if let Some(row) = self.rows.derived_mut(id)
                && row.lease == Some(token)
                && let Some(view) = &mut row.task.lease
            {
                view.until = until;
            }
        }
    }

    /// Forgets leases under which no task runs.
    pub fn drop_empty_leases(&mut self) {
        let empty: Vec<Token> =
            self.leases.iter().filter(|(_, lease)| lease.open == 0).map(|(t, _)| *t).collect();
        for token in empty {
            if let Some(lease) = self.leases.remove(&token) {
                self.bytes -= lease.progress.bytes();
                self.expiring.remove(&(lease.until, token));
            }
        }
    }

    /// Puts a task back where its state says, in place of what was known of
    /// it. A processing one needs the token of a lease that is known.
    ///
    /// # Errors
    /// When its queue or lease is unknown, or its key's place is taken.
    pub fn restore_task(
        &mut self,
        record: TaskRecord,
        token: Option<Token>,
        now: Timestamp,
    ) -> Result<()> {
        let TaskRecord { mut task, payload_len, checkpoint, in_flight, started_releases, settled } =
            record;
        let (id, state) = (task.id, task.state);
        let number = self.number(&task.queue)?;
        let in_flight = in_flight || state == TaskState::Processing;
        let place = match (&task.key, state) {
            (Some(key), TaskState::Pending | TaskState::Processing) => Some(key.clone()),
            _ => None,
        };
        if let Some(other) = place.as_ref().and_then(|key| self.holder(number, key, in_flight))
            && other != id
        {
            return Err(StoreError::corrupt(format!("task {id} stands where task {other} does")));
        }
        task.blocked = false;
        task.lease = None;
        let (mut lease, mut said) = (None, None);
        if state == TaskState::Processing {
            let (token, held) = token
                .and_then(|token| Some((token, self.leases.get_mut(&token)?)))
                .ok_or_else(|| StoreError::corrupt(format!("task {id} runs under no lease")))?;
            // Before what was known of it is forgotten: that may be the last
            // task of the same lease.
            held.open += 1;
            task.attempts += 1;
            task.claims += 1;
            task.claimed_at = Some(held.claimed_at);
            let (worker, until, slot) = (held.worker.clone(), held.until, held.slot);
            task.lease = Some(LeaseView { worker, until, slot, progress: None });
            said = held.progress.of(id.0).cloned();
            lease = Some(token);
        }
        self.forget_task(id, now);
        if let Some((said, held)) = said.zip(lease.and_then(|token| self.leases.get_mut(&token))) {
            // Of the same attempt: it was written anew, and has not ended.
            self.bytes += held.progress.say(id.0, said, usize::MAX);
        }
        self.next_id = self.next_id.max(id.0.saturating_add(1));
        let row = Row {
            task,
            payload_len,
            checkpoint,
            number,
            in_flight,
            started_releases,
            lease,
            settled,
            delayed: false,
        };
        self.bytes += row.bytes();
        let queue = self.queue_mut(number)?;
        match state {
            TaskState::Done => {
                queue.counts.done_kept += 1;
                self.done.insert(id.0, Box::new(row));
                return Ok(());
            }
            TaskState::Failed => queue.counts.failed += 1,
            TaskState::Processing => queue.counts.processing += 1,
            TaskState::Pending => {}
        }
        if state == TaskState::Processing {
            queue.count_leased(&row, true);
        }
        self.rows.insert(id.0, Box::new(row));
        if let Some(key) = place {
            self.take_place(number, &key, id, in_flight, now);
        }
        if state == TaskState::Pending {
            self.enter(id.0, now);
        }
        Ok(())
    }

    /// Who holds a key's place.
    fn holder(&self, number: u32, key: &str, in_flight: bool) -> Option<TaskId> {
        let places = self.queues.get(&number)?.places(key);
        if in_flight { places.in_flight } else { places.waiting }
    }

    /// Takes a key's place for a task that is put back.
    fn take_place(&mut self, number: u32, key: &str, id: TaskId, in_flight: bool, now: Timestamp) {
        let Some(queue) = self.queues.get_mut(&number) else {
            return;
        };
        let places: &mut Places = queue.places.entry(key.to_owned()).or_default();
        let behind = places.waiting.filter(|_| in_flight);
        if in_flight {
            places.in_flight = Some(id);
        } else {
            places.waiting = Some(id);
            if let Some(row) = self.rows.derived_mut(&id.0) {
                row.task.blocked = places.in_flight.is_some();
            }
        }
        if let Some(behind) = behind {
            // It came before what it stands behind: it leaves the claim order.
            self.leave(behind.0);
            if let Some(row) = self.rows.derived_mut(&behind.0) {
                row.task.blocked = true;
            }
            self.enter(behind.0, now);
        }
    }

    /// Forgets a task without counting it; what waited behind it goes on.
    /// Returns whether it was known.
    pub fn forget_task(&mut self, id: TaskId, now: Timestamp) -> bool {
        if let Some(row) = self.done.remove(&id.0) {
            self.bytes -= row.bytes();
            if let Some(queue) = self.queues.get_mut(&row.number) {
                queue.counts.done_kept -= 1;
            }
            return true;
        }
        let Some(row) = self.rows.get(&id.0) else {
            return false;
        };
        let (state, number, lease) = (row.task.state, row.number, row.lease);
        match state {
            TaskState::Pending => {
                self.leave(id.0);
                self.free_place(id.0, now);
            }
            TaskState::Processing => {
                if let Some(token) = lease {
                    self.close_one(token, id.0);
                }
                self.free_place(id.0, now);
            }
            TaskState::Failed => {
                if let Some(queue) = self.queues.get_mut(&number) {
                    queue.counts.failed -= 1;
                }
            }
            TaskState::Done => {}
        }
        self.delete(id.0);
        true
    }

    /// A task that cannot be had any more leaves the store, and is counted as
    /// discarded.
    ///
    /// # Errors
    /// When its queue is unknown.
    pub fn lose_task(&mut self, id: TaskId, now: Timestamp) -> Result<()> {
        let row = self.rows.get(&id.0).or_else(|| self.done.get(&id.0));
        let Some((number, state)) = row.map(|row| (row.number, row.task.state)) else {
            return Ok(());
        };
        self.forget_task(id, now);
        if state != TaskState::Done {
            self.queue_mut(number)?.counters.discarded += 1;
        }
        Ok(())
    }
}
