//! Rule 10, wrong clocks: a jump forward takes nothing from who is alive, and
//! what a clock that was ahead left behind is not waited for.

use gristmill_core::{
    Fire, FireAnswer, Missed, Overlap, Payload, QueueName, Rule, ScheduleDeclaration, ScheduleName,
    Timestamp,
};
use gristmill_text::ControlPlane;

use crate::fixture::Fixture;
use crate::shape::{Shape, plain, secs, task, worker};

pub(super) async fn rule_10_after_a_jump_each_lease_has_its_own_heartbeat(f: &mut Fixture) {
    let q = f.queue_with("q", |patch| patch.lease = Some(secs(6))).await;
    f.enqueue_all(&q, plain(2)).await;
    let mut long = f.request(&q, 1);
    long.lease = Some(secs(60));
    f.take(long).await;
    f.claim_one(&q).await;
    f.clock.set_wall(f.now().after(secs(7200)));
    assert_eq!(f.reclaim().await, 0);
    f.advance(secs(3));
    assert_eq!(f.reclaim().await, 1, "the queue's own lease is extended every two seconds");
    f.advance(secs(16));
    assert_eq!(f.reclaim().await, 0, "the worker's own every twenty");
    f.advance(secs(1));
    assert_eq!(f.reclaim().await, 1);
}

pub(super) async fn rule_10_an_extended_lease_has_the_length_it_was_extended_by(f: &mut Fixture) {
    let q = f.queue_with("q", |patch| patch.lease = Some(secs(6))).await;
    f.enqueue(&q, task("x")).await;
    let held = f.claim_one(&q).await;
    f.extend(held.token, secs(60)).await;
    f.clock.set_wall(f.now().after(secs(7200)));
    assert_eq!(f.reclaim().await, 0);
    f.advance(secs(19));
    assert_eq!(f.reclaim().await, 0);
    f.advance(secs(1));
    assert_eq!(f.reclaim().await, 1);
}

pub(super) async fn rule_10_a_jump_back_prolongs_no_lease(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue(&q, task("x")).await;
    let held = f.claim_one(&q).await;
    f.clock.set_wall(f.now().before(secs(3600)));
    assert_eq!(f.reclaim().await, 0);
    let until = f.the(held.id).await.lease.map(|lease| lease.until);
    assert_eq!(until, Some(f.now().after(secs(60))), "it has its whole length left");
    f.advance(secs(60));
    assert_eq!(f.reclaim().await, 1, "and not an hour more");
}

pub(super) async fn rule_10_what_a_jump_back_makes_undue_is_delayed(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue_all(&q, plain(3)).await;
    f.enqueue(&q, task("urgent").at_priority(-3)).await;
    f.enqueue(&q, task("later").delayed(90)).await;
    let before = f.now();
    f.clock.set_wall(before.before(secs(3600)));
    f.store.sweep().await.expect("a sweep");
    let stats = f.stats(&q).await;
    assert_eq!((stats.ready, stats.delayed), (0, 5), "no claim can take them");
    f.claim_none(&q).await;
    f.clock.set_wall(before);
    f.store.sweep().await.expect("a sweep");
    let stats = f.stats(&q).await;
    assert_eq!((stats.ready, stats.delayed), (4, 1));
    f.audit().await;
}

async fn fire(f: &Fixture, instant: Timestamp) -> FireAnswer {
    let schedule = ScheduleName::new("s").expect("a schedule's name");
    let fire = Fire { schedule, instant, tasks: plain(1), by_hand: false };
    f.store.fire(fire).await.expect("an answer")
}

fn every(queue: &QueueName, seconds: u64) -> ScheduleDeclaration {
    ScheduleDeclaration {
        name: ScheduleName::new("s").expect("a schedule's name"),
        queue: queue.clone(),
        rule: Rule::Every(secs(seconds)),
        zone: "UTC".to_owned(),
        payload: Some(Payload::json("{}")),
        options: Default::default(),
        missed: Missed::Once,
        overlap: Overlap::Allow,
    }
}

pub(super) async fn rule_10_a_schedule_decided_by_a_wrong_clock_fires_again(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.store.declare_schedule(every(&q, 60)).await.expect("a schedule");
    let right = f.now();
    f.clock.set_wall(right.after(secs(365 * 24 * 3600)));
    let ahead = f.now();
    assert!(matches!(fire(f, ahead).await, FireAnswer::Fired(_)));
    f.clock.set_wall(right);
    // What was decided before the clock went wrong stays decided.
    assert_eq!(fire(f, right).await, FireAnswer::AlreadyDecided);
    let schedules = f.store.schedules().await.expect("schedules");
    assert!(schedules.iter().all(|schedule| schedule.decided_until <= f.now()), "{schedules:?}");
    f.advance(secs(60));
    assert!(matches!(fire(f, right.after(secs(60))).await, FireAnswer::Fired(_)));
}

pub(super) async fn rule_10_a_small_step_back_fires_nothing_twice(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.store.declare_schedule(every(&q, 60)).await.expect("a schedule");
    f.advance(secs(60));
    let instant = f.now();
    assert!(matches!(fire(f, instant).await, FireAnswer::Fired(_)));
    f.clock.set_wall(instant.before(secs(30)));
    f.store.sweep().await.expect("a sweep");
    f.advance(secs(31));
    assert_eq!(fire(f, instant).await, FireAnswer::AlreadyDecided);
}

pub(super) async fn rule_10_a_role_survives_a_jump_either_way(f: &mut Fixture) {
    let campaign = async |who: &str| {
        f.store.campaign("role", &worker(who), secs(30)).await.expect("an answer")
    };
    assert!(campaign("ada").await.mine);
    f.clock.set_wall(f.now().after(secs(3600)));
    assert!(!campaign("bob").await.mine, "its holder is alive and renews every ten seconds");
    f.advance(secs(9));
    assert!(!campaign("bob").await.mine);
    assert!(campaign("ada").await.mine);
    f.clock.set_wall(f.now().before(secs(7200)));
    assert_eq!(campaign("bob").await.remaining, secs(30), "and not two hours more");
    f.advance(secs(30));
    assert!(campaign("bob").await.mine);
}

pub(super) async fn rule_10_a_jump_leaves_a_role_its_own_length(f: &mut Fixture) {
    let campaign = async |who: &str, hold| {
        f.store.campaign("role", &worker(who), secs(hold)).await.expect("an answer")
    };
    assert!(campaign("ada", 300).await.mine);
    f.clock.set_wall(f.now().after(secs(3600)));
    // Its holder renews every hundred seconds, whatever others would do.
    assert_eq!(campaign("bob", 3).await.remaining, secs(100));
    f.advance(secs(99));
    assert!(!campaign("bob", 3).await.mine);
    assert!(campaign("ada", 300).await.mine);
    f.clock.set_wall(f.now().before(secs(7200)));
    assert_eq!(campaign("bob", 3).await.remaining, secs(300), "it has its whole length left");
}

pub(super) async fn rule_10_a_role_that_was_given_up_is_not_waited_for(f: &mut Fixture) {
    let campaign = async |who: &str| {
        f.store.campaign("role", &worker(who), secs(30)).await.expect("an answer")
    };
    assert!(campaign("ada").await.mine);
    f.clock.set_wall(f.now().after(secs(3600)));
    assert!(campaign("ada").await.mine);
    assert!(f.store.resign("role", &worker("ada")).await.expect("an answer"));
    assert!(campaign("bob").await.mine, "there is no holder to wait for");
    assert!(f.store.resign("role", &worker("bob")).await.expect("an answer"));
    f.clock.set_wall(f.now().before(secs(7200)));
    assert!(campaign("ada").await.mine, "also when the clock says that it has time left");
}

pub(super) async fn rule_10_a_claim_says_how_long_leases_are_held_back(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue(&q, task("x")).await;
    f.claim_one(&q).await;
    assert_eq!(f.claim(&q, 1).await.held_back, None, "its lease has not run out");
    f.clock.set_wall(f.now().after(secs(3600)));
    assert_eq!(f.claim(&q, 1).await.held_back, Some(secs(20)));
    f.advance(secs(15));
    assert_eq!(f.claim(&q, 1).await.held_back, Some(secs(5)));
    f.advance(secs(5));
    assert_eq!(f.claim(&q, 1).await.tasks.len(), 1);
}
