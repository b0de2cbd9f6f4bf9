//! Rule 6, the part on what a duplicate does: skip, replace, postpone.

use gristmill_core::{NewTask, OnDuplicate, Outcome, PutAnswer, QueueName, Start};

use crate::fixture::Fixture;
use crate::shape::{Shape, secs, task};

async fn queue(f: &Fixture, on_duplicate: OnDuplicate) -> QueueName {
    f.queue_with("q", |s| s.on_duplicate = Some(on_duplicate)).await
}

pub(super) async fn rule_06_replace_takes_payload_headers_and_urgency(f: &mut Fixture) {
    let q = queue(f, OnDuplicate::Replace).await;
    let first = task("old").keyed("k").at_priority(3).with_header("trace", "1");
    let id = f.enqueue(&q, first.of_source("shop").in_group("g")).await;
    let before = f.the(id).await;
    f.advance(secs(5));
    let urgent = task("new").keyed("k").at_priority(-2).with_header("span", "2");
    assert_eq!(f.put(&q, urgent.clone()).await, PutAnswer::Replaced { id });
    let after = f.the(id).await;
    assert_eq!(after.payload, urgent.payload);
    assert_eq!(after.headers, urgent.headers);
    assert_eq!(after.priority, -2);
    assert_eq!((after.run_at, after.created_at), (before.run_at, before.created_at));
    assert_eq!((after.source, after.group), (before.source, before.group));
    // A less urgent one does not push it back.
    assert_eq!(f.put(&q, task("last").keyed("k")).await, PutAnswer::Replaced { id });
    assert_eq!(f.the(id).await.priority, -2);
    assert_eq!(f.claim_one(&q).await.task.payload, task("last").payload);
    let counters = f.stats(&q).await.counters;
    assert_eq!((counters.put, counters.replaced), (1, 2));
}

pub(super) async fn rule_06_replace_moves_the_task_to_its_new_place(f: &mut Fixture) {
    let q = queue(f, OnDuplicate::Replace).await;
    let id = f.enqueue(&q, task("x").keyed("k").delayed(600)).await;
    let other = f.enqueue(&q, task("other")).await;
    // No start said: it stays where it was.
    let _ = f.put(&q, task("x").keyed("k").at_priority(-1)).await;
    assert_eq!(f.stats(&q).await.delayed, 1);
    // A start that was given holds, earlier or later.
    let now = Start::At(f.now());
    let _ = f.put(&q, NewTask { start: now, ..task("x").keyed("k") }).await;
    assert_eq!(f.stats(&q).await.ready, 2);
    assert_eq!(f.claim_ids(&q, 10).await, [id, other], "the more urgent first");
}

pub(super) async fn rule_06_replace_leaves_the_running_one_alone(f: &mut Fixture) {
    let q = queue(f, OnDuplicate::Replace).await;
    let running = f.enqueue(&q, task("one").keyed("k")).await;
    let held = f.claim_one(&q).await;
    let waiting = f.enqueue(&q, task("two").keyed("k")).await;
    let replaced = f.put(&q, task("three").keyed("k")).await;
    assert_eq!(replaced, PutAnswer::Replaced { id: waiting });
    assert_eq!(f.the(running).await.payload, task("one").payload);
    assert!(f.the(waiting).await.blocked);
    f.end(&held, Outcome::Done).await;
    assert_eq!(f.claim_one(&q).await.task.payload, task("three").payload);
}

pub(super) async fn rule_06_replace_within_one_put_leaves_the_last(f: &mut Fixture) {
    let q = queue(f, OnDuplicate::Replace).await;
    let puts = vec![task("one").keyed("k"), task("two").keyed("k"), task("three").keyed("k")];
    let answers = f.put_all(&q, puts).await;
    let id = answers[0].id().expect("an id");
    assert_eq!(answers[1..], [PutAnswer::Replaced { id }, PutAnswer::Replaced { id }]);
    assert_eq!(f.the(id).await.payload, task("three").payload);
}

pub(super) async fn rule_06_many_in_one_put_stand_as_if_put_in_turn(f: &mut Fixture) {
    let q = queue(f, OnDuplicate::Replace).await;
    let _ = f.enqueue(&q, task("running").keyed("busy")).await;
    let held = f.claim_one(&q).await;
    let mut puts: Vec<NewTask> = (0..12).map(|n| task(&n.to_string())).collect();
    puts[1] = task("1").keyed("k");
    puts[4] = task("4").keyed("busy");
    puts[6] = task("6").delayed(30);
    puts[9] = task("9").keyed("k").at_priority(-1);
    let answers = f.put_all(&q, puts).await;
    let id = |n: usize| answers[n].id().expect("an id");
    assert_eq!(answers[9], PutAnswer::Replaced { id: id(1) });
    let stats = f.stats(&q).await;
    assert_eq!((stats.ready, stats.delayed, stats.blocked), (9, 1, 1));
    let order = [1, 0, 2, 3, 5, 7, 8, 10, 11].map(id);
    assert_eq!(f.claim_ids(&q, 20).await, order, "the more urgent first, then as they were put");
    f.end(&held, Outcome::Done).await;
    assert_eq!(f.claim_ids(&q, 20).await, [id(4)]);
    f.advance(secs(30));
    assert_eq!(f.claim_ids(&q, 20).await, [id(6)]);
}

pub(super) async fn rule_06_postpone_waits_for_quiet(f: &mut Fixture) {
    let q = queue(f, OnDuplicate::Postpone).await;
    let id = f.enqueue(&q, task("0").keyed("k").delayed(10)).await;
    for n in 1..=5 {
        f.advance(secs(6));
        let answer = f.put(&q, task(&n.to_string()).keyed("k").delayed(10)).await;
        assert_eq!(answer, PutAnswer::Replaced { id });
        assert_eq!(f.the(id).await.run_at, f.now().after(secs(10)));
        f.claim_none(&q).await;
    }
    f.advance(secs(10));
    assert_eq!(f.claim_one(&q).await.task.payload, task("5").payload);
}

pub(super) async fn rule_06_postpone_ends_at_its_limit(f: &mut Fixture) {
    // Ten delays where nothing is set, else what is set.
    for (set, limit) in [(None, 100), (Some(secs(25)), 25)] {
        f.renew().await;
        let q = f
            .queue_with("q", |s| {
                s.on_duplicate = Some(OnDuplicate::Postpone);
                s.postpone_max = Some(set);
            })
            .await;
        let id = f.enqueue(&q, task("x").keyed("k").delayed(10)).await;
        let first = f.now();
        let mut claimed = None;
        for _ in 0..30 {
            f.advance(secs(5));
            claimed = f.claim_ids(&q, 1).await.pop();
            if claimed.is_some() {
                break;
            }
            let _ = f.put(&q, task("x").keyed("k").delayed(10)).await;
            assert!(f.the(id).await.run_at <= first.after(secs(limit)));
        }
        assert_eq!(claimed, Some(id), "a steady stream cannot hold it off for ever");
        assert_eq!(f.now(), first.after(secs(limit)));
    }
}

pub(super) async fn rule_06_postpone_never_brings_a_task_forward(f: &mut Fixture) {
    let q = queue(f, OnDuplicate::Postpone).await;
    let id = f.enqueue(&q, task("x").keyed("k").delayed(50)).await;
    let run_at = f.the(id).await.run_at;
    let _ = f.put(&q, task("x").keyed("k").delayed(1)).await;
    let _ = f.put(&q, task("x").keyed("k")).await;
    assert_eq!(f.the(id).await.run_at, run_at);
}
