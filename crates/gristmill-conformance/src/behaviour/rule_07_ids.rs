//! Rule 7, the part on callers' ids: a repeated put is recognised, also when
//! its task is gone.

use gristmill_core::{Action, NewTask, Outcome, Payload, PutAnswer, Refusal, TaskId};

use crate::fixture::Fixture;
use crate::shape::{Shape, secs, task};

fn order() -> NewTask {
    task("order 1").with_id("order-1")
}

fn duplicate_of(answer: &PutAnswer) -> Option<TaskId> {
    match answer {
        PutAnswer::Duplicate { id, .. } => Some(*id),
        _ => None,
    }
}

pub(super) async fn rule_07_a_repeat_under_an_id_is_a_duplicate(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, order().of_source("shop")).await;
    let answer = f.put(&q, order()).await;
    let standing = f.the(id).await;
    let wanted =
        PutAnswer::Duplicate { id, run_at: Some(standing.run_at), source: standing.source };
    assert_eq!(answer, wanted);
    // Twice in one put as well.
    let other = || task("order 2").with_id("order-2");
    let answers = f.put_all(&q, vec![other(), other()]).await;
    assert!(answers[0].is_enqueued());
    assert_eq!(duplicate_of(&answers[1]), answers[0].id());
    assert_eq!(f.all().await.len(), 2);
}

pub(super) async fn rule_07_an_id_is_remembered_when_the_task_is_gone(f: &mut Fixture) {
    let q = f.queue("q").await;
    for (n, outcome) in
        [Some(Outcome::Done), Some(Outcome::Cancelled), None].into_iter().enumerate()
    {
        let put = || task("x").with_id(&format!("id {n}"));
        let id = f.enqueue(&q, put()).await;
        match outcome {
            Some(outcome) => {
                let held = f.claim_one(&q).await;
                f.end(&held, outcome).await;
            }
            None => {
                f.operate(Action::Cancel, &[id]).await;
            }
        }
        assert_eq!(f.get(id).await, None);
        f.store.sweep().await.expect("a sweep");
        let answer = f.put(&q, put()).await;
        assert_eq!(answer, PutAnswer::Duplicate { id, run_at: None, source: None });
    }
    assert!(f.all().await.is_empty());
}

pub(super) async fn rule_07_an_id_is_remembered_in_every_state(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, order()).await;
    let held = f.claim_one(&q).await;
    assert_eq!(duplicate_of(&f.put(&q, order()).await), Some(id), "processing");
    f.end(&held, Outcome::Fail("never".to_owned())).await;
    assert_eq!(duplicate_of(&f.put(&q, order()).await), Some(id), "failed");
    f.operate(Action::Discard, &[id]).await;
    assert_eq!(duplicate_of(&f.put(&q, order()).await), Some(id), "discarded");
}

pub(super) async fn rule_07_another_payload_under_an_id_is_refused(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, order()).await;
    let refused = PutAnswer::Refused(Refusal::IdReused { first: id });
    let same_bytes = NewTask { payload: Payload::raw("order 1"), ..order() };
    for other in [task("order 2").with_id("order-1"), task("").with_id("order-1"), same_bytes] {
        assert_eq!(f.put(&q, other.clone()).await, refused, "{other:?}");
    }
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Done).await;
    assert_eq!(f.put(&q, task("order 2").with_id("order-1")).await, refused, "also when gone");
}

pub(super) async fn rule_07_an_id_is_forgotten_after_its_window(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, order()).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Done).await;
    f.advance(secs(24 * 3600 - 1));
    f.store.sweep().await.expect("a sweep");
    assert_eq!(duplicate_of(&f.put(&q, order()).await), Some(id));
    f.advance(secs(2));
    // With and without a sweep in between.
    let again = f.enqueue(&q, order()).await;
    assert_ne!(again, id);
    f.advance(secs(25 * 3600));
    assert_eq!(f.store.sweep().await.expect("a sweep").forgotten_ids, 1);
    f.enqueue(&q, task("another payload").with_id("order-1")).await;
}

pub(super) async fn rule_07_the_window_is_the_queues(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.id_window = Some(secs(60))).await;
    f.enqueue(&q, order()).await;
    f.advance(secs(59));
    assert!(duplicate_of(&f.put(&q, order()).await).is_some());
    f.advance(secs(2));
    f.enqueue(&q, order()).await;
}

pub(super) async fn rule_07_ids_are_remembered_by_queue(f: &mut Fixture) {
    let (q, r) = (f.queue("q").await, f.queue("r").await);
    f.enqueue(&q, order()).await;
    f.enqueue(&r, task("something else").with_id("order-1")).await;
}

pub(super) async fn rule_07_an_undone_put_forgets_its_id(f: &mut Fixture) {
    let q = f.queue("q").await;
    let answers = f.put_as(&q, vec![order(), task("bad").keyed("")], true).await;
    assert!(matches!(answers[0], PutAnswer::Refused(Refusal::Undone { because: 1 })));
    f.enqueue(&q, task("another payload").with_id("order-1")).await;
}

pub(super) async fn rule_07_an_undone_put_of_one_task_forgets_its_id(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("standing").keyed("k")).await;
    let twin = task("another").keyed("k").with_id("mine");
    let answers = f.put_as(&q, vec![twin], true).await;
    assert!(matches!(&answers[..], [PutAnswer::Duplicate { id: of, .. }] if *of == id));
    f.enqueue(&q, task("a third").with_id("mine")).await;
}

pub(super) async fn rule_07_a_refused_put_forgets_its_id(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.capacity = Some(Some(1))).await;
    let id = f.enqueue(&q, task("first")).await;
    let full = PutAnswer::Refused(Refusal::QueueFull { capacity: 1 });
    assert_eq!(f.put(&q, order()).await, full);
    f.operate(Action::Cancel, &[id]).await;
    f.enqueue(&q, order()).await;
}

pub(super) async fn rule_07_repeats_that_race_enqueue_one(f: &mut Fixture) {
    let q = f.queue("q").await;
    let handles = f.handles().await;
    let mut racing = Vec::new();
    for n in 0..64 {
        let (handle, q) = (handles[n % handles.len()].clone(), q.clone());
        racing.push(tokio::spawn(async move { handle.put(&q, order()).await }));
    }
    let mut answers = Vec::new();
    for racer in racing {
        answers.push(racer.await.expect("a put"));
    }
    assert_eq!(answers.iter().filter(|answer| answer.is_enqueued()).count(), 1, "{answers:?}");
    assert!(answers.iter().all(|answer| answer.id() == answers[0].id()));
}

pub(super) async fn rule_07_a_duplicate_by_key_remembers_its_id(f: &mut Fixture) {
    let q = f.queue("q").await;
    let put = |id: &str, text: &str| task(text).keyed("k").with_id(id);
    let first = f.enqueue(&q, put("a", "x")).await;
    assert_eq!(duplicate_of(&f.put(&q, put("b", "x")).await), Some(first));
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Done).await;
    assert_eq!(duplicate_of(&f.put(&q, put("a", "x")).await), Some(first));
    assert_eq!(duplicate_of(&f.put(&q, put("b", "x")).await), Some(first), "it was answered once");
    let other = f.put(&q, put("b", "y")).await;
    assert_eq!(other, PutAnswer::Refused(Refusal::IdReused { first }));
    // One that is taken back with its neighbours leaves no memory.
    f.enqueue(&q, task("z").keyed("z")).await;
    let too_large = task(&"x".repeat(f.store.limits().payload_bytes + 1));
    let again = || task("z").keyed("z").with_id("c");
    let answers = f.put_as(&q, vec![again(), too_large], true).await;
    assert!(matches!(answers[1], PutAnswer::Refused(_)), "{answers:?}");
    f.claim_ids(&q, 10).await;
    assert!(f.put(&q, again()).await.is_enqueued());
}
