//! Rule 2, at least once under one live lease: a task is handed out until it
//! is settled, never to two at a time, and a lost worker's task comes back.

use std::collections::BTreeSet;

use gristmill_core::{ExtendAnswer, Extension, Outcome, State, StoreError};

use crate::fixture::Fixture;
use crate::handle::held;
use crate::shape::{millis, plain, secs, task, worker};

pub(super) async fn rule_02_a_task_is_handed_out_until_it_is_done(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.max_attempts = Some(None)).await;
    let id = f.enqueue(&q, task("a")).await;
    for _ in 0..8 {
        assert_eq!(f.claim_one(&q).await.id, id);
        // Past the lease and past the longest backoff.
        f.advance(secs(2 * 3600));
        f.reclaim().await;
        f.advance(secs(2 * 3600));
    }
    let last = f.claim_one(&q).await;
    f.end(&last, Outcome::Done).await;
    assert_eq!(f.get(id).await, None);
    f.advance(secs(24 * 3600));
    f.claim_none(&q).await;
}

pub(super) async fn rule_02_no_task_is_claimed_twice_at_once(f: &mut Fixture) {
    let q = f.queue("q").await;
    let ids = f.enqueue_all(&q, plain(300)).await;
    let handles = f.handles().await;
    let mut claimers = Vec::new();
    for n in 0..24 {
        let (handle, q) = (handles[n % handles.len()].clone(), q.clone());
        claimers.push(tokio::spawn(async move {
            let mut mine = Vec::new();
            loop {
                let taken = handle.claim_ids(&q, 1 + n % 5).await;
                if taken.is_empty() {
                    return mine;
                }
                mine.extend(taken);
                assert!(mine.len() <= 300, "there are no more");
            }
        }));
    }
    let mut all = Vec::new();
    for claimer in claimers {
        all.extend(claimer.await.expect("a claimer"));
    }
    assert_eq!(all.len(), ids.len(), "each task once");
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), ids.into_iter().collect());
}

pub(super) async fn rule_02_a_live_lease_is_not_taken_away(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    f.advance(secs(60) - millis(1));
    f.claim_none(&q).await;
    assert_eq!(f.reclaim().await, 0);
    assert_eq!(f.store.sweep().await.expect("a sweep").reclaimed, 0);
    f.end(&held, Outcome::Done).await;
}

pub(super) async fn rule_02_the_next_claim_takes_an_expired_lease_back(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    let mut request = f.request(&q, 1);
    request.worker = worker("lost");
    f.take(request).await;
    f.advance(secs(61));
    let mut request = f.request(&q, 1);
    request.worker = worker("alive");
    let again = held(f.take(request).await);
    assert_eq!(again[0].id, id);
    let lease = f.the(id).await.lease.expect("a lease");
    assert_eq!(lease.worker, worker("alive"));
    assert_eq!(lease.until, f.now().after(secs(60)));
}

pub(super) async fn rule_02_reclaim_takes_expired_leases_back(f: &mut Fixture) {
    let (q, r) = (f.queue("q").await, f.queue("r").await);
    f.enqueue_all(&q, plain(3)).await;
    f.enqueue_all(&r, plain(2)).await;
    f.claim(&q, 2).await;
    f.claim(&r, 2).await;
    f.advance(secs(61));
    assert_eq!(f.reclaim().await, 4, "of all queues");
    assert_eq!(f.reclaim().await, 0, "once");
    assert!(f.all().await.iter().all(|task| task.state == State::Pending));
    assert_eq!(f.stats(&q).await.counters.expired, 2);
}

pub(super) async fn rule_02_a_sweep_takes_expired_leases_back(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    f.claim(&q, 1).await;
    f.advance(secs(61));
    assert_eq!(f.store.sweep().await.expect("a sweep").reclaimed, 1);
    assert_eq!(f.the(id).await.state, State::Pending);
}

pub(super) async fn rule_02_many_expired_leases_all_come_back(f: &mut Fixture) {
    // More than one call takes back, so that no call is unbounded.
    f.limit(|limits| limits.reclaimed_leases = 4).await;
    let q = f.queue("q").await;
    let ids = f.enqueue_all(&q, plain(30)).await;
    for _ in 0..30 {
        f.claim_one(&q).await;
    }
    f.advance(secs(61));
    let mut back = 0;
    for _ in 0..30 {
        let step = f.reclaim().await;
        assert!(step <= 4, "a bounded number a call: {step}");
        back += step;
    }
    assert_eq!(back, 30);
    let mut again = Vec::new();
    for _ in 0..30 {
        again.push(f.claim_one(&q).await.id);
    }
    assert_eq!(again, ids, "in their old places");
}

pub(super) async fn rule_02_an_extended_lease_lives_on(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    let extended = ExtendAnswer::Extended { cancelled: Vec::new(), lost: Vec::new() };
    for _ in 0..5 {
        f.advance(secs(50));
        assert_eq!(f.extend(held.token, secs(60)).await, extended);
        let lease = f.the(id).await.lease.expect("a lease");
        assert_eq!(lease.until, f.now().after(secs(60)), "from the store's now");
        f.claim_none(&q).await;
        assert_eq!(f.reclaim().await, 0);
    }
    assert_eq!(f.the(id).await.attempts, 1, "still the same attempt");
    f.advance(secs(61));
    assert_eq!(f.reclaim().await, 1, "it is not immortal");
}

pub(super) async fn rule_02_an_extension_covers_all_open_tasks_of_its_token(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue_all(&q, plain(5)).await;
    let first = f.claim_held(&q, 3).await;
    let other = f.claim_held(&q, 2).await;
    f.end(&first[1], Outcome::Done).await;
    f.advance(secs(30));
    f.extend(first[0].token, secs(120)).await;
    f.advance(secs(40));
    assert_eq!(f.reclaim().await, 2, "only the other claim ran out");
    for open in [&first[0], &first[2]] {
        assert_eq!(f.the(open.id).await.state, State::Processing);
    }
    for lost in &other {
        assert_eq!(f.the(lost.id).await.state, State::Pending);
    }
}

pub(super) async fn rule_02_a_late_extension_holds_while_nobody_took_the_task(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    f.advance(secs(300));
    let late = f.extend(held.token, secs(60)).await;
    assert!(matches!(late, ExtendAnswer::Extended { .. }), "{late:?}");
    assert_eq!(f.reclaim().await, 0);
    f.end(&held, Outcome::Done).await;
}

pub(super) async fn rule_02_the_claims_own_lease_wins_over_the_queues(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.lease = Some(secs(100))).await;
    f.enqueue_all(&q, plain(2)).await;
    let usual = f.claim(&q, 1).await;
    assert_eq!(usual.lease, secs(100));
    let mut request = f.request(&q, 1);
    request.lease = Some(secs(7));
    let short = f.take(request).await;
    assert_eq!(short.lease, secs(7));
    f.advance(secs(8));
    assert_eq!(f.reclaim().await, 1);
    assert_eq!(f.the(usual.tasks[0].id).await.state, State::Processing);
    assert_eq!(f.the(short.tasks[0].id).await.state, State::Pending);
}

pub(super) async fn rule_02_reclaimers_that_race_take_each_task_back_once(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue_all(&q, plain(60)).await;
    for _ in 0..20 {
        f.claim(&q, 3).await;
    }
    f.advance(secs(61));
    let handles = f.handles().await;
    let mut racing = Vec::new();
    for n in 0..8 {
        let handle = handles[n % handles.len()].clone();
        racing.push(tokio::spawn(async move { handle.reclaim().await }));
    }
    let mut total = 0;
    for reclaimer in racing {
        total += reclaimer.await.expect("a reclaimer");
    }
    assert_eq!(total, 60);
    assert!(f.all().await.iter().all(|task| task.attempts == 1 && task.expiries == 1));
    assert_eq!(f.stats(&q).await.counters.expired, 60);
}

pub(super) async fn rule_02_a_lease_of_an_impossible_length_is_an_error(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue_all(&q, plain(1)).await;
    let held = f.claim_one(&q).await;
    for lease in [secs(0), secs(1_000_000_000)] {
        let extension = Extension::new(held.token, lease);
        let answer = f.store.extend(vec![extension]).await;
        assert!(matches!(answer, Err(StoreError::Invalid(_))), "{lease:?}: {answer:?}");
    }
    // Nothing was prolonged or cut short.
    f.advance(secs(59));
    assert_eq!(f.reclaim().await, 0);
    f.advance(secs(2));
    assert_eq!(f.reclaim().await, 1);
}
