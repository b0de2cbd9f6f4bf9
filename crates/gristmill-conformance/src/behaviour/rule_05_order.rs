//! Rule 5, order: priority, then `run_at`, then id; also when many claim.

use std::sync::Arc;

use gristmill_core::{NewTask, Outcome, Start, TaskId, When};
use tokio::sync::Barrier;

use crate::fixture::Fixture;
use crate::shape::{Shape, plain, secs, task};

pub(super) async fn rule_05_priority_then_run_at_then_id(f: &mut Fixture) {
    let q = f.queue("q").await;
    let ago = |seconds| f.now().before(secs(seconds));
    let at = |priority, seconds| NewTask {
        start: Start::At(ago(seconds)),
        ..task("x").at_priority(priority)
    };
    let shapes =
        [(0, 0), (0, 9), (-1, 0), (5, 99), (0, 9), (-1, 3), (i16::MIN, 0), (i16::MAX, 500)];
    let ids = f.enqueue_all(&q, shapes.iter().map(|(p, s)| at(*p, *s)).collect()).await;
    let mut wanted: Vec<_> =
        shapes.iter().zip(&ids).map(|((p, s), id)| (*p, ago(*s), *id)).collect();
    wanted.sort();
    let wanted: Vec<TaskId> = wanted.into_iter().map(|(_, _, id)| id).collect();
    // In one batch and over several: the same order.
    let mut got = f.claim_ids(&q, 3).await;
    got.extend(f.claim_ids(&q, 1).await);
    got.extend(f.claim_ids(&q, 100).await);
    assert_eq!(got, wanted);
}

pub(super) async fn rule_05_tasks_of_one_instant_run_in_the_order_of_their_puts(f: &mut Fixture) {
    let q = f.queue("q").await;
    let mut ids = f.enqueue_all(&q, plain(5)).await;
    for n in 0..5 {
        ids.push(f.enqueue(&q, task(&n.to_string())).await);
    }
    assert!(ids.is_sorted());
    assert_eq!(f.claim_ids(&q, 100).await, ids);
}

pub(super) async fn rule_05_a_task_that_fell_due_goes_before_younger_ones(f: &mut Fixture) {
    let q = f.queue("q").await;
    let late = f.enqueue(&q, task("late").delayed(10)).await;
    let now = f.enqueue(&q, task("now")).await;
    f.advance(secs(20));
    let after = f.enqueue(&q, task("after")).await;
    assert_eq!(f.claim_ids(&q, 10).await, [now, late, after]);
}

pub(super) async fn rule_05_a_retried_task_takes_its_place_by_run_at(f: &mut Fixture) {
    let q = f.queue("q").await;
    let retried = f.enqueue(&q, task("retried")).await;
    let held = f.claim_one(&q).await;
    let before = f.enqueue(&q, task("before").delayed(5)).await;
    let after = f.enqueue(&q, task("after").delayed(15)).await;
    let at = When::After(secs(10));
    f.end(&held, Outcome::Retry { at, reason: None }).await;
    f.advance(secs(20));
    assert_eq!(f.claim_ids(&q, 10).await, [before, retried, after]);
}

pub(super) async fn rule_05_a_released_task_keeps_its_place(f: &mut Fixture) {
    let q = f.queue("q").await;
    let ids = f.enqueue_all(&q, plain(3)).await;
    let held = f.claim_one(&q).await;
    f.advance(secs(5));
    f.end(&held, Outcome::Release { at: None, started: false }).await;
    assert_eq!(f.claim_ids(&q, 10).await, ids);
}

pub(super) async fn rule_05_priority_is_strict(f: &mut Fixture) {
    let q = f.queue("q").await;
    let old = f.enqueue(&q, task("old").at_priority(1)).await;
    for _ in 0..50 {
        f.advance(secs(3600));
        let urgent = f.enqueue(&q, task("urgent")).await;
        let held = f.claim_one(&q).await;
        assert_eq!(held.id, urgent, "nothing ages");
        f.end(&held, Outcome::Done).await;
    }
    assert_eq!(f.claim_ids(&q, 1).await, [old]);
}

pub(super) async fn rule_05_a_claim_gives_no_more_than_asked(f: &mut Fixture) {
    let q = f.queue("q").await;
    let ids = f.enqueue_all(&q, plain(10)).await;
    for (n, chunk) in ids.chunks(3).enumerate() {
        assert_eq!(f.claim_ids(&q, 3).await, chunk, "claim {n}");
    }
    f.claim_none(&q).await;
}

pub(super) async fn rule_05_queues_do_not_mix(f: &mut Fixture) {
    let (q, r) = (f.queue("q").await, f.queue("r").await);
    let first = f.enqueue(&q, task("a")).await;
    let second = f.enqueue(&r, task("b").at_priority(-9)).await;
    assert_eq!(f.claim_ids(&q, 10).await, [first]);
    assert_eq!(f.claim_ids(&r, 10).await, [second]);
}

pub(super) async fn rule_05_a_claim_may_ask_for_one_source(f: &mut Fixture) {
    let q = f.queue("q").await;
    let mut ids = Vec::new();
    for n in 0..12 {
        let source = ["shop", "feed", "ünï"][n % 3];
        let shape = task("x").of_source(source).at_priority(-(n as i16) / 6);
        ids.push(f.enqueue(&q, shape).await);
    }
    f.enqueue(&q, task("of nobody")).await;
    for (n, source) in ["shop", "feed", "ünï"].into_iter().enumerate() {
        let mut request = f.request(&q, 3);
        request.source = Some(source.to_owned());
        let claim = f.take(request).await;
        let got: Vec<_> = claim.tasks.iter().map(|task| task.id).collect();
        // The later ones are more urgent, within a source as well.
        assert_eq!(got, [ids[6 + n], ids[9 + n], ids[n]], "{source}");
        assert!(claim.tasks.iter().all(|task| task.source.as_deref() == Some(source)));
    }
    let mut request = f.request(&q, 3);
    request.source = Some("nobody".to_owned());
    assert!(f.take(request).await.tasks.is_empty());
    assert_eq!(f.claim_ids(&q, 10).await.len(), 4, "no source asked for: all of them");
}

pub(super) async fn rule_05_what_another_sources_claim_took_back_goes_first(f: &mut Fixture) {
    let q = f.queue("q").await;
    let ids = f.enqueue_all(&q, plain(2)).await;
    assert_eq!(f.claim_ids(&q, 1).await, ids[..1]);
    // Past its lease, whose end is noticed by a claim that has no use for it.
    f.advance(secs(61));
    let mut request = f.request(&q, 1);
    request.source = Some("another".to_owned());
    assert!(f.take(request).await.tasks.is_empty());
    assert_eq!(f.claim_ids(&q, 1).await, ids[..1]);
}

pub(super) async fn rule_05_claims_in_flight_pass_few_over(f: &mut Fixture) {
    const CLAIMERS: usize = 6;
    const BATCH: usize = 4;
    let q = f.queue("q").await;
    let ids = f.enqueue_all(&q, plain(240)).await;
    let handles = f.handles().await;
    let mut claimed: Vec<TaskId> = Vec::new();
    while claimed.len() < ids.len() {
        let start = Arc::new(Barrier::new(CLAIMERS));
        let mut round = Vec::new();
        for n in 0..CLAIMERS {
            let (handle, q, start) = (handles[n % handles.len()].clone(), q.clone(), start.clone());
            round.push(tokio::spawn(async move {
                start.wait().await;
                handle.claim_ids(&q, BATCH).await
            }));
        }
        let before = claimed.len();
        for claim in round {
            let batch = claim.await.expect("a claim");
            assert!(batch.is_sorted(), "each batch is in order: {batch:?}");
            claimed.extend(batch);
        }
        assert!(claimed.len() > before, "something is claimed in every round");
        let oldest = ids.iter().find(|id| !claimed.contains(id));
        let passed = oldest.map_or(0, |old| claimed.iter().filter(|id| *id > old).count());
        assert!(passed <= (CLAIMERS - 1) * BATCH, "{passed} younger ones before {oldest:?}");
    }
}

pub(super) async fn rule_05_what_another_process_puts_in_front_is_taken_first(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue_all(&q, plain(20)).await;
    assert_eq!(f.claim_ids(&q, 5).await.len(), 5);
    let Some(other) = f.another().await else { return };
    let early = Start::At(f.now().before(secs(3600)));
    let front = other.enqueue(&q, NewTask { start: early, ..task("front") }).await;
    // By the machine's clock, whatever the test's says: what is remembered of the
    // last claim is of this process alone.
    tokio::time::sleep(f.store.capabilities().passes_by).await;
    assert_eq!(f.claim_ids(&q, 1).await, [front], "passed by for no longer than it says");
}
