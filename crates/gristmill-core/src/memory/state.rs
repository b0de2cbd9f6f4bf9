//! What the memory store holds, and the few moves everything else is made of:
//! a task enters the claim order, leaves it, takes and frees its key's place.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use super::changes::Changes;
use super::endings::EndingRecord;
use super::lane::{Entry, Lane};
use super::reported::Reported;
use super::tracked::Tracked;
use crate::name::did_you_mean;
use crate::policy::duplicate::Places;
use crate::policy::outcome::Facts;
use crate::policy::reclaim_guard::{LastSeen, ReclaimGuard};
use crate::{
    Attempt, AttemptEnd, CheckpointMark, Counters, Document, Limits, Minute, Queue, QueueName,
    Result, Schedule, ScheduleName, State as TaskState, StoreError, Task, TaskId, Timestamp, Token,
    WorkerId,
};

/// Tasks, queues and all the rest in plain collections, with the rule of every
/// verb. The memory store is one of these under a lock. A store that keeps its
/// tasks elsewhere may use one as its index: it then runs a verb, writes down
/// what [`State::take_changes`] names, and answers.
#[derive(Debug)]
pub struct State {
    pub(super) limits: Limits,
    pub(super) max_tasks: u64,
    pub(super) max_bytes: usize,
    /// Most bytes of what handlers returned.
    pub(super) max_results: usize,
    pub(super) closed: bool,
    pub(super) next_id: i64,
    pub(super) queues: Tracked<u32, QueueState>,
    pub(super) numbers: HashMap<QueueName, u32>,
    /// Pending, processing and failed tasks.
    pub(super) rows: Tracked<i64, Box<Row>>,
    /// Done and resolved tasks that their queue keeps.
    pub(super) done: Tracked<i64, Box<Row>>,
    /// What came of tasks, and whose end is wanted.
    pub(super) endings: Tracked<i64, EndingRecord>,
    /// The same, by the time they are looked at again.
    pub(super) endings_due: BTreeSet<(Timestamp, i64)>,
    /// Few, and each settlement looks one up: hashing a token costs more than finding it.
    pub(super) leases: BTreeMap<Token, Lease>,
    pub(super) expiring: BTreeSet<(Timestamp, Token)>,
    pub(super) bytes: usize,
    /// What of them handlers returned.
    pub(super) results: usize,
    pub(super) schedules: Tracked<ScheduleName, Schedule>,
    /// Small records, by kind and name.
    pub(super) documents: Tracked<(String, String), Document>,
    pub(super) guard: ReclaimGuard,
    pub(super) monotonic: Duration,
    /// What the last writer saw of the time.
    pub(super) last_seen: Option<LastSeen>,
    /// Queues in which something may have become claimable.
    pub(super) woken: Vec<QueueName>,
    /// A task that somebody waits for has ended.
    pub(super) ended: bool,
    /// What else was touched, for a store that writes it down.
    pub(super) changes: Option<Changes>,
}

/// One stored task and what only the store needs to know of it.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) task: Task,
    /// The payload's size. Its bytes may be elsewhere: then they are missing
    /// in `task`.
    pub(super) payload_len: usize,
    /// What it keeps. The bytes may be elsewhere: then they are missing in `task`.
    pub(super) checkpoint: Option<CheckpointMark>,
    pub(super) number: u32,
    /// Holds the in-flight place rather than the waiting one.
    pub(super) in_flight: bool,
    pub(super) started_releases: u32,
    pub(super) lease: Option<Token>,
    /// The token that last settled it.
    pub(super) settled: Option<Token>,
    /// Counted as delayed.
    pub(super) delayed: bool,
}

impl Row {
    pub(super) fn entry(&self) -> Entry {
        (self.task.priority, self.task.run_at, self.task.id.0)
    }

    /// What it takes of the store's room.
    pub(super) fn bytes(&self) -> usize {
        self.payload_len + self.checkpoint.map_or(0, |mark| mark.bytes)
    }

    pub(super) fn facts(&self) -> Facts {
        Facts {
            id: self.task.id,
            attempts: self.task.attempts,
            claims: self.task.claims,
            expiries: self.task.expiries,
            started_releases: self.started_releases,
            run_at: self.task.run_at,
            prev_run_at: self.task.prev_run_at,
            cancel_requested: self.task.cancel_requested,
        }
    }

    /// Writes the ending attempt into the history.
    pub(super) fn end_attempt(
        &mut self,
        limits: &Limits,
        end: AttemptEnd,
        error: Option<String>,
        now: Timestamp,
    ) {
        let Some(lease) = self.task.lease.take() else {
            return;
        };
        if self.task.history.len() >= limits.history {
            self.task.history.remove(0);
        }
        self.task.history.push(Attempt {
            worker: lease.worker,
            // Not after its end, also when the clock went back meanwhile.
            claimed_at: self.task.claimed_at.unwrap_or(now).min(now),
            ended_at: now,
            end,
            error,
        });
        self.lease = None;
        // A cancel was meant for the run that ends here.
        self.task.cancel_requested = false;
    }
}

/// One claim.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) number: u32,
    pub(super) worker: WorkerId,
    pub(super) claimed_at: Timestamp,
    pub(super) until: Timestamp,
    /// How long it lasts from its last extension on.
    pub(super) length: Duration,
    pub(super) ids: Vec<i64>,
    /// How many of `ids` still carry this token.
    pub(super) open: usize,
    /// The group and slot, on queues with `count` or `slots`.
    pub(super) group: String,
    pub(super) slot: Option<u32>,
    /// How far its tasks are.
    pub(super) progress: Reported,
}

#[derive(Debug)]
pub(super) struct QueueState {
    pub(super) queue: Queue,
    pub(super) lane: Lane,
    pub(super) by_source: HashMap<String, Lane>,
    /// Kept only while claims look at groups.
    pub(super) by_group: BTreeMap<String, Lane>,
    /// How many tasks of each group are under lease. Kept only while that is limited.
    pub(super) leased: HashMap<String, u64>,
    /// When the buckets of the queue's rate are full, by group; the queue's own has no
    /// name. One that is missing is full.
    pub(super) buckets: BTreeMap<String, Timestamp>,
    /// Whose turn it was last, by priority, where claims take turns.
    pub(super) turns: BTreeMap<i16, String>,
    /// Counted as delayed, by the time they fall due.
    pub(super) delayed: BTreeSet<(Timestamp, i64)>,
    pub(super) places: HashMap<String, Places>,
    /// Callers' ids: task, digest, and until when.
    pub(super) ids: HashMap<String, Remembered>,
    pub(super) counts: Counts,
    pub(super) counters: Counters,
    pub(super) minutes: BTreeMap<Timestamp, Minute>,
}

/// A caller's id: the task put under it, its payload's digest, and until when.
pub type Remembered = (TaskId, [u8; 16], Timestamp);

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts {
    pub(super) ready: u64,
    pub(super) blocked: u64,
    pub(super) processing: u64,
    pub(super) failed: u64,
    pub(super) done_kept: u64,
}

impl QueueState {
    /// Adds to the minute's numbers.
    pub(super) fn minute(&mut self, now: Timestamp, count: impl FnOnce(&mut Minute)) {
        let at = now.minute();
        count(self.minutes.entry(at).or_insert_with(|| Minute::new(at)));
    }

    /// The places of a key.
    pub(super) fn places(&self, key: &str) -> Places {
        self.places.get(key).copied().unwrap_or_default()
    }

    /// A task enters the claim order, or stands blocked outside it; whether it entered.
    pub(super) fn enter(&mut self, row: &mut Row, now: Timestamp) -> bool {
        row.task.state = TaskState::Pending;
        if row.task.blocked {
            self.counts.blocked += 1;
            return false;
        }
        let entry = row.entry();
        self.lane.insert(entry);
        if let Some(source) = &row.task.source {
            self.by_source.entry(source.clone()).or_default().insert(entry);
        }
        if self.queue.settings.is_grouped() {
            let group = row.task.group.clone().unwrap_or_default();
            self.by_group.entry(group).or_default().insert(entry);
        }
        row.delayed = row.task.run_at > now;
        if row.delayed {
            self.delayed.insert((row.task.run_at, row.task.id.0));
        } else {
            self.counts.ready += 1;
        }
        true
    }

    /// A pending task leaves the claim order, or its blocked stand.
    pub(super) fn leave(&mut self, row: &mut Row) {
        if row.task.blocked {
            row.task.blocked = false;
            self.counts.blocked -= 1;
            return;
        }
        let entry = row.entry();
        self.lane.remove(entry);
        if let Some(source) = &row.task.source
            && let Some(lane) = self.by_source.get_mut(source)
        {
            lane.remove(entry);
            if lane.is_empty() {
                self.by_source.remove(source);
            }
        }
        if self.queue.settings.is_grouped() {
            let group = row.task.group.as_deref().unwrap_or_default();
            if let Some(lane) = self.by_group.get_mut(group) {
                lane.remove(entry);
                if lane.is_empty() {
                    self.by_group.remove(group);
                }
            }
        }
        if row.delayed {
            self.delayed.remove(&(row.task.run_at, row.task.id.0));
        } else {
            self.counts.ready -= 1;
        }
        row.delayed = false;
    }

    /// Moves a waiting task's key into the in-flight place.
    pub(super) fn take_flight(&mut self, row: &mut Row) {
        if std::mem::replace(&mut row.in_flight, true) {
            return;
        }
        let Some(key) = &row.task.key else {
            return;
        };
        let taken = Places { waiting: None, in_flight: Some(row.task.id) };
        match self.places.get_mut(key) {
            Some(places) => *places = taken,
            None => drop(self.places.insert(key.clone(), taken)),
        }
    }

    /// Frees the place that a task holds; returns who waited behind it.
    pub(super) fn free_place(&mut self, row: &mut Row) -> Option<TaskId> {
        let key = row.task.key.as_ref()?;
        let was_in_flight = std::mem::replace(&mut row.in_flight, false);
        let places = self.places.get_mut(key)?;
        if was_in_flight {
            places.in_flight = None;
        } else {
            places.waiting = None;
        }
        let behind = places.waiting.filter(|_| was_in_flight);
        if *places == Places::default() {
            self.places.remove(key);
        }
        behind
    }

    /// One more task under lease, or one less, where groups are counted.
    pub(super) fn count_leased(&mut self, row: &Row, more: bool) {
        if !self.queue.settings.counts_groups() {
            return;
        }
        let group = row.task.group.as_deref().unwrap_or_default();
        if more {
            *self.leased.entry(group.to_owned()).or_default() += 1;
        } else if let Some(leased) = self.leased.get_mut(group) {
            *leased -= 1;
            if *leased == 0 {
                self.leased.remove(group);
            }
        }
    }
}

impl State {
    pub(super) fn new(
        limits: Limits,
        max_tasks: u64,
        max_bytes: usize,
        max_results: usize,
    ) -> Self {
        State {
            limits,
            max_tasks,
            max_bytes,
            max_results,
            closed: false,
            next_id: 1,
            queues: Tracked::default(),
            numbers: HashMap::new(),
            rows: Tracked::default(),
            done: Tracked::default(),
            endings: Tracked::default(),
            endings_due: BTreeSet::new(),
            leases: BTreeMap::new(),
            expiring: BTreeSet::new(),
            bytes: 0,
            results: 0,
            schedules: Tracked::default(),
            documents: Tracked::default(),
            guard: ReclaimGuard::default(),
            monotonic: Duration::ZERO,
            last_seen: None,
            woken: Vec::new(),
            ended: false,
            changes: None,
        }
    }

    /// The queue's number, or the error that names a similar one.
    pub(super) fn number(&self, queue: &QueueName) -> Result<u32> {
        self.numbers.get(queue).copied().ok_or_else(|| StoreError::UnknownQueue {
            name: queue.to_string(),
            suggestion: self.suggest(queue),
        })
    }

    /// The declared queue that was most likely meant.
    pub(super) fn suggest(&self, queue: &QueueName) -> Option<String> {
        did_you_mean(queue.as_str(), self.numbers.keys().map(QueueName::as_str)).map(str::to_owned)
    }

    pub(super) fn queue_mut(&mut self, number: u32) -> Result<&mut QueueState> {
        self.queues.get_mut(&number).ok_or_else(|| unknown_number(number))
    }

    /// A task enters the claim order, or stands blocked outside it.
    pub(super) fn enter(&mut self, id: i64, now: Timestamp) {
        let Some(row) = self.rows.get_mut(&id) else {
            return;
        };
        let Some(queue) = self.queues.get_mut(&row.number) else {
            return;
        };
        // Of a thousand tasks of one put, once.
        if queue.enter(row, now) && self.woken.last() != Some(&queue.queue.name) {
            self.woken.push(queue.queue.name.clone());
        }
    }

    /// A pending task leaves the claim order, or its blocked stand.
    pub(super) fn leave(&mut self, id: i64) {
        if let Some(row) = self.rows.get_mut(&id)
            && let Some(queue) = self.queues.get_mut(&row.number)
        {
            queue.leave(row);
        }
    }

    /// Frees the place the task holds; a task that waited behind it enters the
    /// claim order.
    pub(super) fn free_place(&mut self, id: i64, now: Timestamp) {
        let Some(row) = self.rows.get_mut(&id) else {
            return;
        };
        let Some(queue) = self.queues.get_mut(&row.number) else {
            return;
        };
        if let Some(behind) = queue.free_place(row) {
            self.leave(behind.0);
            self.enter(behind.0, now);
        }
    }

    /// Deletes a task that is neither pending nor under a lease any more.
    pub(super) fn delete(&mut self, id: i64) -> Option<Box<Row>> {
        let row = self.rows.remove(&id)?;
        self.bytes -= row.bytes();
        Some(row)
    }

    /// Keeps a finished task for reading, if its queue wants that.
    pub(super) fn keep(&mut self, mut row: Box<Row>, now: Timestamp) {
        let Some(queue) = self.queues.get_mut(&row.number) else {
            return;
        };
        if queue.queue.settings.keep_done.is_none() {
            return;
        }
        // Nobody runs it again.
        row.checkpoint = None;
        row.task.checkpoint = None;
        row.task.state = TaskState::Done;
        row.task.resolved_at = Some(now);
        queue.counts.done_kept += 1;
        self.bytes += row.bytes();
        self.done.insert(row.task.id.0, row);
    }

    /// One task less under this token; the last one ends the lease.
    pub(super) fn close_one(&mut self, token: Token, id: i64) {
        let Some(lease) = self.leases.get_mut(&token) else {
            return;
        };
        self.bytes -= lease.progress.forget(id);
        lease.open -= 1;
        let over = (lease.open == 0).then_some(lease.until);
        if let Some(queue) = self.queues.get_mut(&lease.number) {
            if queue.queue.settings.counts_groups()
                && let Some(row) = self.rows.get(&id)
            {
                queue.count_leased(row, false);
            }
            queue.counts.processing -= 1;
            if queue.queue.settings.ends_make_room() && self.woken.last() != Some(&queue.queue.name)
            {
                // Another task may be claimable now.
                self.woken.push(queue.queue.name.clone());
            }
        }
        if let Some(until) = over {
            self.expiring.remove(&(until, token));
            self.leases.remove(&token);
        }
    }
}

/// The error of a task whose queue is not there.
pub(super) fn unknown_number(number: u32) -> StoreError {
    StoreError::corrupt(format!("a task names queue {number}, unknown"))
}
