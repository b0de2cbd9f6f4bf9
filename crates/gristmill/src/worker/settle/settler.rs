//! The settler: gathers what attempts came to, and tells the store many at
//! once.
//!
//! A settlement waits at most a millisecond for company, and not at all when
//! nothing runs behind it. While the store is busy with some, others gather.
//! One that somebody's open transaction holds up waits aside.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_core::policy::refused_follow_up::{Instead, instead};
use gristmill_core::{
    AttemptEnd, Became, ClaimedTask, Limits, Outcome, PutAnswer, QueueName, Refusal, SettleAnswer,
    Settlement, State, Store, StoreError, TaskId, WorkerId,
};
use tokio::sync::Notify;

use crate::outage::{Outage, Part};
use crate::pause::Pause;
use crate::timer::Timer;
use crate::worker::claim::served::Served;
use crate::worker::control::left::Left;
use crate::worker::control::report::{FailedTask, SettledTask, WorkReport};
use crate::worker::control::stop::{Phase, Stop};
use crate::worker::handler::context::Context;
use crate::worker::heartbeat;
use crate::worker::run::attempt;
use crate::worker::run::hand::Hand;
use crate::worker::settle::aside::Aside;
use crate::worker::settle::pending::{Asked, Pending, tend};

/// How long a settlement waits for others. Always by the machine: it decides
/// nothing but how many go together.
const COMPANY: Duration = Duration::from_millis(1);

pub(crate) type OnFailed = Arc<dyn Fn(FailedTask<'_>) + Send + Sync>;
pub(crate) type OnSettled = Arc<dyn Fn(SettledTask<'_>) + Send + Sync>;

#[derive(Default)]
struct Waiting {
    list: Vec<Pending>,
    since: Option<Instant>,
    /// Nothing runs behind it: do not wait for company.
    urgent: bool,
    closed: bool,
}

/// Where settlements gather.
pub(crate) struct Settler {
    waiting: Mutex<Waiting>,
    wake: Notify,
    aside: Aside,
    report: Mutex<WorkReport>,
    /// Settlements that the store was asked for and has not answered.
    asked: AtomicU64,
    /// What the stop gave up.
    left: Mutex<Left>,
    heartbeat: heartbeat::Handle,
    outage: Arc<Outage>,
    worker: WorkerId,
    on_failed: Option<OnFailed>,
    on_settled: Option<OnSettled>,
}

impl Settler {
    pub(crate) fn new(
        heartbeat: heartbeat::Handle,
        outage: Arc<Outage>,
        worker: WorkerId,
        (on_failed, on_settled): (Option<OnFailed>, Option<OnSettled>),
    ) -> Self {
        Settler {
            waiting: Mutex::default(),
            wake: Notify::new(),
            aside: Aside::default(),
            report: Mutex::default(),
            asked: AtomicU64::new(0),
            left: Mutex::default(),
            heartbeat,
            outage,
            worker,
            on_failed,
            on_settled,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn timer(&self) -> &Timer {
        self.heartbeat.timer()
    }

    fn count(&self, change: impl FnOnce(&mut WorkReport)) {
        change(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn report(&self) -> WorkReport {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is not on record yet.
    pub(crate) fn unsettled(&self) -> Left {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for pending in &self.lock().list {
            left.unsettled(&pending.context.queue, pending.context.id);
        }
        // They have no names while the store has them.
        left.unsettled += self.asked.load(Ordering::Acquire) + self.aside.waiting();
        left
    }

    pub(crate) fn slow_cycle(&self) {
        self.count(|report| report.slow_cycles += 1);
    }

    /// An attempt ended with what its handler returned, if it did, in time or
    /// late. A cancel outweighs it.
    pub(crate) fn ended(
        &self,
        hand: &Hand,
        context: Context,
        said: Option<Outcome>,
        late: bool,
        urgent: bool,
    ) {
        let why = hand.lease.cancelled(context.id);
        match attempt::end(why, said, late, context.timeout) {
            Some(outcome) => self.push(hand, context, outcome, urgent),
            None => {
                self.count(|report| report.lease_lost += 1);
                self.close(&context, 1);
            }
        }
    }

    /// A task goes back as if it had not been claimed.
    pub(crate) fn give_back(&self, hand: &Hand, context: Context) {
        self.push(hand, context, Outcome::Release { at: None, started: false }, true);
    }

    fn push(&self, hand: &Hand, context: Context, outcome: Outcome, urgent: bool) {
        let settlement = context.settlement(outcome);
        let mut waiting = self.lock();
        let wake = waiting.list.is_empty() || (urgent && !waiting.urgent);
        waiting.list.push(Pending { served: hand.served.clone(), context, settlement });
        waiting.since.get_or_insert_with(Instant::now);
        waiting.urgent |= urgent;
        drop(waiting);
        if wake {
            self.wake.notify_one();
        }
    }

    /// Nothing more will come.
    pub(crate) fn finish(&self) {
        self.lock().closed = true;
        self.wake.notify_one();
    }

    /// Settles until nothing more will come.
    pub(crate) async fn run(&self, store: &dyn Store, stop: &Stop) {
        let over = AtomicBool::new(false);
        let gathered = async {
            self.gather(store, stop).await;
            over.store(true, Ordering::Release);
            self.aside.wake();
        };
        let aside = async {
            loop {
                self.settle_aside(store, stop).await;
                if over.load(Ordering::Acquire) {
                    return self.settle_aside(store, stop).await;
                }
                self.aside.woken().await;
            }
        };
        tokio::join!(gathered, aside);
    }

    async fn gather(&self, store: &dyn Store, stop: &Stop) {
        loop {
            let due = {
                let waiting = self.lock();
                match waiting.since {
                    None if waiting.closed => return,
                    None => None,
                    Some(since) if waiting.urgent || waiting.closed => Some(since),
                    Some(since) => Some(since + COMPANY),
                }
            };
            match due {
                None => self.wake.notified().await,
                Some(due) if due > Instant::now() => {
                    tokio::select! {
                        () = tokio::time::sleep_until(due.into()) => {}
                        () = self.wake.notified() => {}
                    }
                }
                Some(_) => self.flush(store, stop).await,
            }
        }
    }

    /// Tells the store everything that waits.
    pub(crate) async fn flush(&self, store: &dyn Store, stop: &Stop) {
        let mut list = {
            let mut waiting = self.lock();
            (waiting.since, waiting.urgent) = (None, false);
            std::mem::take(&mut waiting.list)
        };
        list = self.aside.join(list);
        let most = store.limits().settlements.max(1);
        while !list.is_empty() {
            let rest = list.split_off(list.len().min(most));
            self.settle(store, stop, list).await;
            list = rest;
        }
    }

    /// Settles, again and again while the store is away: a settlement may be
    /// repeated, and the lease is extended meanwhile.
    async fn settle(&self, store: &dyn Store, stop: &Stop, list: Vec<Pending>) {
        let mut pause = Pause::of(&self.worker, usize::MAX);
        loop {
            let settlements = list.iter().map(|pending| pending.settlement.clone()).collect();
            tend(&list, self.timer().now());
            let answers = tokio::select! {
                // First of all: a store that refuses at once would be asked for
                // ever.
                biased;
                () = stop.reached(Phase::GivesUp) => return self.give_up(&list),
                answers = self.ask(store, settlements) => answers,
            };
            match answers {
                Ok(answers) => {
                    self.outage.answered(Part::Settlements, self.timer());
                    return self.recorded(list, answers, store.limits());
                }
                Err(StoreError::Held(_)) => {
                    let open = list.len();
                    tracing::warn!(open, "somebody's open transaction holds up settlements");
                    return self.aside.add(list);
                }
                Err(error) if Outage::means(&error) => {
                    let open = list.len();
                    tracing::debug!(error = %error.whole(), open, "not settled yet; trying again");
                    self.outage.failed(Part::Settlements, &error, self.timer().now());
                    tokio::select! {
                        () = pause.wait(self.timer()) => {}
                        () = stop.reached(Phase::GivesUp) => {}
                    }
                }
                // One that cannot be settled must not take the others along.
                Err(error) if list.len() > 1 && error != StoreError::Closed => {
                    for pending in list {
                        Box::pin(self.settle(store, stop, vec![pending])).await;
                    }
                    return;
                }
                Err(error) => return self.cannot(&list, &error),
            }
        }
    }

    /// Asks the store, and counts what it was asked for until it answers.
    async fn ask(
        &self,
        store: &dyn Store,
        settlements: Vec<Settlement>,
    ) -> Result<Vec<SettleAnswer>, StoreError> {
        let _asked = Asked::new(&self.asked, settlements.len() as u64);
        store.settle(settlements).await
    }

    /// The stop waits no longer for the store.
    fn give_up(&self, list: &[Pending]) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        for pending in list {
            left.unsettled(&pending.context.queue, pending.context.id);
        }
        drop(left);
        for pending in list {
            self.close(&pending.context, 1);
        }
    }

    fn cannot(&self, list: &[Pending], error: &StoreError) {
        let open = list.len();
        tracing::error!(error = %error.whole(), open, "cannot be settled; the lease will run out");
        for pending in list {
            self.close(&pending.context, 1);
        }
    }

    /// Settles what is aside, by turns, until nothing is. Its leases are
    /// extended meanwhile.
    pub(crate) async fn settle_aside(&self, store: &dyn Store, stop: &Stop) {
        while let Some(turn) = self.aside.next() {
            let settlements = turn.iter().map(|pending| pending.settlement.clone()).collect();
            tend(&turn, self.timer().now());
            tokio::select! {
                biased;
                () = stop.reached(Phase::GivesUp) => {
                    self.aside.settled(&turn);
                    self.give_up(&turn);
                }
                // The store itself waits a while for the transaction's end.
                answer = store.settle(settlements) => match answer {
                    Err(StoreError::Held(_)) => self.aside.again(turn),
                    Ok(answers) => {
                        self.outage.answered(Part::Settlements, self.timer());
                        self.aside.settled(&turn);
                        self.recorded(turn, answers, store.limits());
                    }
                    // They fare like any other now.
                    Err(_) => {
                        self.aside.settled(&turn);
                        self.settle(store, stop, turn).await;
                    }
                },
            }
        }
    }

    /// Counts what the store answered. In runs of equal kind, for there may be
    /// a thousand and each count has a lock.
    fn recorded(&self, list: Vec<Pending>, answers: Vec<SettleAnswer>, limits: &Limits) {
        let mut report = WorkReport::default();
        let mut closing: Option<(Context, usize)> = None;
        let mut well: Option<(Arc<Served>, u64)> = None;
        for (mut pending, answer) in list.into_iter().zip(answers) {
            if let SettleAnswer::Recorded { follow_ups, .. } = &answer {
                let Settlement { outcome, follow_ups: asked, .. } = &pending.settlement;
                if let Some(Instead { outcome, .. }) = instead(outcome, asked, follow_ups, limits) {
                    // What is on record, not what the handler said.
                    pending.settlement.outcome = outcome;
                }
            }
            count(&mut report, &pending, &answer);
            self.tell_settled(&pending, &answer);
            let Pending { served, context, settlement } = pending;
            match &settlement.outcome {
                Outcome::Release { started: false, .. } => {}
                Outcome::Done => match &mut well {
                    Some((same, tasks)) if Arc::ptr_eq(same, &served) => *tasks += 1,
                    other => {
                        if let Some((served, tasks)) = other.replace((served, 1)) {
                            well_done(&served, tasks);
                        }
                    }
                },
                outcome => {
                    served.numbers.ended(outcome.end(), 1);
                    let became = match &answer {
                        SettleAnswer::Recorded { became, .. } => Some(*became),
                        _ => None,
                    };
                    let release = matches!(outcome, Outcome::Release { .. });
                    let back = matches!(became, Some(Became::Pending { .. }));
                    served.count(outcome.error(), back && !release);
                    if became == Some(Became::Failed) {
                        self.failed(&served, &context, outcome);
                    }
                }
            }
            match &mut closing {
                Some((same, tasks)) if Arc::ptr_eq(same.lease(), context.lease()) => *tasks += 1,
                other => {
                    if let Some((context, tasks)) = other.replace((context, 1)) {
                        self.close(&context, tasks);
                    }
                }
            }
        }
        self.count(|all| all.add(&report));
        if let Some((served, tasks)) = well {
            well_done(&served, tasks);
        }
        // The last: whoever waits for it reads the numbers next.
        if let Some((context, tasks)) = closing {
            self.close(&context, tasks);
        }
    }

    fn tell_settled(&self, pending: &Pending, answer: &SettleAnswer) {
        let Some(on_settled) = &self.on_settled else { return };
        let became = match answer {
            SettleAnswer::Recorded { became, .. } => Some(*became),
            _ => None,
        };
        let context = &pending.context;
        let settled = SettledTask { context, outcome: &pending.settlement.outcome, became };
        let told = std::panic::AssertUnwindSafe(|| on_settled(settled));
        if std::panic::catch_unwind(told).is_err() {
            tracing::error!(queue = %context.queue, id = %context.id, "on_settled panicked");
        }
    }

    fn failed(&self, served: &Served, context: &Context, outcome: &Outcome) {
        self.count(|report| report.failed += 1);
        let error = outcome.error().unwrap_or_else(|| "attempts are used up".to_owned());
        self.tell_failed(&served.name, context.task(), &error);
    }

    /// Tells of tasks that failed by their last lease's end: no settlement did
    /// it, so whoever noticed tells.
    pub(crate) async fn tell_expired(&self, store: &dyn Store, ids: Vec<TaskId>) {
        for id in ids {
            match store.get(id).await {
                Ok(Some(task)) if task.state == State::Failed => {
                    let error = task.error.clone().unwrap_or_default();
                    let queue = task.queue.clone();
                    self.tell_failed(&queue, &ClaimedTask::from(task), &error);
                }
                // An operator was quicker.
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%id, %error, "a task failed for good, and nobody was told");
                }
            }
        }
    }

    fn tell_failed(&self, queue: &QueueName, task: &ClaimedTask, error: &str) {
        let id = task.id;
        tracing::warn!(%queue, %id, %error, "a task failed for good");
        if let Some(on_failed) = &self.on_failed {
            let failed = FailedTask { queue, task, error };
            let told = std::panic::AssertUnwindSafe(|| on_failed(failed));
            if std::panic::catch_unwind(told).is_err() {
                tracing::error!(%queue, %id, "on_failed panicked");
            }
        }
    }

    /// So many tasks are settled or given up; the last one frees their lease.
    fn close(&self, context: &Context, tasks: usize) {
        if context.lease().close(tasks) {
            self.heartbeat.let_go(context.lease().token);
        }
    }
}

/// So many attempts were done.
fn well_done(served: &Served, tasks: u64) {
    served.count_done(tasks);
    served.numbers.ended(AttemptEnd::Done, tasks);
}

fn count(report: &mut WorkReport, pending: &Pending, answer: &SettleAnswer) {
    match (answer, &pending.settlement.outcome) {
        (SettleAnswer::LeaseLost, _) => report.lease_lost += 1,
        (SettleAnswer::Gone, _) => report.gone += 1,
        (_, Outcome::Release { started: false, .. }) => report.released += 1,
        (_, Outcome::Done) => report.done += 1,
        _ => report.not_done += 1,
    }
    let SettleAnswer::Recorded { follow_ups, .. } = answer else { return };
    for (answer, follow_up) in follow_ups.iter().zip(&pending.settlement.follow_ups) {
        match answer {
            // The one it was taken back for is told by itself.
            PutAnswer::Refused(Refusal::Undone { .. }) => {}
            PutAnswer::Refused(why) => {
                let (id, queue) = (pending.context.id, &follow_up.queue);
                tracing::error!(%id, %queue, %why, "a follow-up was refused: its task is not done");
                report.follow_ups_refused += 1;
            }
            _ => {}
        }
    }
}
