//! Rule 9, cost, in its functional form: the right tasks are claimed past any
//! number of others. How long it takes is measured elsewhere.

use gristmill_core::{NewTask, Outcome, Per, Rate};

use crate::fixture::Fixture;
use crate::shape::{Shape, plain, secs, task};

fn many(count: usize, shape: impl Fn(usize) -> NewTask) -> Vec<NewTask> {
    (0..count).map(shape).collect()
}

pub(super) async fn rule_09_urgent_delayed_tasks_do_not_hide_what_is_due(f: &mut Fixture) {
    let q = f.queue("q").await;
    for _ in 0..2 {
        let ahead = |n: usize| task("x").at_priority(-5).delayed(3600 + n as u64 % 7);
        f.enqueue_all(&q, many(10_000, ahead)).await;
    }
    let due = f.enqueue_all(&q, plain(30)).await;
    assert_eq!(f.claim_ids(&q, 20).await, due[..20]);
    assert_eq!(f.claim_ids(&q, 20).await, due[20..]);
    let claim = f.claim(&q, 20).await;
    assert!(claim.tasks.is_empty());
    assert_eq!(claim.next_due, Some(secs(3600)));
    let stats = f.stats(&q).await;
    assert_eq!((stats.ready, stats.delayed, stats.processing), (0, 20_000, 30));
    // All of them fall due at once, and are claimable at once.
    f.advance(secs(3607));
    assert_eq!(f.claim_ids(&q, 100).await.len(), 100);
}

pub(super) async fn rule_09_other_sources_do_not_hide_ones_own(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue_all(&q, many(5_000, |n| task("x").of_source(["a", "b"][n % 2]))).await;
    let mine = f.enqueue_all(&q, many(10, |_| task("x").of_source("mine").at_priority(3))).await;
    let mut request = f.request(&q, 100);
    request.source = Some("mine".to_owned());
    let got: Vec<_> = f.take(request).await.tasks.iter().map(|task| task.id).collect();
    assert_eq!(got, mine);
}

pub(super) async fn rule_09_blocked_tasks_do_not_hide_the_free_ones(f: &mut Fixture) {
    let q = f.queue("q").await;
    let keyed = |n: usize| task("x").keyed(&format!("k{n}")).at_priority(-1);
    f.enqueue_all(&q, many(2_000, keyed)).await;
    let mut running = Vec::new();
    for _ in 0..2 {
        running.extend(f.claim_held(&q, 1_000).await);
    }
    assert_eq!(running.len(), 2_000);
    let blocked = f.enqueue_all(&q, many(2_000, keyed)).await;
    let free = f.enqueue_all(&q, plain(5)).await;
    assert_eq!(f.stats(&q).await.blocked, 2_000);
    assert_eq!(f.claim_ids(&q, 100).await, free);
    f.end(&running[1_234], Outcome::Done).await;
    assert_eq!(f.claim_ids(&q, 100).await, [blocked[1_234]]);
}

pub(super) async fn rule_09_failed_tasks_do_not_hide_the_others(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue_all(&q, many(1_000, |_| task("x").at_priority(-1))).await;
    for held in f.claim_held(&q, 1_000).await {
        f.end(&held, Outcome::Fail("never".to_owned())).await;
    }
    let due = f.enqueue_all(&q, plain(3)).await;
    assert_eq!(f.claim_ids(&q, 10).await, due);
    assert_eq!(f.stats(&q).await.failed, 1_000);
}

pub(super) async fn rule_09_exhausted_groups_do_not_hide_the_others(f: &mut Fixture) {
    let q = f
        .queue_with("q", |s| {
            s.rate = Some(Some(Rate::new(1, secs(3600))));
            s.rate_per = Some(Per::Group);
        })
        .await;
    let of = |n: usize| task("x").in_group(&format!("g{n:05}"));
    let first = f.enqueue_all(&q, many(2_000, of)).await;
    f.enqueue_all(&q, many(2_000, of)).await;
    for tasks in first.chunks(1_000) {
        assert_eq!(f.claim_ids(&q, 1_000).await, tasks);
    }
    // Each of two thousand groups has used up its token, and has a task in front.
    let mut free = f.enqueue_all(&q, many(3, |n| task("x").in_group(["a", "m", "z"][n]))).await;
    free.extend(f.enqueue_all(&q, plain(1)).await);
    assert_eq!(f.claim_ids(&q, 10).await, free);
    let claim = f.claim(&q, 10).await;
    assert_eq!((claim.tasks.len(), claim.next_due), (0, Some(secs(3600))));
}
