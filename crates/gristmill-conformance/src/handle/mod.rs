//! A handle on a store under test: the port's verbs in the short forms that
//! behaviours speak, each of which panics when the store errs.

mod reading;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gristmill_core::{
    Claim, ClaimRequest, ClaimedTask, Clock, Declaration, ExtendAnswer, Extension, FollowUp,
    ManualClock, NewTask, Outcome, PutAnswer, PutRequest, QueueName, QueueStats, SettingsPatch,
    SettleAnswer, Settlement, Store, TaskId, Timestamp, Token,
};

use crate::shape::{name, worker};

/// One process's view of a store.
#[derive(Clone)]
pub(crate) struct Handle {
    /// The store itself, for what the short forms do not say.
    pub(crate) store: Arc<dyn Store>,
    /// The clock that all handles of the store share.
    pub(crate) clock: Arc<ManualClock>,
    tokens: Arc<AtomicU64>,
}

/// One claimed task with the token that settles it.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) id: TaskId,
    pub(crate) token: Token,
    pub(crate) task: ClaimedTask,
}

impl Handle {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<ManualClock>) -> Self {
        Handle { store, clock, tokens: Arc::default() }
    }

    /// Another handle of the same clock and line of tokens.
    pub(crate) fn on(&self, store: Arc<dyn Store>) -> Self {
        Handle { store, ..self.clone() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// A token that was not used before.
    pub(crate) fn token(&self) -> Token {
        let n = self.tokens.fetch_add(1, Ordering::Relaxed) + 1;
        // Spread over all bits: a store that keeps only some must be caught.
        let bits = u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        Token::from_bytes(bits.to_be_bytes())
    }

    // ---- queues ----------------------------------------------------------

    /// Declares a queue with the default settings.
    pub(crate) async fn queue(&self, queue: &str) -> QueueName {
        self.queue_with(queue, |_| {}).await
    }

    /// Declares a queue with some settings.
    pub(crate) async fn queue_with(
        &self,
        queue: &str,
        change: impl FnOnce(&mut SettingsPatch),
    ) -> QueueName {
        let mut declaration = Declaration::new(name(queue));
        change(&mut declaration.settings);
        let declared = self.store.declare_queue(declaration).await;
        declared.expect("a declaration").queue.name
    }

    /// An operator's change of one queue's settings.
    pub(crate) async fn override_with(
        &self,
        queue: &QueueName,
        change: impl FnOnce(&mut SettingsPatch),
    ) {
        let mut patch = SettingsPatch::default();
        change(&mut patch);
        let changed = self.store.override_queue(queue, patch, "operator").await;
        changed.expect("an override");
    }

    pub(crate) async fn pause(&self, queue: &QueueName, paused: bool) {
        let answer = self.store.pause_queue(queue, paused, "operator").await;
        answer.expect("a pause");
    }

    pub(crate) async fn stats(&self, queue: &QueueName) -> QueueStats {
        let all = self.store.stats().await.expect("stats");
        let found = all.into_iter().find(|s| s.queue == *queue);
        found.unwrap_or_else(|| panic!("no stats of {queue}"))
    }

    // ---- putting ---------------------------------------------------------

    pub(crate) async fn put(&self, queue: &QueueName, task: NewTask) -> PutAnswer {
        let mut answers = self.put_all(queue, vec![task]).await;
        answers.remove(0)
    }

    pub(crate) async fn put_all(&self, queue: &QueueName, tasks: Vec<NewTask>) -> Vec<PutAnswer> {
        self.put_as(queue, tasks, false).await
    }

    pub(crate) async fn put_as(
        &self,
        queue: &QueueName,
        tasks: Vec<NewTask>,
        atomic: bool,
    ) -> Vec<PutAnswer> {
        let wanted = tasks.len();
        let request = PutRequest { queue: queue.clone(), tasks, atomic };
        let answers = self.store.put(request).await.expect("a put").answers;
        assert_eq!(answers.len(), wanted, "one answer a task: {answers:?}");
        answers
    }

    /// Puts a task that must be enqueued.
    pub(crate) async fn enqueue(&self, queue: &QueueName, task: NewTask) -> TaskId {
        match self.put(queue, task).await {
            PutAnswer::Enqueued { id } => id,
            other => panic!("it was not enqueued but {other:?}"),
        }
    }

    /// Puts tasks that must all be enqueued.
    pub(crate) async fn enqueue_all(&self, queue: &QueueName, tasks: Vec<NewTask>) -> Vec<TaskId> {
        let answers = self.put_all(queue, tasks).await;
        let ids = answers.into_iter().map(|answer| match answer {
            PutAnswer::Enqueued { id } => id,
            other => panic!("it was not enqueued but {other:?}"),
        });
        ids.collect()
    }

    // ---- claiming --------------------------------------------------------

    /// A claim to be changed before it is made.
    pub(crate) fn request(&self, queue: &QueueName, max: usize) -> ClaimRequest {
        ClaimRequest {
            queue: queue.clone(),
            max,
            lease: None,
            worker: worker("w1"),
            source: None,
            token: self.token(),
        }
    }

    pub(crate) async fn take(&self, request: ClaimRequest) -> Claim {
        let token = request.token;
        let claim = self.store.claim(request).await.expect("a claim");
        assert_eq!(claim.token, token, "the claim has the token it was made of");
        claim
    }

    pub(crate) async fn claim(&self, queue: &QueueName, max: usize) -> Claim {
        self.take(self.request(queue, max)).await
    }

    /// Claims at most `max` and keeps only the ids.
    pub(crate) async fn claim_ids(&self, queue: &QueueName, max: usize) -> Vec<TaskId> {
        self.claim_held(queue, max).await.iter().map(|h| h.id).collect()
    }

    pub(crate) async fn claim_held(&self, queue: &QueueName, max: usize) -> Vec<Held> {
        held(self.claim(queue, max).await)
    }

    /// Claims the one task that must be next.
    pub(crate) async fn claim_one(&self, queue: &QueueName) -> Held {
        let mut taken = self.claim_held(queue, 1).await;
        assert_eq!(taken.len(), 1, "one task is claimable in {queue}");
        taken.remove(0)
    }

    /// Asserts that nothing can be claimed now.
    pub(crate) async fn claim_none(&self, queue: &QueueName) {
        let ids = self.claim_ids(queue, 10).await;
        assert!(ids.is_empty(), "nothing is claimable in {queue}: {ids:?}");
    }

    // ---- settling --------------------------------------------------------

    pub(crate) async fn settle(&self, held: &Held, outcome: Outcome) -> SettleAnswer {
        self.settle_as(held.id, held.token, outcome).await
    }

    pub(crate) async fn settle_as(
        &self,
        id: TaskId,
        token: Token,
        outcome: Outcome,
    ) -> SettleAnswer {
        self.settle_full(Settlement::new(id, token, outcome)).await
    }

    pub(crate) async fn settle_full(&self, settlement: Settlement) -> SettleAnswer {
        let answers = self.store.settle(vec![settlement]).await;
        let mut answers = answers.expect("a settlement");
        assert_eq!(answers.len(), 1, "one answer a settlement: {answers:?}");
        answers.remove(0)
    }

    /// Settles with follow-ups on one queue.
    pub(crate) async fn settle_then(
        &self,
        held: &Held,
        outcome: Outcome,
        queue: &QueueName,
        tasks: Vec<NewTask>,
    ) -> SettleAnswer {
        let follow_ups = tasks.into_iter().map(|task| FollowUp { queue: queue.clone(), task });
        self.settle_full(Settlement {
            follow_ups: follow_ups.collect(),
            ..Settlement::new(held.id, held.token, outcome)
        })
        .await
    }

    /// Settles, which must be recorded.
    pub(crate) async fn end(&self, held: &Held, outcome: Outcome) {
        let answer = self.settle(held, outcome).await;
        assert!(answer.is_recorded(), "recorded: {answer:?}");
    }

    pub(crate) async fn extend(&self, token: Token, lease: Duration) -> ExtendAnswer {
        let answers = self.store.extend(vec![Extension::new(token, lease)]).await;
        let mut answers = answers.expect("an extension");
        assert_eq!(answers.len(), 1, "one answer an extension: {answers:?}");
        answers.remove(0)
    }

    pub(crate) async fn reclaim(&self) -> u64 {
        self.store.reclaim().await.expect("a reclaim")
    }
}

/// A claim's tasks, each with its token.
pub(crate) fn held(claim: Claim) -> Vec<Held> {
    let token = claim.token;
    let tasks = claim.tasks.into_iter();
    tasks.map(|task| Held { id: task.id, token, task }).collect()
}
