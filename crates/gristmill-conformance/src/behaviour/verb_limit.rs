//! Concurrency: so many tasks under lease at once, of a queue or of each of its
//! groups, over all workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use gristmill_core::{Action, Outcome, Per, QueueName, SettleAnswer, TaskId, When};

use crate::fixture::Fixture;
use crate::handle::{Handle, Held};
use crate::shape::{Shape, plain, secs, task};

async fn limited(f: &Fixture, n: u32) -> QueueName {
    f.queue_with("q", |s| s.concurrency = Some(Some(n))).await
}

async fn per_group(f: &Fixture, n: u32) -> QueueName {
    f.queue_with("q", |s| {
        s.concurrency = Some(Some(n));
        s.concurrency_per = Some(Per::Group);
    })
    .await
}

fn ids(held: &[Held]) -> Vec<TaskId> {
    held.iter().map(|one| one.id).collect()
}

pub(super) async fn verb_limit_lets_so_many_run_and_no_more(f: &mut Fixture) {
    let q = limited(f, 3).await;
    let all = f.enqueue_all(&q, plain(7)).await;
    let first = f.claim_held(&q, 2).await;
    assert_eq!(ids(&first), all[..2]);
    // A claim takes what is free, however much it asks for.
    let second = f.claim_held(&q, 10).await;
    assert_eq!(ids(&second), all[2..3]);
    f.claim_none(&q).await;
    f.end(&first[1], Outcome::Done).await;
    assert_eq!(f.claim_ids(&q, 10).await, all[3..4]);
    f.claim_none(&q).await;
    // The limit says nothing about slots and counts.
    assert_eq!((second[0].task.slot, second[0].task.concurrent), (None, None));
    // Another queue is not meant.
    let r = f.queue("r").await;
    f.enqueue_all(&r, plain(5)).await;
    assert_eq!(f.claim_ids(&r, 10).await.len(), 5);
}

pub(super) async fn verb_limit_makes_room_however_a_run_ends(f: &mut Fixture) {
    let q = limited(f, 2).await;
    f.enqueue_all(&q, plain(9)).await;
    let at = Some(When::After(secs(9_999)));
    let ends = [
        Some(Outcome::Done),
        Some(Outcome::Fail("never".to_owned())),
        Some(Outcome::Error("not now".to_owned())),
        Some(Outcome::Release { at, started: true }),
        Some(Outcome::Release { at, started: false }),
        Some(Outcome::Cancelled),
        None,
    ];
    let long = f.claim_one(&q).await;
    for outcome in ends {
        let held = f.claim_held(&q, 5).await;
        assert_eq!(held.len(), 1, "{outcome:?}");
        f.claim_none(&q).await;
        match outcome {
            Some(outcome) => f.end(&held[0], outcome).await,
            // Its worker is lost: the room comes back with the lease.
            None => {
                f.extend(long.token, secs(3600)).await;
                f.advance(secs(61));
            }
        }
    }
    assert_eq!(f.claim_held(&q, 5).await.len(), 1);
}

pub(super) async fn verb_limit_counts_each_group_by_itself(f: &mut Fixture) {
    let q = per_group(f, 2).await;
    let mut all = Vec::new();
    for group in [Some("a"), Some("a"), Some("a"), Some("b"), None, None, None, Some("a")] {
        let task = task("x");
        all.push(f.enqueue(&q, group.into_iter().fold(task, |t, group| t.in_group(group))).await);
    }
    // In the queue's order, but for those whose group is full.
    let held = f.claim_held(&q, 20).await;
    assert_eq!(ids(&held), [all[0], all[1], all[3], all[4], all[5]]);
    f.claim_none(&q).await;
    f.end(&held[4], Outcome::Done).await;
    f.end(&held[0], Outcome::Error("again".to_owned())).await;
    assert_eq!(f.claim_ids(&q, 20).await, [all[2], all[6]]);
    f.claim_none(&q).await;
}

pub(super) async fn verb_limit_keeps_the_order_among_groups_with_room(f: &mut Fixture) {
    let q = per_group(f, 3).await;
    // So many of a full group in front that nobody looks at them one by one.
    let busy = (0..700).map(|_| task("x").in_group("busy").at_priority(-1)).collect();
    let busy = f.enqueue_all(&q, busy).await;
    assert_eq!(f.claim_ids(&q, 10).await, busy[..3]);
    let groups = ["b", "a", "b", "c", "b", "a", "b", "a", "a", "c"];
    let mut rest = Vec::new();
    for (n, group) in groups.into_iter().enumerate() {
        let level = if n == 3 { -2 } else { n as i16 % 2 };
        let source = if n % 3 == 0 { "shop" } else { "feed" };
        rest.push(
            f.enqueue(&q, task("x").in_group(group).at_priority(level).of_source(source)).await,
        );
    }
    let none = f.enqueue(&q, task("of no group")).await;
    let of = |nth: &[usize]| nth.iter().map(|n| rest[*n]).collect::<Vec<_>>();
    // One source's tasks come by themselves.
    let mut request = f.request(&q, 2);
    request.source = Some("shop".to_owned());
    let taken: Vec<TaskId> = f.take(request).await.tasks.iter().map(|task| task.id).collect();
    assert_eq!(taken, of(&[3, 0]));
    // By priority, run_at and id, whatever the group, while it has room.
    let mut wanted = of(&[2, 4, 8]);
    wanted.push(none);
    wanted.extend(of(&[1, 5, 9]));
    assert_eq!(f.claim_ids(&q, 7).await, wanted);
    f.claim_none(&q).await;
}

pub(super) async fn verb_limit_counts_a_lease_that_ran_out_until_it_is_taken_back(f: &mut Fixture) {
    let q = limited(f, 2).await;
    f.enqueue_all(&q, plain(4)).await;
    let held = f.claim_held(&q, 2).await;
    assert_eq!(held.len(), 2);
    // The clock jumped: the holders are alive, and have time to say so.
    f.clock.set_wall(f.now().after(secs(3600)));
    f.claim_none(&q).await;
    f.extend(held[0].token, secs(60)).await;
    f.advance(secs(21));
    f.claim_none(&q).await;
    f.advance(secs(60));
    assert_eq!(f.claim_held(&q, 4).await.len(), 1, "what ran out comes first, and alone");
}

pub(super) async fn verb_limit_is_not_lifted_by_a_stale_token(f: &mut Fixture) {
    let q = limited(f, 1).await;
    f.enqueue_all(&q, plain(3)).await;
    let lost = f.claim_one(&q).await;
    f.advance(secs(61));
    let again = f.claim_one(&q).await;
    assert_eq!(again.id, lost.id);
    assert_eq!(f.settle(&lost, Outcome::Done).await, SettleAnswer::LeaseLost);
    f.claim_none(&q).await;
    f.end(&again, Outcome::Done).await;
    // A repeat makes no more room than the first.
    assert_eq!(f.settle(&again, Outcome::Done).await, SettleAnswer::Gone);
    assert_eq!(f.claim_ids(&q, 5).await.len(), 1);
    f.claim_none(&q).await;
}

pub(super) async fn verb_limit_survives_a_kill(f: &mut Fixture) {
    let q = limited(f, 2).await;
    let r = f
        .queue_with("r", |s| {
            s.concurrency = Some(Some(1));
            s.concurrency_per = Some(Per::Group);
        })
        .await;
    f.enqueue_all(&q, plain(5)).await;
    f.enqueue_all(&r, (0..6).map(|n| task("x").in_group(["a", "b"][n % 2])).collect()).await;
    let held = f.claim_held(&q, 5).await;
    let of_groups = f.claim_held(&r, 5).await;
    assert_eq!((held.len(), of_groups.len()), (2, 2));
    if !f.kill().await {
        return;
    }
    f.claim_none(&q).await;
    f.claim_none(&r).await;
    f.end(&held[0], Outcome::Done).await;
    f.end(&of_groups[1], Outcome::Done).await;
    assert_eq!(f.claim_ids(&q, 5).await.len(), 1);
    assert_eq!(f.claim_one(&r).await.task.group.as_deref(), Some("b"));
    f.claim_none(&r).await;
}

pub(super) async fn verb_limit_can_change_while_tasks_run(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue_all(&q, (0..20).map(|n| task("x").in_group(["a", "b"][n % 2])).collect()).await;
    let held = f.claim_held(&q, 6).await;
    // What runs already counts: three of each group.
    f.override_with(&q, |s| s.concurrency = Some(Some(4))).await;
    f.claim_none(&q).await;
    f.override_with(&q, |s| s.concurrency_per = Some(Per::Group)).await;
    assert_eq!(f.claim_ids(&q, 20).await.len(), 2, "one more of each");
    f.end(&held[0], Outcome::Done).await;
    assert_eq!(f.claim_one(&q).await.task.group.as_deref(), Some("a"));
    f.claim_none(&q).await;
    f.override_with(&q, |s| s.concurrency = Some(Some(2))).await;
    f.end(&held[2], Outcome::Done).await;
    f.claim_none(&q).await;
    f.override_with(&q, |s| s.concurrency = Some(None)).await;
    assert_eq!(f.claim_ids(&q, 3).await.len(), 3, "no limit");
    f.override_with(&q, |s| {
        s.concurrency = Some(Some(9));
        s.concurrency_per = Some(Per::Queue);
    })
    .await;
    f.claim_none(&q).await;
    f.end(&held[3], Outcome::Done).await;
    f.end(&held[5], Outcome::Done).await;
    assert_eq!(f.claim_ids(&q, 20).await.len(), 1);
}

pub(super) async fn verb_limit_takes_keys_and_suspects_as_without(f: &mut Fixture) {
    let q = per_group(f, 3).await;
    let suspect = f.enqueue(&q, task("x").in_group("a")).await;
    let held = f.claim_one(&q).await;
    assert_eq!(held.id, suspect);
    f.advance(secs(61));
    let keyed = f.enqueue(&q, task("y").in_group("b").keyed("k")).await;
    f.enqueue(&q, task("z").in_group("c")).await;
    // What has lost its worker before comes in a batch of its own.
    assert_eq!(f.claim_ids(&q, 5).await, [suspect]);
    let claim = f.claim_held(&q, 5).await;
    assert_eq!((claim.len(), claim[0].id), (2, keyed));
    let behind = f.enqueue(&q, task("y").in_group("b").keyed("k")).await;
    f.claim_none(&q).await;
    f.end(&claim[0], Outcome::Done).await;
    assert_eq!(f.claim_ids(&q, 5).await, [behind]);
}

pub(super) async fn verb_limit_wakes_who_waits_for_room(f: &mut Fixture) {
    let q = limited(f, 1).await;
    f.enqueue_all(&q, plain(3)).await;
    for outcome in [Outcome::Done, Outcome::Fail("never".to_owned())] {
        let held = f.claim_one(&q).await;
        let mark = f.store.mark();
        f.claim_none(&q).await;
        let (started, long) = (Instant::now(), secs(20));
        let waiting = f.store.wait(std::slice::from_ref(&q), mark, long);
        let (answer, ()) = tokio::join!(waiting, f.end(&held, outcome));
        answer.expect("a wait");
        assert!(started.elapsed() < long, "it waited {:?}", started.elapsed());
    }
    let failed = f.all().await[0].id;
    f.operate_one(Action::Retry, failed).await;
    assert_eq!(f.claim_ids(&q, 3).await.len(), 1);
}

pub(super) async fn verb_limit_holds_when_claims_race(f: &mut Fixture) {
    const LIMIT: u32 = 5;
    let q = limited(f, LIMIT).await;
    let r = f
        .queue_with("r", |s| {
            s.concurrency = Some(Some(LIMIT));
            s.concurrency_per = Some(Per::Group);
        })
        .await;
    for (queue, groups) in [(&q, 1), (&r, 2)] {
        f.enqueue_all(
            queue,
            (0..120).map(|n| task("x").in_group(["a", "b"][n % groups])).collect(),
        )
        .await;
    }
    for queue in [&q, &r] {
        let handles = f.handles().await;
        let running: Arc<[AtomicUsize; 2]> = Arc::default();
        let mut workers = Vec::new();
        for n in 0..12 {
            let (handle, running) = (handles[n % handles.len()].clone(), running.clone());
            workers.push(tokio::spawn(race(handle, queue.clone(), running, LIMIT as usize)));
        }
        let mut ended = 0;
        for worker in workers {
            ended += worker.await.expect("a worker");
        }
        while let Some(held) = f.claim_held(queue, 1).await.pop() {
            f.end(&held, Outcome::Done).await;
            ended += 1;
        }
        assert_eq!(ended, 120, "no room leaks");
    }
}

/// Claims batches and ends them; counts those of each group that are under lease.
async fn race(
    handle: Handle,
    queue: QueueName,
    running: Arc<[AtomicUsize; 2]>,
    limit: usize,
) -> usize {
    let mut ended = 0;
    for turn in 0..60 {
        let held = handle.claim_held(&queue, 1 + turn % 4).await;
        let group = |held: &Held| usize::from(held.task.group.as_deref() == Some("b"));
        for one in &held {
            let before = running[group(one)].fetch_add(1, Ordering::SeqCst);
            assert!(before < limit, "{} of a group are under lease", before + 1);
        }
        tokio::task::yield_now().await;
        for one in &held {
            running[group(one)].fetch_sub(1, Ordering::SeqCst);
            handle.end(one, Outcome::Done).await;
            ended += 1;
        }
    }
    ended
}
