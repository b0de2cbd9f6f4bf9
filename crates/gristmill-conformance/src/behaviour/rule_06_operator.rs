//! Rule 6, the part on operators: a retry by hand takes the waiting place or
//! says which task holds it.

use gristmill_core::{
    Action, Operation, OperationAnswer, Outcome, QueueName, Selection, StandingPlace, State,
    TaskFilter, TaskId, Unique,
};

use crate::fixture::Fixture;
use crate::shape::{Shape, task};

async fn failed(f: &Fixture, q: &QueueName, text: &str) -> TaskId {
    let id = f.enqueue(q, task(text).keyed("k")).await;
    let held = f.claim_one(q).await;
    assert_eq!(held.id, id);
    f.end(&held, Outcome::Fail("never".to_owned())).await;
    id
}

pub(super) async fn rule_06_an_operators_retry_takes_the_waiting_place(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = failed(f, &q, "one").await;
    assert_eq!(f.operate_one(Action::Retry, id).await, OperationAnswer::Moved);
    assert_eq!(f.places(&q, "k").await, [(id, StandingPlace::Waiting)]);
    let put = f.put(&q, task("two").keyed("k")).await;
    assert_eq!(put.id(), Some(id), "a put is a duplicate of it");
    assert_eq!(f.claim_one(&q).await.id, id);
    assert_eq!(f.places(&q, "k").await, [(id, StandingPlace::InFlight)]);
}

pub(super) async fn rule_06_a_retry_of_a_taken_place_is_a_duplicate(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = failed(f, &q, "one").await;
    let waiting = f.enqueue(&q, task("two").keyed("k")).await;
    let before = (f.the(id).await, f.stats(&q).await);
    let answer = f.operate_one(Action::Retry, id).await;
    assert_eq!(answer, OperationAnswer::DuplicateOf(waiting));
    assert_eq!((f.the(id).await, f.stats(&q).await), before, "it stays failed");
    f.operate(Action::Cancel, &[waiting]).await;
    assert_eq!(f.operate_one(Action::Retry, id).await, OperationAnswer::Moved);
}

pub(super) async fn rule_06_a_retry_waits_behind_the_one_in_flight(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = failed(f, &q, "one").await;
    f.enqueue(&q, task("two").keyed("k")).await;
    let running = f.claim_one(&q).await;
    assert_eq!(f.operate_one(Action::Retry, id).await, OperationAnswer::Moved);
    assert!(f.the(id).await.blocked);
    f.claim_none(&q).await;
    f.end(&running, Outcome::Done).await;
    assert_eq!(f.claim_one(&q).await.id, id);
}

pub(super) async fn rule_06_under_unique_active_a_retry_meets_the_one_in_flight(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.unique = Some(Unique::Active)).await;
    let id = failed(f, &q, "one").await;
    let other = f.enqueue(&q, task("two").keyed("k")).await;
    let running = f.claim_one(&q).await;
    let answer = f.operate_one(Action::Retry, id).await;
    assert_eq!(answer, OperationAnswer::DuplicateOf(other));
    f.end(&running, Outcome::Done).await;
    assert_eq!(f.operate_one(Action::Retry, id).await, OperationAnswer::Moved);
}

pub(super) async fn rule_06_of_many_failed_of_a_key_one_is_retried(f: &mut Fixture) {
    let q = f.queue("q").await;
    let mut ids = Vec::new();
    for text in ["one", "two", "three"] {
        ids.push(failed(f, &q, text).await);
    }
    let all = Operation {
        action: Action::Retry,
        selection: Selection::Matching {
            filter: TaskFilter { queue: Some(q.clone()), ..TaskFilter::default() },
            after: None,
        },
        limit: 100,
        by: "operator".to_owned(),
        note: None,
        start: gristmill_core::Start::Now,
    };
    let report = f.store.operate(all).await.expect("an operation");
    let first = OperationAnswer::DuplicateOf(ids[0]);
    let wanted = [(ids[0], OperationAnswer::Moved), (ids[1], first), (ids[2], first)];
    assert_eq!(report.answers, wanted, "nothing is merged or dropped");
    let states: Vec<_> = f.all().await.iter().map(|task| task.state).collect();
    assert_eq!(states, [State::Pending, State::Failed, State::Failed]);
}
