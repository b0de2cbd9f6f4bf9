//! Short forms for the tests that only one store has: names, tasks, and the
//! port's verbs ([`short_verbs!`](crate::short_verbs)), each of which panics when
//! the store errs.

use gristmill_core::{
    Claim, ClaimRequest, NewTask, Outcome, Payload, PutRequest, QueueName, Settlement, Token,
    WorkerId,
};

/// A queue's name.
#[must_use]
pub fn name(queue: &str) -> QueueName {
    crate::shape::name(queue)
}

/// A task with this JSON.
#[must_use]
pub fn task(json: &str) -> NewTask {
    NewTask::new(Payload::json(json.to_owned()))
}

/// A task with this key.
#[must_use]
pub fn keyed(key: &str) -> NewTask {
    NewTask { key: Some(key.to_owned()), ..task("1") }
}

/// A put of these tasks, each for itself.
#[must_use]
pub fn request(queue: &str, tasks: Vec<NewTask>) -> PutRequest {
    PutRequest { queue: name(queue), tasks, atomic: false }
}

/// Asks for so many tasks.
///
/// # Panics
/// When there are no random numbers.
#[must_use]
pub fn claim_request(queue: &str, max: usize) -> ClaimRequest {
    ClaimRequest {
        queue: name(queue),
        max,
        lease: None,
        worker: WorkerId::new("w").expect("a name"),
        source: None,
        token: Token::random().expect("random"),
    }
}

/// The same outcome for all tasks of a claim.
#[must_use]
pub fn settlements(claim: &Claim, outcome: &Outcome) -> Vec<Settlement> {
    let each = claim.tasks.iter();
    each.map(|task| Settlement::new(task.id, claim.token, outcome.clone())).collect()
}

/// Makes `declare`, `put`, `claim`, `done` and `stats` for one type of store.
///
/// A macro, so that a test may give the store itself or an `Arc` of it: for a
/// function over `dyn Store` each of its calls would have to take it apart.
#[macro_export]
macro_rules! short_verbs {
    ($store:ty) => {
        pub(crate) async fn declare(
            store: &$store,
            queue: &str,
            settings: gristmill_core::SettingsPatch,
        ) {
            let declaration = gristmill_core::Declaration {
                settings,
                ..gristmill_core::Declaration::new($crate::short::name(queue))
            };
            gristmill_core::Store::declare_queue(store, declaration).await.expect("declared");
        }

        pub(crate) async fn put(
            store: &$store,
            queue: &str,
            tasks: Vec<gristmill_core::NewTask>,
        ) -> Vec<gristmill_core::PutAnswer> {
            let request = $crate::short::request(queue, tasks);
            gristmill_core::Store::put(store, request).await.expect("put").answers
        }

        pub(crate) async fn claim(
            store: &$store,
            queue: &str,
            max: usize,
        ) -> gristmill_core::Claim {
            let request = $crate::short::claim_request(queue, max);
            gristmill_core::Store::claim(store, request).await.expect("claimed")
        }

        pub(crate) async fn done(
            store: &$store,
            claim: &gristmill_core::Claim,
        ) -> Vec<gristmill_core::SettleAnswer> {
            let all = $crate::short::settlements(claim, &gristmill_core::Outcome::Done);
            gristmill_core::Store::settle(store, all).await.expect("settled")
        }

        pub(crate) async fn stats(store: &$store, queue: &str) -> gristmill_core::QueueStats {
            let all = gristmill_core::Store::stats(store).await.expect("stats");
            all.into_iter().find(|stats| stats.queue.as_str() == queue).expect("the queue")
        }
    };
}
