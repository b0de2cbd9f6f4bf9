//! A store whose calls and answers are written down: what clients of a run speak
//! to.

use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{
    Action, Became, Claim, ClaimRequest, ExtendAnswer, Extension, Fire, FireAnswer, FollowUp,
    NewTask, Operation, OperationAnswer, Outcome, Payload, PutAnswer, PutReport, PutRequest,
    QueueName, ScheduleName, Selection, SettleAnswer, Settlement, Start, Store, StoreError,
    SweepReport, TaskFilter, TaskId, Timestamp, Token, When, WorkerId,
};

use super::event::{Answer, Call, Ending, Follow, Given, How, PutSaid, SettleSaid, Wanted, Went};
use super::journal::Journal;
use super::plan::{RETURNING, queue_name};

/// A store and the journal of who speaks to it.
#[derive(Debug)]
pub struct Noted {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Where it is written down.
    pub journal: Journal,
}

type Result<T> = gristmill_core::Result<T>;

impl Noted {
    /// Makes a call between its two lines.
    async fn make<T>(
        &self,
        call: Call,
        asked: impl Future<Output = Result<T>>,
        say: impl FnOnce(&T) -> Answer,
    ) -> Result<T> {
        let n = self.journal.call(call);
        let answer = asked.await;
        self.journal.answer(
            n,
            match &answer {
                Ok(answer) => say(answer),
                Err(error) => failed(error),
            },
        );
        answer
    }

    /// Puts.
    ///
    /// # Errors
    /// What the store says.
    pub async fn put(&self, queue: &str, tasks: &[Wanted], atomic: bool) -> Result<PutReport> {
        let call =
            Call::Put { queue: queue.to_owned(), tasks: tasks.to_vec(), atomic, transaction: None };
        let tasks = tasks.iter().map(new_task).collect();
        let request = PutRequest { queue: queue_name(queue), tasks, atomic };
        self.make(call, self.store.put(request), |report| {
            Answer::Put(report.answers.iter().map(put_said).collect())
        })
        .await
    }

    /// Claims under a fresh token.
    ///
    /// # Errors
    /// What the store says.
    pub async fn claim(&self, queue: &QueueName, max: usize, worker: &WorkerId) -> Result<Claim> {
        let token = Token::random()?;
        let call =
            Call::Claim { queue: queue.to_string(), max, token: token.to_string(), source: None };
        let request = ClaimRequest {
            queue: queue.clone(),
            max,
            lease: None,
            worker: worker.clone(),
            source: None,
            token,
        };
        self.make(call, self.store.claim(request), claimed).await
    }

    /// Settles one task of a claim of the queue.
    ///
    /// # Errors
    /// What the store says.
    pub async fn settle(
        &self,
        (task, token, queue): (TaskId, Token, &str),
        how: How,
        follow_ups: &[Follow],
    ) -> Result<SettleAnswer> {
        // What is returned names the attempt that returned it.
        let result = (how == How::Done && queue == RETURNING)
            .then(|| Payload::raw(token.to_string().into_bytes()));
        let ending =
            Ending { task: task.0, token: token.to_string(), how, follow_ups: follow_ups.to_vec() };
        let settlement = Settlement {
            follow_ups: follow_ups
                .iter()
                .map(|one| FollowUp { queue: queue_name(&one.queue), task: new_task(&one.task) })
                .collect(),
            result,
            ..Settlement::new(task, token, outcome(how))
        };
        let call = Call::Settle { endings: vec![ending] };
        let settled = async {
            let mut answers = self.store.settle(vec![settlement]).await?;
            answers.pop().ok_or_else(|| StoreError::corrupt("no answer to a settlement".to_owned()))
        };
        self.make(call, settled, |answer| Answer::Settle(vec![settle_said(answer)])).await
    }

    /// Prolongs a lease.
    ///
    /// # Errors
    /// What the store says.
    pub async fn extend(&self, token: Token, lease: Duration) -> Result<ExtendAnswer> {
        let lease_ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        let call = Call::Extend { token: token.to_string(), lease_ms };
        let extended = async {
            let mut answers = self.store.extend(vec![Extension::new(token, lease)]).await?;
            answers.pop().ok_or_else(|| StoreError::corrupt("no answer to an extension".to_owned()))
        };
        let ids = |tasks: &[TaskId]| tasks.iter().map(|id| id.0).collect();
        self.make(call, extended, |answer| match answer {
            ExtendAnswer::Extended { cancelled, lost } => {
                Answer::Extended { cancelled: ids(cancelled), lost: ids(lost) }
            }
            ExtendAnswer::LeaseLost => Answer::LeaseLost,
        })
        .await
    }

    /// An operator's action on named tasks, or on a queue's.
    ///
    /// # Errors
    /// What the store says.
    pub async fn operate(
        &self,
        action: Action,
        tasks: Vec<TaskId>,
        queue: Option<&str>,
        limit: usize,
    ) -> Result<()> {
        let call = Call::Operate {
            action: action.as_str().to_owned(),
            tasks: tasks.iter().map(|id| id.0).collect(),
            queue: queue.map(str::to_owned),
        };
        let selection = match queue {
            None => Selection::Ids(tasks),
            Some(queue) => {
                let filter = TaskFilter { queue: Some(queue_name(queue)), ..TaskFilter::default() };
                Selection::Matching { filter, after: None }
            }
        };
        let operation = Operation {
            action,
            selection,
            limit,
            by: self.journal.name().to_owned(),
            note: None,
            start: gristmill_core::Start::Now,
        };
        let said = |(id, answer): &(TaskId, OperationAnswer)| (id.0, operated(*answer));
        self.make(call, self.store.operate(operation), |report| {
            Answer::Operate(report.answers.iter().map(said).collect())
        })
        .await
        .map(drop)
    }

    /// Stops or resumes a queue's claims.
    ///
    /// # Errors
    /// What the store says.
    pub async fn pause(&self, queue: &str, paused: bool) -> Result<()> {
        let call = Call::Pause { queue: queue.to_owned(), paused };
        let name = queue_name(queue);
        let pausing = self.store.pause_queue(&name, paused, self.journal.name());
        self.make(call, pausing, |()| Answer::Fine).await
    }

    /// Fires one instant of a schedule.
    ///
    /// # Errors
    /// What the store says.
    pub async fn fire(
        &self,
        schedule: &ScheduleName,
        queue: &str,
        instant: Timestamp,
    ) -> Result<FireAnswer> {
        // The same for whoever fires this instant: two tasks of it are seen as two.
        let payload = format!("{schedule}@{}", instant.as_micros());
        let call = Call::Fire {
            schedule: schedule.to_string(),
            queue: queue.to_owned(),
            instant: instant.as_micros(),
            payload: payload.clone(),
        };
        let tasks = vec![NewTask::new(Payload::raw(payload))];
        let fire = Fire { schedule: schedule.clone(), instant, tasks, by_hand: false };
        self.make(call, self.store.fire(fire), |answer| match answer {
            FireAnswer::Fired(answers) => Answer::Put(answers.iter().map(put_said).collect()),
            other => Answer::NotFired(format!("{other:?}")),
        })
        .await
    }

    /// Takes back what is past its lease.
    ///
    /// # Errors
    /// What the store says.
    pub async fn reclaim(&self) -> Result<u64> {
        self.make(Call::Reclaim {}, self.store.reclaim(), |_| Answer::Fine).await
    }

    /// Tidies up.
    ///
    /// # Errors
    /// What the store says.
    pub async fn sweep(&self) -> Result<SweepReport> {
        self.make(Call::Sweep {}, self.store.sweep(), |report| Answer::Swept {
            failed: report.failed.iter().map(|id| id.0).collect(),
        })
        .await
    }
}

fn failed(error: &StoreError) -> Answer {
    Answer::Error { unknown: !error.wrote_nothing(), words: error.to_string() }
}

fn new_task(wanted: &Wanted) -> NewTask {
    NewTask {
        payload: Payload::raw(wanted.payload.clone()),
        key: wanted.key.clone(),
        group: wanted.group.clone(),
        source: wanted.source.clone(),
        priority: wanted.priority,
        start: match wanted.delay_ms {
            0 => Start::Now,
            delay => Start::After(Duration::from_millis(delay)),
        },
        id: wanted.id.clone(),
        ..NewTask::default()
    }
}

fn outcome(how: How) -> Outcome {
    match how {
        How::Done => Outcome::Done,
        How::Error => Outcome::Error("on purpose".to_owned()),
        How::Retry => Outcome::Retry { at: When::After(Duration::ZERO), reason: None },
        How::Fail => Outcome::Fail("on purpose".to_owned()),
        How::Release => Outcome::Release { at: None, started: false },
        How::Cancelled => Outcome::Cancelled,
    }
}

pub(crate) fn put_said(answer: &PutAnswer) -> PutSaid {
    match answer {
        PutAnswer::Enqueued { id } => PutSaid::Enqueued(id.0),
        PutAnswer::Duplicate { id, .. } => PutSaid::Duplicate(id.0),
        PutAnswer::Replaced { id } => PutSaid::Replaced(id.0),
        PutAnswer::Refused(why) => PutSaid::Refused(why.code().to_owned()),
    }
}

fn settle_said(answer: &SettleAnswer) -> SettleSaid {
    match answer {
        SettleAnswer::Recorded { became, follow_ups } => SettleSaid::Recorded {
            went: match became {
                Became::Done => Went::Done,
                Became::Pending { .. } => Went::Pending,
                Became::Failed => Went::Failed,
                Became::Cancelled => Went::Cancelled,
            },
            follow_ups: follow_ups.iter().map(put_said).collect(),
        },
        SettleAnswer::AlreadyRecorded => SettleSaid::AlreadyRecorded,
        SettleAnswer::Gone => SettleSaid::Gone,
        SettleAnswer::LeaseLost => SettleSaid::LeaseLost,
    }
}

fn claimed(claim: &Claim) -> Answer {
    let given = |task: &gristmill_core::ClaimedTask| Given {
        task: task.id.0,
        payload: String::from_utf8_lossy(&task.payload.bytes).into_owned(),
        key: task.key.clone(),
        group: task.group.clone(),
        priority: task.priority,
        run_at: task.run_at.as_micros(),
        attempt: task.attempt,
        claims: task.claims,
        slot: task.slot,
    };
    Answer::Claim {
        tasks: claim.tasks.iter().map(given).collect(),
        lease_ms: u64::try_from(claim.lease.as_millis()).unwrap_or(u64::MAX),
        token: None,
        failed: claim.failed.iter().map(|id| id.0).collect(),
    }
}

fn operated(answer: OperationAnswer) -> String {
    match answer {
        OperationAnswer::Moved => "moved",
        OperationAnswer::CancelRequested => "cancel_requested",
        OperationAnswer::DuplicateOf(_) => "duplicate",
        OperationAnswer::WrongState(_) => "wrong_state",
        OperationAnswer::Held => "held",
        OperationAnswer::Gone => "gone",
    }
    .to_owned()
}
