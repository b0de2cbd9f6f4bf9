//! Managers over a store that misbehaves: another one leads where the leader's store
//! is away, one at a time speaks, and the loop goes on when the store is back.

use std::time::Duration;

use gristmill::manager::{Manager, ManagerLook};
use gristmill::port::Clock;
use gristmill::testing::{Fault, Verb};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::faulty::{Bad, every_store_on_a_clock, side_by_side};
use crate::said::{AWAY, BACK, Said};
use crate::schedule_faulty::FAULTS;

const SECOND: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(200);
const HOLD: Duration = Duration::from_secs(10);

fn manager(bad: &Bad) -> Manager {
    Manager::new(&bad.mill).clock(bad.clock.clone()).every(SECOND).hold(HOLD)
}

fn run(bad: &Bad, stop: &watch::Sender<bool>) -> JoinHandle<Result<(), gristmill::Error>> {
    let mut stop = stop.subscribe();
    tokio::spawn(manager(bad).run(async move {
        let _ = stop.wait_for(|stop| *stop).await;
    }))
}

/// The term of the word that stands.
async fn term(bad: &Bad) -> Option<u64> {
    bad.well().inspect().assignment().await.unwrap().map(|word| word.term)
}

/// Of two managers the first one's store goes wrong in all it does.
pub(crate) async fn leads_through(stores: Vec<Bad>, fault: Fault) {
    let (said, count) = (Said::default(), stores.len());
    let _listening = tracing::subscriber::set_default(said.clone());
    // One whose store does as it is asked leads on, also where it is not told.
    let passes = matches!(fault, Fault::Refuses | Fault::Hangs | Fault::UnknownUndone);
    let is_said = passes || fault == Fault::UnknownDone;
    let heard = said.clone();
    side_by_side(stores, move |bad| {
        let said = heard.clone();
        async move {
            let (other, clock) = (bad.beside().await, &bad.clock);
            let stop = watch::Sender::new(false);
            let first = run(&bad, &stop);
            bad.store.called(Verb::PublishAssignment, 1).await;
            let second = run(&other, &stop);
            other.store.called(Verb::Campaign, 1).await;
            let since = clock.now();
            bad.store.fails(fault);
            if passes {
                bad.ticks(STEP, "another leads", async || term(&bad).await == Some(2)).await;
            } else {
                let longer = async || clock.now().since(since) > 3 * HOLD;
                bad.ticks(STEP, "three holds", longer).await;
            }
            if is_said {
                bad.ticks(STEP, "it is said", async || said.count(AWAY) == count).await;
            }
            bad.store.heal();
            let looks = bad.store.calls(Verb::Campaign) + 2;
            let looked = async || bad.store.calls(Verb::Campaign) >= looks;
            bad.ticks(STEP, "it goes on", looked).await;
            if is_said {
                bad.ticks(STEP, "it is said", async || said.count(BACK) == count).await;
            }
            let led = if passes { 2 } else { 1 };
            assert_eq!(term(&bad).await, Some(led), "{fault:?}: one speaks");
            stop.send_replace(true);
            for running in [first, second] {
                running.await.unwrap().unwrap();
            }
            // They gave the role up.
            let look = manager(&bad).look().await.unwrap();
            let next = matches!(look, ManagerLook::Leads { term, .. } if term > led);
            assert!(next, "{fault:?}: {look:?}");
        }
    })
    .await;
    let lines = if is_said { count } else { 0 };
    assert_eq!((said.count(AWAY), said.count(BACK)), (lines, lines), "{fault:?}: {said:?}");
}

#[tokio::test]
async fn another_manager_leads_while_the_leaders_store_refuses() {
    leads_through(every_store_on_a_clock().await, Fault::Refuses).await;
}

#[tokio::test]
async fn another_manager_leads_while_the_leaders_store_hangs() {
    leads_through(every_store_on_a_clock().await, Fault::Hangs).await;
}

#[tokio::test]
async fn another_manager_leads_while_what_the_leader_asks_is_not_done() {
    leads_through(every_store_on_a_clock().await, Fault::UnknownUndone).await;
}

#[tokio::test]
async fn a_leader_stays_while_its_store_does_what_it_asks() {
    for fault in [Fault::UnknownDone, FAULTS[2], Fault::Forgets] {
        leads_through(every_store_on_a_clock().await, fault).await;
    }
}

/// The word of one that was deposed meanwhile comes late, and is not heard.
pub(crate) async fn late_word_is_refused(stores: Vec<Bad>) {
    side_by_side(stores, |bad| async move {
        let other = bad.beside().await;
        let stop = watch::Sender::new(false);
        bad.store.fails_at(&[Verb::PublishAssignment], Fault::Hangs);
        let mut first = manager(&bad);
        let speaks = tokio::spawn(async move { (first.look().await, first) });
        bad.store.called(Verb::PublishAssignment, 1).await;
        let second = run(&other, &stop);
        bad.ticks(STEP, "another leads", async || term(&bad).await == Some(2)).await;
        bad.store.heal();
        let (look, mut first) = speaks.await.unwrap();
        assert_eq!(look.unwrap(), ManagerLook::Deposed { term: 2 });
        assert_eq!(term(&bad).await, Some(2));
        let look = first.look().await.unwrap();
        assert!(matches!(look, ManagerLook::Waits { term: 2, .. }), "{look:?}");
        stop.send_replace(true);
        second.await.unwrap().unwrap();
    })
    .await;
}

#[tokio::test]
async fn the_late_word_of_one_that_was_deposed_is_refused() {
    late_word_is_refused(every_store_on_a_clock().await).await;
}

/// A stop is heard whatever the store does; only a farewell that hangs takes its
/// second.
pub(crate) async fn stops_through(stores: Vec<Bad>, fault: Fault) {
    side_by_side(stores, move |bad| async move {
        let clock = &bad.clock;
        for looks in [1, 3] {
            let stop = watch::Sender::new(false);
            if looks == 1 {
                bad.store.fails(fault);
            }
            let running = run(&bad, &stop);
            bad.store.called(Verb::Campaign, bad.store.calls(Verb::Campaign) + 1).await;
            bad.store.fails(fault);
            let since = clock.now();
            stop.send_replace(true);
            bad.ticks(STEP, "it stops", async || running.is_finished()).await;
            let took = clock.now().since(since);
            assert!(took < HOLD, "{fault:?}: {took:?}");
            running.await.unwrap().unwrap();
            bad.store.heal();
        }
    })
    .await;
}

#[tokio::test]
async fn a_stop_is_heard_whatever_the_store_does() {
    for fault in FAULTS {
        stops_through(every_store_on_a_clock().await, fault).await;
    }
}
