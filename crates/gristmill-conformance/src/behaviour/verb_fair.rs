//! Fairness: within a priority, claims take turns between the groups that have due
//! tasks.

use gristmill_core::{Fair, Outcome, Per, QueueName, TaskId};

use crate::fixture::Fixture;
use crate::shape::{Shape, plain, secs, task};

async fn fair(f: &Fixture) -> QueueName {
    f.queue_with("q", |s| s.fair = Some(Fair::Group)).await
}

/// The groups of a claim, by name.
async fn groups(f: &Fixture, q: &QueueName, max: usize) -> Vec<String> {
    let tasks = f.claim(q, max).await.tasks;
    let mut groups: Vec<String> =
        tasks.into_iter().map(|task| task.group.unwrap_or_default()).collect();
    groups.sort_unstable();
    groups
}

pub(super) async fn verb_fair_claims_take_turns_between_groups(f: &mut Fixture) {
    let q = fair(f).await;
    f.enqueue_all(&q, (0..300).map(|_| task("x").in_group("whale")).collect()).await;
    f.enqueue_all(&q, (0..3).map(|_| task("x").in_group("ant")).collect()).await;
    f.enqueue_all(&q, (0..3).map(|_| task("x").in_group("bee")).collect()).await;
    f.enqueue_all(&q, plain(2)).await;
    // No group is one, too.
    assert_eq!(groups(f, &q, 4).await, ["", "ant", "bee", "whale"]);
    // One by one the round goes on where the claim before ended.
    let mut round = Vec::new();
    for _ in 0..4 {
        round.extend(groups(f, &q, 1).await);
    }
    assert_eq!(round, ["", "ant", "bee", "whale"]);
    assert_eq!(groups(f, &q, 6).await, ["ant", "bee", "whale", "whale", "whale", "whale"]);
    // Who comes late starts in the next round, whoever came before.
    f.enqueue(&q, task("x").in_group("cat")).await;
    assert_eq!(groups(f, &q, 2).await, ["cat", "whale"]);
}

pub(super) async fn verb_fair_keeps_priorities_and_each_groups_order(f: &mut Fixture) {
    let q = fair(f).await;
    let of = |group: &str, level| task("x").in_group(group).at_priority(level);
    let low = f.enqueue_all(&q, vec![of("a", 5), of("b", 5)]).await;
    let all =
        f.enqueue_all(&q, vec![of("a", 0), of("a", 0), of("a", -1), of("a", 0), of("b", 0)]).await;
    let delayed = f.enqueue(&q, of("c", -9).delayed(10)).await;
    let mut order: Vec<TaskId> = Vec::new();
    for _ in 0..7 {
        order.push(f.claim_one(&q).await.id);
    }
    assert_eq!(order, [all[2], all[0], all[4], all[1], all[3], low[0], low[1]]);
    f.claim_none(&q).await;
    f.advance(secs(10));
    assert_eq!(f.claim_one(&q).await.id, delayed);
}

pub(super) async fn verb_fair_goes_on_after_a_kill_and_between_handles(f: &mut Fixture) {
    let q = fair(f).await;
    for group in ["a", "b", "c", "d"] {
        f.enqueue_all(&q, (0..4).map(|_| task("x").in_group(group)).collect()).await;
    }
    assert_eq!(groups(f, &q, 2).await, ["a", "b"]);
    if f.kill().await {
        assert_eq!(groups(f, &q, 1).await, ["c"]);
        assert_eq!(groups(f, &q, 3).await, ["a", "b", "d"]);
        assert_eq!(groups(f, &q, 2).await, ["c", "d"]);
    }
    let handles = f.handles().await;
    let mut round = Vec::new();
    for n in 0..4 {
        let held = handles[n % handles.len()].claim_one(&q).await;
        round.push(held.task.group.clone().expect("a group"));
        handles[n % handles.len()].end(&held, Outcome::Done).await;
    }
    round.sort_unstable();
    assert_eq!(round, ["a", "b", "c", "d"]);
}

pub(super) async fn verb_fair_and_limits_hold_together(f: &mut Fixture) {
    let q = f
        .queue_with("q", |s| {
            s.fair = Some(Fair::Group);
            s.concurrency = Some(Some(2));
            s.concurrency_per = Some(Per::Group);
        })
        .await;
    for (group, count) in [("a", 5), ("b", 1), ("c", 5)] {
        f.enqueue_all(&q, (0..count).map(|_| task("x").in_group(group)).collect()).await;
    }
    assert_eq!(groups(f, &q, 20).await, ["a", "a", "b", "c", "c"]);
    f.claim_none(&q).await;
    f.override_with(&q, |s| s.concurrency = Some(Some(3))).await;
    assert_eq!(groups(f, &q, 20).await, ["a", "c"]);
    f.override_with(&q, |s| s.fair = Some(Fair::None)).await;
    f.override_with(&q, |s| s.concurrency = Some(None)).await;
    assert_eq!(groups(f, &q, 20).await, ["a", "a", "c", "c"]);
}

pub(super) async fn verb_fair_lets_a_new_group_start_within_two_rounds_of_ten_thousand(
    f: &mut Fixture,
) {
    let q = fair(f).await;
    let of = |group: &str| task("x").in_group(group);
    for from in (0..10_000).step_by(1_000) {
        let tasks = (from..from + 1_000).map(|n| of(&format!("g{n:05}")));
        f.enqueue_all(&q, tasks.collect()).await;
    }
    f.enqueue_all(&q, (0..1_000).map(|_| of("whale")).collect()).await;
    for _ in 0..3 {
        assert_eq!(f.claim_ids(&q, 1_000).await.len(), 1_000);
    }
    // One whose turn comes in this round, and one that has missed it.
    let ahead = f.enqueue(&q, of("g05000a")).await;
    let behind = f.enqueue(&q, of("g01500a")).await;
    let mut waited = [None, None];
    for claims in 1..=8 {
        let taken = f.claim_ids(&q, 1_000).await;
        for (waited, id) in waited.iter_mut().zip([ahead, behind]) {
            if taken.contains(&id) {
                *waited = Some(claims);
            }
        }
    }
    assert_eq!(waited, [Some(3), Some(8)], "in claims of a thousand");
}

pub(super) async fn verb_fair_takes_sources_keys_and_suspects_as_without(f: &mut Fixture) {
    let q = fair(f).await;
    let suspect = f.enqueue(&q, task("x").in_group("b")).await;
    assert_eq!(f.claim_one(&q).await.id, suspect);
    f.advance(secs(61));
    let one = f.enqueue(&q, task("x").in_group("a").of_source("shop").keyed("k")).await;
    let two = f.enqueue(&q, task("x").in_group("c").of_source("feed")).await;
    let mut request = f.request(&q, 5);
    request.source = Some("feed".to_owned());
    let taken: Vec<TaskId> = f.take(request).await.tasks.iter().map(|task| task.id).collect();
    assert_eq!(taken, [two]);
    // From behind c: a, and then the suspect ends the batch.
    let held = f.claim_held(&q, 5).await;
    assert_eq!((held.len(), held[0].id), (1, one));
    assert_eq!(f.claim_ids(&q, 5).await, [suspect]);
    let behind = f.enqueue(&q, task("y").in_group("a").keyed("k")).await;
    f.claim_none(&q).await;
    f.end(&held[0], Outcome::Done).await;
    assert_eq!(f.claim_ids(&q, 5).await, [behind]);
}
