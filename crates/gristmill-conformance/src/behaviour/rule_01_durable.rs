//! Rule 1, durable: what was acknowledged is there after the process was
//! killed, in every field, and in every other process.

use gristmill_core::{
    Became, ContractAnswer, ContractChange, Durability, Outcome, PutAnswer, SettleAnswer, State,
    When,
};

use crate::fixture::Fixture;
use crate::shape::{Shape, plain, secs, task};

pub(super) async fn rule_01_an_acknowledged_put_survives_a_kill(f: &mut Fixture) {
    let q = f.queue("q").await;
    let rich = task("rich").keyed("k").in_group("g").of_source("s");
    let rich = rich.at_priority(-3).delayed(5).with_header("a", "b");
    f.enqueue(&q, rich).await;
    f.enqueue_all(&q, plain(20)).await;
    let before = f.all().await;
    if f.kill().await {
        assert_eq!(f.all().await, before);
        assert_eq!(f.claim_ids(&q, 100).await.len(), 20);
    }
}

pub(super) async fn rule_01_an_acknowledged_settlement_survives_a_kill(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue_all(&q, plain(6)).await;
    let held = f.claim_held(&q, 6).await;
    let later = || When::After(secs(30));
    let outcomes = [
        Outcome::Done,
        Outcome::Error("went wrong".to_owned()),
        Outcome::Fail("never".to_owned()),
        Outcome::Retry { at: later(), reason: None },
        Outcome::Release { at: Some(later()), started: true },
        Outcome::Cancelled,
    ];
    for (held, outcome) in held.iter().zip(outcomes) {
        f.end(held, outcome).await;
    }
    let before = f.all().await;
    assert_eq!(before.len(), 4, "done and cancelled are gone");
    let counters = f.stats(&q).await.counters;
    if f.kill().await {
        assert_eq!(f.all().await, before);
        assert_eq!(f.stats(&q).await.counters, counters);
        for held in &held {
            let again = f.settle(held, Outcome::Done).await;
            assert!(!again.is_recorded(), "it was settled before: {again:?}");
        }
    }
}

pub(super) async fn rule_01_follow_ups_survive_a_kill_with_their_settlement(f: &mut Fixture) {
    let q = f.queue("q").await;
    let next = f.queue("next").await;
    f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    f.settle_then(&held, Outcome::Done, &next, plain(3)).await;
    if f.kill().await {
        assert_eq!(f.get(held.id).await, None);
        assert_eq!(f.claim_ids(&next, 10).await.len(), 3);
    }
}

pub(super) async fn rule_01_a_claimed_task_survives_a_kill(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    if f.kill().await {
        // The claim itself may be lost (then the task is pending) or kept.
        let found = f.the(id).await;
        assert!(matches!(found.state, State::Pending | State::Processing));
        f.advance(secs(61));
        let again = f.claim_one(&q).await;
        assert_eq!(again.id, id, "a lost worker's task comes back");
        let late = f.settle(&held, Outcome::Done).await;
        assert_eq!(late, SettleAnswer::LeaseLost);
    }
}

pub(super) async fn rule_01_a_lease_can_be_settled_after_a_restart(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.slots = Some(Some(2))).await;
    f.enqueue_all(&q, plain(3)).await;
    // With slots on, a claim is as durable as a put.
    let held = f.claim_one(&q).await;
    if f.kill().await {
        let other = f.claim_one(&q).await;
        assert_ne!(other.task.slot, held.task.slot, "the slot is still held");
        let answer = f.settle(&held, Outcome::Done).await;
        let done = SettleAnswer::Recorded { became: Became::Done, follow_ups: Vec::new() };
        assert_eq!(answer, done);
    }
}

pub(super) async fn rule_01_a_relaxed_queue_survives_a_kill(f: &mut Fixture) {
    let relaxed = |s: &mut gristmill_core::SettingsPatch| s.durability = Some(Durability::Relaxed);
    let q = f.queue_with("q", relaxed).await;
    f.enqueue_all(&q, plain(50)).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Done).await;
    if f.kill().await {
        assert_eq!(f.all().await.len(), 49);
    }
}

pub(super) async fn rule_01_a_callers_id_survives_a_kill(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a").with_id("order-1")).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Done).await;
    if f.kill().await {
        let again = f.put(&q, task("a").with_id("order-1")).await;
        assert!(matches!(again, PutAnswer::Duplicate { id: first, .. } if first == id));
    }
}

pub(super) async fn rule_01_what_operators_said_survives_a_kill(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.capacity = Some(Some(9))).await;
    f.override_with(&q, |s| s.max_attempts = Some(None)).await;
    f.pause(&q, true).await;
    let contract = ContractChange {
        queue: q.clone(),
        text: "fields: []".to_owned(),
        replaces: None,
        breaking: false,
    };
    let answer = f.store.register_contract(contract).await;
    assert_eq!(answer, Ok(ContractAnswer::Registered));
    let before = f.store.queues().await;
    if f.kill().await {
        assert_eq!(f.store.queues().await, before);
        assert!(f.claim(&q, 1).await.paused);
    }
}

pub(super) async fn rule_01_numbers_go_on_after_a_kill(f: &mut Fixture) {
    let q = f.queue("q").await;
    let ids = f.enqueue_all(&q, plain(3)).await;
    for held in f.claim_held(&q, 3).await {
        f.end(&held, Outcome::Done).await;
    }
    if f.kill().await {
        // The largest ids have no row any more and must not be given again.
        let next = f.enqueue(&q, task("next")).await;
        assert!(ids.iter().all(|id| *id < next), "{next} after {ids:?}");
    }
}

pub(super) async fn rule_01_another_process_sees_what_was_acknowledged(f: &mut Fixture) {
    let q = f.queue("q").await;
    let Some(other) = f.another().await else {
        return;
    };
    for round in 0..20 {
        let id = f.enqueue(&q, task(&round.to_string())).await;
        assert_eq!(other.the(id).await, f.the(id).await);
        let held = other.claim_one(&q).await;
        assert_eq!(f.the(id).await.state, State::Processing);
        f.end(&held, Outcome::Done).await;
        assert_eq!(other.get(id).await, None);
    }
}
