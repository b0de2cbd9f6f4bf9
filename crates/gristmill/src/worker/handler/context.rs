//! What a handler knows of its task and its surroundings.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gristmill_core::{
    ClaimedTask, FollowUp, Headers, Outcome, Payload, QueueName, SettleAnswer, Settlement, TaskId,
    Timestamp, Token, Why, WorkerId,
};
use serde::Serialize;

use crate::draft::{TRACEPARENT, TRACESTATE};
use crate::inside::{Transaction, Within};
use crate::worker::handler::checkpoint::Notes;
use crate::worker::heartbeat::lease::Lease;
use crate::{Error, IntoPut, Mill};

/// A handler's surroundings: everything about its attempt but the payload.
/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Context {
    /// The queue.
    pub queue: QueueName,
    /// The worker.
    pub worker: WorkerId,
    /// The task's number.
    pub id: TaskId,
    /// Which run this is, counted from 1.
    pub attempt: u32,
    /// Claims ever, this one included: a fencing number that never falls. Pass
    /// it to whatever must refuse a worker that was thought dead.
    pub claims: u32,
    /// When the attempt before this one fell due.
    pub prev_run_at: Option<Timestamp>,
    /// Other live leases of the task's group, on queues with `count` or
    /// `slots`.
    pub concurrent: Option<u32>,
    /// The task's number below the queue's `slots`, unique among the group's
    /// live leases.
    pub slot: Option<u32>,
    /// How long the handler may take.
    pub timeout: Duration,
    /// When that time is over, by the worker's clock.
    pub deadline: Instant,
    task: Arc<ClaimedTask>,
    lease: Arc<Lease>,
    follow_ups: Arc<Mutex<Vec<FollowUp>>>,
    /// What is kept for the next attempt, once somebody asked.
    notes: Arc<tokio::sync::Mutex<Option<Notes>>>,
    /// What the handler returns.
    returned: Arc<Mutex<Option<Payload>>>,
}

impl Context {
    pub(crate) fn new(
        queue: QueueName,
        worker: WorkerId,
        task: Arc<ClaimedTask>,
        lease: Arc<Lease>,
        (timeout, deadline): (Duration, Instant),
    ) -> Self {
        Context {
            queue,
            worker,
            id: task.id,
            attempt: task.attempt,
            claims: task.claims,
            prev_run_at: task.prev_run_at,
            concurrent: task.concurrent,
            slot: task.slot,
            timeout,
            deadline,
            task,
            lease,
            follow_ups: Arc::default(),
            notes: Arc::default(),
            returned: Arc::default(),
        }
    }

    /// The mill, to put and to look.
    #[must_use]
    pub fn mill(&self) -> &Mill {
        &self.lease.mill
    }

    /// The task's data as it was put.
    #[must_use]
    pub fn payload(&self) -> &Payload {
        &self.task.payload
    }

    /// How often the task came back before.
    #[must_use]
    pub fn returns(&self) -> u32 {
        self.task.returns()
    }

    /// What the task is about.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.task.key.as_deref()
    }

    /// What it is counted with while it runs.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.task.group.as_deref()
    }

    /// Who produced it.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.task.source.as_deref()
    }

    /// The small facts that travel with it.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        &self.task.headers
    }

    /// The W3C trace context it was put with.
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        self.task.headers.get(TRACEPARENT).map(String::as_str)
    }

    /// The lease's token. Whoever has it can settle this task.
    #[must_use]
    pub fn token(&self) -> Token {
        self.lease.token
    }

    /// Puts another task in the same step that settles this one as done: both
    /// happen or neither. Nothing is put when the attempt ends otherwise. Where
    /// the store refuses it (an unknown queue, a payload that is too large),
    /// the attempt is on record as an error with that reason, or as failed
    /// where no repeating cures it, and none of its follow-ups is put.
    ///
    /// It is a task, or a [`Put`](crate::Put) with more said about it:
    /// `context.follow_up(Put::of(task).delay(minute))?`.
    ///
    /// # Errors
    /// When the task has no form as a payload, its queue's name cannot be used, or
    /// it has two starts.
    pub fn follow_up(&self, task: impl IntoPut) -> Result<(), Error> {
        let draft = task.into_put().into_draft()?;
        let (queue, mut task) = draft.finish_for(&self.lease.mill)?;
        if !task.headers.contains_key(TRACEPARENT) {
            // What it causes belongs to the same trace.
            for name in [TRACEPARENT, TRACESTATE] {
                if let Some(value) = self.task.headers.get(name) {
                    task.headers.insert(name.to_owned(), value.clone());
                }
            }
        }
        self.follow_ups
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(FollowUp { queue, task }.put_by(self.task.id, self.lease.mill.store().limits()));
        Ok(())
    }

    /// Says how far the handler is, for whoever looks (`gristmill show`, `list --state
    /// processing`, `workers`, the dashboard): so many done, of so many where that is
    /// known, and a few words (256 bytes; the rest is cut). The last word counts. It goes
    /// to the store with the heartbeat, at most once a second, so this may be called for
    /// every row of a million: it waits for nobody and never fails. It is over with the
    /// attempt; what the next one should know is a [`Context::checkpoint`].
    ///
    /// ```
    /// # use gristmill::prelude::*;
    /// # fn import(context: &Context, rows: &[u8]) {
    /// for (n, row) in (0..).zip(rows) {
    ///     context.progress(n, rows.len() as u64, "rows");
    /// }
    /// # }
    /// ```
    pub fn progress(&self, done: u64, total: impl Into<Option<u64>>, message: &str) {
        self.lease.news.say(self.id, done, total.into(), message);
    }

    /// Returns a value for whoever waits for the task ([`Put::wait`](crate::Put::wait))
    /// or asks for it ([`Mill::result`]), instead of one said before: kept when the
    /// attempt ends as done, as long as the queue says. At most 64 KiB as JSON.
    ///
    /// A handler of one task may return [`Json`](crate::worker::Json) instead.
    ///
    /// # Errors
    /// When the value cannot be written as JSON, or is too large.
    pub fn result(&self, value: &impl Serialize) -> Result<(), Error> {
        let json = serde_json::to_vec(value).map_err(|e| {
            Error::Encode(Why::from("the result cannot be written as JSON").caused_by(e))
        })?;
        self.result_payload(Payload::json(json))
    }

    /// As [`Context::result`], with bytes as they are.
    ///
    /// # Errors
    /// When there are too many.
    pub fn result_payload(&self, value: Payload) -> Result<(), Error> {
        if let Some(why) = self.mill().store().limits().refuse_result(&value) {
            return Err(Error::Encode(why.into()));
        }
        *self.returned.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        Ok(())
    }

    /// Whether whoever put the task waits for its end. A duplicate may have said so
    /// since it was claimed; the store knows.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.task.settings.is_wanted()
    }

    /// Settles this task as done, follow-ups included, inside your own
    /// transaction on the store's file or database: your effect and the task's end
    /// come true together, which makes the effect exactly-once. Await it (or, in a
    /// transaction of SQLite, say [`Within::now`]), commit, say `committed()` on
    /// what it gave, and return `Ok`.
    ///
    /// On PostgreSQL commit soon: the lease cannot be prolonged until then, and
    /// tasks that were claimed together with this one may run again.
    ///
    /// It fails when the store is another, the settlement itself fails, a follow-up
    /// is refused (nothing is settled then), or the lease was lost: then roll back,
    /// for another worker has the task. What fits: see [`Transaction`].
    pub fn complete_in<Tx: Transaction>(&self, transaction: Tx) -> Within<Tx, ()> {
        let settlement = self.settlement(Outcome::Done);
        Within::settle(self.lease.mill.clone(), transaction, settlement, still_held)
    }

    /// Whether the handler should stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.lease.cancelled(self.id).is_some()
    }

    /// Returns when the handler should stop: its lease was lost, an operator
    /// cancelled the task, its time is over, or the worker stops.
    pub async fn cancelled(&self) {
        self.lease.until_cancelled(self.id).await;
    }

    pub(crate) fn task(&self) -> &Arc<ClaimedTask> {
        &self.task
    }

    pub(crate) fn noted(&self) -> &tokio::sync::Mutex<Option<Notes>> {
        &self.notes
    }

    pub(crate) fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }

    /// What is told to the store; done brings the follow-ups along.
    pub(crate) fn settlement(&self, outcome: Outcome) -> Settlement {
        self.lease.news.forget(self.id);
        let mut settlement = Settlement::new(self.id, self.lease.token, outcome);
        if settlement.outcome == Outcome::Done {
            // Cloned: a settlement may have to be repeated.
            let follow_ups = self.follow_ups.lock().unwrap_or_else(PoisonError::into_inner);
            settlement.follow_ups.clone_from(&follow_ups);
            let returned = self.returned.lock().unwrap_or_else(PoisonError::into_inner);
            settlement.result.clone_from(&returned);
        }
        settlement
    }
}

/// Whether the one settlement was recorded.
fn still_held(answers: &[SettleAnswer]) -> Result<(), Error> {
    match answers.first() {
        Some(SettleAnswer::LeaseLost | SettleAnswer::Gone) | None => Err(Error::LeaseLost),
        Some(SettleAnswer::Recorded { .. } | SettleAnswer::AlreadyRecorded) => Ok(()),
    }
}
