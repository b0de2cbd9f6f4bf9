//! Rule 4, the part on expired leases: they count, and a task that kills its
//! workers ends as failed without taking its neighbours along.

use gristmill_core::{Action, AttemptEnd, Backoff, Outcome, State};

use crate::fixture::Fixture;
use crate::shape::{plain, secs, task};

pub(super) async fn rule_04_an_expired_lease_counts(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    f.claim_one(&q).await;
    f.advance(secs(61));
    f.reclaim().await;
    let back = f.the(id).await;
    assert_eq!((back.attempts, back.claims, back.expiries), (1, 1, 1));
    assert_eq!(back.history.len(), 1);
    assert_eq!(back.history[0].end, AttemptEnd::Expired);
    assert_eq!(back.history[0].ended_at, f.now());
    assert!(back.error.is_some());
    assert_eq!(f.claim_one(&q).await.task.attempt, 2);
}

pub(super) async fn rule_04_the_first_expiry_keeps_the_old_place(f: &mut Fixture) {
    let q = f.queue("q").await;
    let first = f.enqueue(&q, task("first")).await;
    let run_at = f.the(first).await.run_at;
    f.advance(secs(1));
    let second = f.enqueue(&q, task("second")).await;
    assert_eq!(f.claim_one(&q).await.id, first);
    f.advance(secs(61));
    assert_eq!(f.claim_one(&q).await.id, first, "ahead of those behind it");
    assert_eq!(f.the(first).await.run_at, run_at);
    assert_eq!(f.the(first).await.prev_run_at, Some(run_at));
    assert_eq!(f.claim_one(&q).await.id, second);
}

pub(super) async fn rule_04_later_expiries_wait_with_backoff(f: &mut Fixture) {
    let exact = Backoff { base: secs(10), cap: secs(3600), jitter: false };
    let q = f.queue_with("q", |s| s.backoff = Some(exact)).await;
    let id = f.enqueue(&q, task("a")).await;
    f.claim_one(&q).await;
    f.advance(secs(61));
    f.claim_one(&q).await;
    f.advance(secs(61));
    f.claim_none(&q).await;
    let back = f.the(id).await;
    assert_eq!((back.state, back.expiries), (State::Pending, 2));
    // The second attempt had one return before it: twice the base.
    assert_eq!(back.run_at, f.now().after(secs(20)));
    f.advance(secs(20));
    f.claim_one(&q).await;
}

pub(super) async fn rule_04_after_one_expiry_a_task_has_its_own_batch(f: &mut Fixture) {
    let q = f.queue("q").await;
    let ids = f.enqueue_all(&q, plain(6)).await;
    // Two of the six lose their worker, each in a claim of its own.
    let one = f.claim_one(&q).await;
    let two = f.claim_one(&q).await;
    f.advance(secs(61));
    f.reclaim().await;
    let mut seen = Vec::new();
    for _ in 0..6 {
        let batch = f.claim_held(&q, 10).await;
        for held in &batch {
            let suspect = held.id == one.id || held.id == two.id;
            assert!(!suspect || batch.len() == 1, "a suspect is claimed by itself");
            assert!(!held.task.alone, "once is not yet a reason to run alone");
            seen.push(held.id);
        }
        if seen.len() == ids.len() {
            break;
        }
    }
    assert_eq!(seen, ids, "nobody starves behind a suspect");
}

pub(super) async fn rule_04_after_two_expiries_a_task_runs_alone(f: &mut Fixture) {
    let q = f.queue("q").await;
    let ids = f.enqueue_all(&q, plain(2)).await;
    for _ in 0..2 {
        let held = f.claim_one(&q).await;
        assert_eq!(held.id, ids[0]);
        assert!(!held.task.alone);
        f.advance(secs(61));
        f.reclaim().await;
    }
    f.advance(secs(3600));
    let mut batches = Vec::new();
    while let batch @ [_, ..] = f.claim_held(&q, 10).await.as_slice() {
        batches.push(batch.iter().map(|h| (h.id, h.task.alone)).collect::<Vec<_>>());
    }
    batches.sort();
    assert_eq!(batches, [vec![(ids[0], true)], vec![(ids[1], false)]]);
}

pub(super) async fn rule_04_a_poison_task_fails_and_its_neighbours_finish(f: &mut Fixture) {
    let q = f.queue("q").await;
    let ids = f.enqueue_all(&q, plain(20)).await;
    let poison = ids[7];
    let mut deaths = 0;
    // A worker that gets the poison settles nothing of its batch any more.
    for _ in 0..60 {
        let batch = f.claim_held(&q, 5).await;
        if batch.iter().any(|held| held.id == poison) {
            deaths += 1;
            f.advance(secs(61));
            f.reclaim().await;
        } else {
            for held in &batch {
                f.end(held, Outcome::Done).await;
            }
        }
        f.advance(secs(3600));
    }
    assert_eq!(deaths, 5, "as many deaths as attempts");
    let left: Vec<_> = f.all().await.iter().map(|task| (task.id, task.state)).collect();
    assert_eq!(left, [(poison, State::Failed)]);
    assert_eq!(f.stats(&q).await.counters.done, 19);
}

pub(super) async fn rule_04_an_operators_retry_clears_the_suspicion(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.max_attempts = Some(Some(3))).await;
    let id = f.enqueue(&q, task("a")).await;
    for _ in 0..3 {
        f.claim_one(&q).await;
        f.advance(secs(61));
        f.reclaim().await;
        f.advance(secs(3600));
    }
    assert_eq!(f.the(id).await.state, State::Failed);
    f.operate(Action::Retry, &[id]).await;
    f.enqueue(&q, task("b")).await;
    let batch = f.claim_held(&q, 10).await;
    assert_eq!(batch.len(), 2, "it shares a batch again");
    assert!(!batch[0].task.alone);
}

pub(super) async fn rule_04_a_claim_tells_which_tasks_failed_by_their_leases_end(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.max_attempts = Some(Some(1))).await;
    let ids = f.enqueue_all(&q, plain(6)).await;
    let other = f.queue_with("other", |s| s.max_attempts = Some(Some(1))).await;
    f.enqueue(&other, task("a")).await;
    f.claim_one(&other).await;
    let pair = f.claim_held(&q, 2).await;
    let batch = f.claim_held(&q, 3).await;
    // What was settled or cancelled in time does not fail with its lease.
    f.end(&batch[0], Outcome::Done).await;
    f.operate(Action::Cancel, &[batch[1].id]).await;
    f.advance(secs(61));
    let claim = f.claim(&q, 10).await;
    let mut failed = claim.failed;
    failed.sort();
    assert_eq!(failed, [pair[0].id, pair[1].id, batch[2].id], "those of this queue");
    let tasks: Vec<_> = claim.tasks.iter().map(|task| task.id).collect();
    assert_eq!(tasks, [ids[5]], "and it takes what is there");
    // One that finds nothing to take tells as well, and nobody is told twice.
    assert_eq!(f.claim(&q, 10).await.failed, []);
    f.advance(secs(61));
    let empty = f.claim(&q, 10).await;
    assert_eq!((empty.tasks, empty.failed), (vec![], vec![ids[5]]));
    assert_eq!(f.the(ids[5]).await.state, State::Failed);
}

pub(super) async fn rule_04_a_sweep_tells_which_tasks_failed_by_their_leases_end(f: &mut Fixture) {
    let last = f.queue_with("last", |s| s.max_attempts = Some(Some(1))).await;
    let many = f.queue("many").await;
    f.enqueue_all(&last, plain(3)).await;
    f.enqueue_all(&many, plain(2)).await;
    let failing = f.claim_ids(&last, 3).await;
    let returning = f.claim_ids(&many, 2).await;
    f.advance(secs(61));
    let report = f.store.sweep().await.expect("a sweep");
    let mut failed = report.failed;
    failed.sort();
    assert_eq!((report.reclaimed, failed), (5, failing));
    assert_eq!(f.claim_ids(&many, 1).await, returning[..1], "one that goes back is not told");
    assert_eq!(f.store.sweep().await.expect("a sweep").failed, [], "nobody is told twice");
}
