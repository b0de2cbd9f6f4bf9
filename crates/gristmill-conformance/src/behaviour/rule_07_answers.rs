//! Rule 7, answers: what every put says of each of its tasks, and that the
//! answers come true together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill_core::{
    NewTask, OnDuplicate, PutAnswer, PutRequest, Refusal, Start, State, StoreError, TaskId,
};

use crate::fixture::Fixture;
use crate::shape::{Shape, name, plain, secs, task};

pub(super) async fn rule_07_an_enqueued_task_stands_with_every_field(f: &mut Fixture) {
    let q = f.queue("q").await;
    let new = task("{\"a\":1}").keyed("k").in_group("g").of_source("s").at_priority(-7);
    let new = NewTask {
        start: Start::At(f.now().before(secs(3))),
        ..new.with_header("traceparent", "00-ab-01").with_header("ü", "ß ✓").with_id("mine")
    };
    let id = f.enqueue(&q, new.clone()).await;
    let shown = f.the(id).await;
    assert_eq!((shown.id, &shown.queue, shown.state), (id, &q, State::Pending));
    assert_eq!((&shown.payload, &shown.headers), (&new.payload, &new.headers));
    assert_eq!((&shown.key, &shown.group, &shown.source), (&new.key, &new.group, &new.source));
    assert_eq!((shown.priority, shown.created_at), (-7, f.now()));
    assert_eq!(shown.run_at, f.now().before(secs(3)));
    assert_eq!((shown.attempts, shown.claims, shown.expiries), (0, 0, 0));
    assert_eq!((shown.claimed_at, &shown.lease, &shown.error), (None, &None, &None));
    assert!(shown.history.is_empty() && shown.note.is_none() && !shown.blocked);
    assert_eq!(f.all().await, std::slice::from_ref(&shown), "listed as it is shown");
    f.advance(secs(1));
    let held = f.claim_one(&q).await.task;
    assert_eq!((&held.payload, &held.headers), (&new.payload, &new.headers));
    assert_eq!((&held.key, &held.group, &held.source), (&new.key, &new.group, &new.source));
    assert_eq!((held.priority, held.created_at, held.run_at), (-7, shown.created_at, shown.run_at));
    assert_eq!((held.concurrent, held.slot, held.alone), (None, None, false));
}

pub(super) async fn rule_07_ids_increase_and_nothing_else_takes_one(f: &mut Fixture) {
    let (q, r) = (f.queue("q").await, f.queue_with("r", |s| s.capacity = Some(Some(1))).await);
    let mut ids = f.enqueue_all(&q, plain(3)).await;
    ids.push(f.enqueue(&r, task("k").keyed("k")).await);
    let _ = f.put(&r, task("k").keyed("k")).await;
    let _ = f.put(&r, task("full")).await;
    let _ = f.put(&q, task("x").keyed("")).await;
    f.put_as(&q, vec![task("a"), task("b").keyed("")], true).await;
    ids.push(f.enqueue(&q, task("next")).await);
    let first = ids[0].0;
    let wanted: Vec<TaskId> = (0..5).map(|n| TaskId(first + n)).collect();
    assert_eq!(ids, wanted, "one after the other, over all queues");
}

pub(super) async fn rule_07_each_task_has_its_own_answer_in_order(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.capacity = Some(Some(3))).await;
    let mixed = vec![
        task("0").keyed("k"),
        task("1").keyed("k"),
        task("2").keyed(""),
        task("3"),
        task("4"),
        task("5"),
        task("6").keyed("k"),
    ];
    let answers = f.put_all(&q, mixed).await;
    let words: Vec<&str> = answers
        .iter()
        .map(|answer| match answer {
            PutAnswer::Enqueued { .. } => "enqueued",
            PutAnswer::Duplicate { .. } => "duplicate",
            PutAnswer::Replaced { .. } => "replaced",
            PutAnswer::Refused(refusal) => refusal.code(),
        })
        .collect();
    let wanted =
        ["enqueued", "duplicate", "invalid", "enqueued", "enqueued", "queue_full", "duplicate"];
    assert_eq!(words, wanted);
    assert_eq!(f.all().await.len(), 3, "neighbours are not undone");
    let counters = f.stats(&q).await.counters;
    assert_eq!((counters.put, counters.duplicate, counters.refused), (3, 2, 2));
}

pub(super) async fn rule_07_an_unknown_queue_is_refused_with_a_suggestion(f: &mut Fixture) {
    f.queue("emails").await;
    for (typed, meant) in [("email", Some("emails")), ("invoices", None)] {
        let answers = f.put_all(&name(typed), plain(2)).await;
        let refused = PutAnswer::Refused(Refusal::UnknownQueue {
            name: typed.to_owned(),
            suggestion: meant.map(str::to_owned),
        });
        assert_eq!(answers, [refused.clone(), refused]);
        let claim = f.store.claim(f.request(&name(typed), 1)).await;
        let unknown = StoreError::UnknownQueue {
            name: typed.to_owned(),
            suggestion: meant.map(str::to_owned),
        };
        assert_eq!(claim, Err(unknown));
    }
    assert!(f.all().await.is_empty());
}

pub(super) async fn rule_07_a_field_that_cannot_be_stored_is_refused(f: &mut Fixture) {
    let q = f.queue("q").await;
    let long = "x".repeat(513);
    let headers = |name: &str, value: &str| task("x").with_header(name, value);
    let bad = [
        task("x").keyed(""),
        task("x").keyed(&long),
        task("x").keyed("a\0b"),
        task("x").in_group(""),
        task("x").in_group(&long),
        task("x").of_source("\0"),
        task("x").of_source(&long),
        task("x").with_id(""),
        task("x").with_id(&long),
        headers("", "value"),
        headers("a", "\0"),
        headers("a", &"v".repeat(4096)),
    ];
    for new in bad {
        let answer = f.put(&q, new.clone()).await;
        assert!(matches!(answer, PutAnswer::Refused(Refusal::Invalid(_))), "{new:?}: {answer:?}");
    }
    // Each at its limit is fine.
    let fits = "x".repeat(512);
    let new = task("x").keyed(&fits).in_group(&fits).of_source(&fits).with_id(&fits);
    let id = f.enqueue(&q, new.with_header("a", &"v".repeat(4095))).await;
    assert_eq!(f.the(id).await.key.map(|key| key.len()), Some(512));
    assert_eq!(f.all().await.len(), 1);
}

pub(super) async fn rule_07_an_empty_put_has_no_answers(f: &mut Fixture) {
    let q = f.queue("q").await;
    assert!(f.put_all(&q, Vec::new()).await.is_empty());
    assert!(f.put_as(&q, Vec::new(), true).await.is_empty());
}

pub(super) async fn rule_07_an_atomic_put_is_whole_or_nothing(f: &mut Fixture) {
    let q = f.queue("q").await;
    let answers = f.put_as(&q, plain(3), true).await;
    assert!(answers.iter().all(PutAnswer::is_enqueued), "{answers:?}");
    let id = f.enqueue(&q, task("standing").keyed("k")).await;
    let before = f.all().await;

    let undone = |because| PutAnswer::Refused(Refusal::Undone { because });
    let with_duplicate = vec![task("a"), task("b").keyed("k"), task("c").keyed("c")];
    let answers = f.put_as(&q, with_duplicate, true).await;
    assert_eq!((&answers[0], &answers[2]), (&undone(1), &undone(1)));
    assert_eq!(answers[1].id(), Some(id), "the fault itself keeps its answer");
    let with_refused = vec![task("a").keyed("a"), task("b"), task("c").keyed("")];
    let answers = f.put_as(&q, with_refused, true).await;
    assert_eq!(answers[..2], [undone(2), undone(2)]);
    assert!(matches!(&answers[2], PutAnswer::Refused(Refusal::Invalid(_))));
    assert_eq!(f.all().await, before, "nothing of either is there");
    // Their keys are free as if they had never been put.
    f.enqueue(&q, task("a").keyed("a")).await;
    f.enqueue(&q, task("c").keyed("c")).await;
    assert_eq!(f.stats(&q).await.counters.put, 6);
}

/// A number that is nobody's would become another's.
pub(super) async fn rule_07_an_undone_put_names_no_task_that_never_was(f: &mut Fixture) {
    let q = f.queue("q").await;
    let like = |of| PutAnswer::Refused(Refusal::Twin { of });
    let undone = |because| PutAnswer::Refused(Refusal::Undone { because });
    let tasks = vec![task("a"), task("b").keyed("k"), task("c").keyed("k"), task("d").keyed("k")];
    let answers = f.put_as(&q, tasks, true).await;
    assert_eq!(answers, [undone(2), undone(2), like(1), like(1)]);
    let with_id = |payload: &str| NewTask { id: Some("i".to_owned()), ..task(payload) };
    for second in ["a", "another"] {
        let answers = f.put_as(&q, vec![with_id("a"), with_id(second)], true).await;
        assert_eq!(answers, [undone(1), like(0)]);
    }
    // Also behind one that needs no look at the others.
    let tasks = vec![task("a").keyed(""), task("b").keyed("k"), task("c").keyed("k")];
    assert_eq!(f.put_as(&q, tasks, true).await[1..], [undone(0), like(1)]);
    // One that stands is named as ever.
    let standing = f.enqueue(&q, task("standing").keyed("k")).await;
    let answers = f.put_as(&q, vec![task("a"), task("b").keyed("k")], true).await;
    assert_eq!((&answers[0], answers[1].id()), (&undone(1), Some(standing)));
    let counters = f.stats(&q).await.counters;
    assert_eq!((counters.put, counters.duplicate), (1, 1), "{counters:?}");
}

pub(super) async fn rule_07_an_undone_replacement_is_taken_back(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.on_duplicate = Some(OnDuplicate::Replace)).await;
    f.enqueue(&q, task("old").keyed("k").at_priority(4).delayed(60)).await;
    let before = f.all().await;
    let urgent = task("new").keyed("k").at_priority(-4).delayed(1);
    let answers = f.put_as(&q, vec![urgent, task("bad").keyed("")], true).await;
    assert_eq!(answers[0], PutAnswer::Refused(Refusal::Undone { because: 1 }));
    assert_eq!(f.all().await, before, "payload, priority and time as before");
    assert_eq!(f.stats(&q).await.counters.replaced, 0);
}

pub(super) async fn rule_07_a_put_over_the_limit_is_an_error_without_effect(f: &mut Fixture) {
    f.limit(|limits| limits.put_tasks = 5).await;
    let q = f.queue("q").await;
    let over = PutRequest { queue: q.clone(), tasks: plain(6), atomic: false };
    let answer = f.store.put(over).await;
    assert!(matches!(answer, Err(StoreError::Invalid(_))), "{answer:?}");
    assert!(f.all().await.is_empty());
    f.enqueue_all(&q, plain(5)).await;
}

pub(super) async fn rule_07_the_answers_of_one_put_come_true_together(f: &mut Fixture) {
    const FLUSH: u64 = 50;
    let q = f.queue("q").await;
    let handles = f.handles().await;
    let reads = Arc::new(AtomicU64::new(0));
    let mut putting = Vec::new();
    for n in 0..4 {
        let (handle, q, reads) = (handles[n % handles.len()].clone(), q.clone(), reads.clone());
        putting.push(tokio::spawn(async move {
            for _ in 0..10 {
                // No faster than the reader, so that it sees puts under way.
                let before = reads.load(Ordering::SeqCst);
                while reads.load(Ordering::SeqCst) == before {
                    tokio::task::yield_now().await;
                }
                handle.enqueue_all(&q, plain(FLUSH as usize)).await;
            }
        }));
    }
    while !putting.iter().all(tokio::task::JoinHandle::is_finished) {
        for handle in &handles {
            let seen = handle.stats(&q).await.pending();
            assert_eq!(seen % FLUSH, 0, "a reader saw half of a put");
            reads.fetch_add(1, Ordering::SeqCst);
        }
        tokio::task::yield_now().await;
    }
    for put in putting {
        put.await.expect("a put");
    }
    assert_eq!(f.stats(&q).await.pending(), 4 * 10 * FLUSH);
}
