//! Schedulers over a store that misbehaves: every instant fires once, the loop goes on
//! when the store is back, little is said, and a stop is heard.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use gristmill::Timestamp;
use gristmill::port::{Clock, ListRequest};
use gristmill::schedule::{FIRE_HEADER, Finding, Missed, Scheduler};
use gristmill::testing::{Fault, Verb};
use tokio::sync::oneshot;

use crate::Mail;
use crate::faulty::{Bad, every_store_on_a_clock, side_by_side};
use crate::said::{AWAY, BACK, Said};

const EVERY: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(500);
/// A test that hangs fails instead.
const PATIENCE: Duration = Duration::from_secs(20);

/// All that can go wrong.
pub(crate) const FAULTS: [Fault; 6] = [
    Fault::Refuses,
    Fault::Hangs,
    Fault::Late(Duration::from_millis(700)),
    Fault::UnknownUndone,
    Fault::UnknownDone,
    Fault::Forgets,
];

/// Whether somebody who gets nothing else is without a store.
pub(crate) fn is_away(fault: Fault) -> bool {
    !matches!(fault, Fault::Late(_) | Fault::Forgets)
}

/// What the standing tasks are for.
async fn instants(bad: &Bad) -> Vec<Timestamp> {
    let request = ListRequest { limit: 1_000, ..ListRequest::default() };
    let tasks = bad.well().inspect().list(request).await.unwrap().tasks;
    let mut instants: Vec<Timestamp> =
        tasks.iter().map(|task| task.headers[FIRE_HEADER].parse().unwrap()).collect();
    instants.sort();
    instants
}

/// Everything goes wrong like this for three fires, and then nothing does.
pub(crate) async fn fires_once_through(stores: Vec<Bad>, fault: Fault) {
    let (said, count) = (Said::default(), stores.len());
    let _listening = tracing::subscriber::set_default(said.clone());
    let (heard, away) = (said.clone(), is_away(fault));
    side_by_side(stores, move |bad| {
        let said = heard.clone();
        async move {
            let Bad { mill, store, clock, .. } = &bad;
            let every = mill.schedule("s").every(EVERY).missed(Missed::All).puts(Mail::to("a"));
            let scheduler = Scheduler::new(mill).clock(clock.clone()).schedule(every);
            let (stop, stopped) = oneshot::channel::<()>();
            let stopped = async move { stopped.await.unwrap_or_default() };
            let running = tokio::spawn(scheduler.run(stopped));
            let fires = async || instants(&bad).await.len();
            bad.ticks(STEP, "a first fire", async || fires().await >= 1).await;
            let (before, looks) = (fires().await, store.calls(Verb::Schedules));
            store.fails(fault);
            let since = clock.now();
            let missed = async || clock.now().since(since) >= 3 * EVERY;
            let looked = || store.calls(Verb::Schedules) > looks;
            bad.ticks(STEP, "three fires", async || missed().await && looked()).await;
            if away {
                bad.ticks(STEP, "it is said", async || said.count(AWAY) == count).await;
            }
            store.heal();
            let made_up = async || fires().await >= before + 3;
            bad.ticks(STEP, "what was missed", made_up).await;
            if away {
                bad.ticks(STEP, "it is said", async || said.count(BACK) == count).await;
            }
            drop(stop);
            let ended = tokio::time::timeout(PATIENCE, running).await.expect("it stops");
            ended.unwrap().unwrap();
            let instants = instants(&bad).await;
            for pair in instants.windows(2) {
                assert_eq!(pair[1].since(pair[0]), EVERY, "{fault:?}: missing or doubled");
            }
        }
    })
    .await;
    let lines = if away { count } else { 0 };
    assert_eq!((said.count(AWAY), said.count(BACK)), (lines, lines), "{fault:?}: {said:?}");
    assert_eq!(said.count("WARN"), 2 * lines, "{fault:?}: {said:?}");
}

#[tokio::test]
async fn an_instant_fires_once_though_the_store_refuses() {
    fires_once_through(every_store_on_a_clock().await, Fault::Refuses).await;
}

#[tokio::test]
async fn an_instant_fires_once_though_the_store_hangs() {
    fires_once_through(every_store_on_a_clock().await, Fault::Hangs).await;
}

#[tokio::test]
async fn an_instant_fires_once_though_the_store_answers_unknown() {
    fires_once_through(every_store_on_a_clock().await, Fault::UnknownUndone).await;
    fires_once_through(every_store_on_a_clock().await, Fault::UnknownDone).await;
}

#[tokio::test]
async fn an_instant_fires_once_though_the_store_is_late_or_forgets_claims() {
    fires_once_through(every_store_on_a_clock().await, FAULTS[2]).await;
    fires_once_through(every_store_on_a_clock().await, Fault::Forgets).await;
}

/// A stop is heard whatever the store does, at the start and between two looks:
/// no time has to pass for it.
pub(crate) async fn stops_through(stores: Vec<Bad>, fault: Fault) {
    side_by_side(stores, move |bad| async move {
        let Bad { mill, store, clock, .. } = &bad;
        for first in [Verb::DeclareSchedule, Verb::Schedules] {
            let every = mill.schedule("s").every(EVERY).puts(Mail::to("a"));
            let scheduler = Scheduler::new(mill).clock(clock.clone()).schedule(every);
            store.fails_at(&[first, Verb::Schedules, Verb::Fire], fault);
            let stop = store.called(first, store.calls(first) + 1);
            let ended = tokio::time::timeout(PATIENCE, scheduler.run(stop)).await;
            ended.unwrap_or_else(|_| panic!("{fault:?} at {first:?}: it does not stop")).unwrap();
            store.heal();
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

/// A finder's instant is decided after its run: an answer that did not come may cost
/// another run, and never one beside it. One that was decided is not run again.
pub(crate) async fn finds_through(stores: Vec<Bad>, (verb, fault, runs): (Verb, Fault, u32)) {
    side_by_side(stores, move |bad| async move {
        let Bad { mill, store, clock, .. } = &bad;
        let (ran, inside) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let counts = (ran.clone(), inside.clone());
        let find = move |finding: Finding| {
            let (ran, inside) = counts.clone();
            async move {
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "side by side");
                ran.fetch_add(1, Ordering::SeqCst);
                finding.put(Mail::to("found")).await.map_err(|e| e.to_string())?;
                inside.fetch_sub(1, Ordering::SeqCst);
                Ok::<(), String>(())
            }
        };
        let hour = Duration::from_secs(3600);
        let every = mill.schedule("find").every(hour).finder("mails", find);
        let scheduler = Scheduler::new(mill).clock(clock.clone()).schedule(every);
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(scheduler.run(async { stopped.await.unwrap_or_default() }));
        store.called(Verb::Schedules, 1).await;
        let decided = async || {
            let known = bad.well().store().schedules().await.unwrap().remove(0);
            known.decided_until > known.created_at
        };
        store.fails_at(&[verb], fault);
        let calls = store.calls(verb);
        clock.advance(hour);
        let asked = async || store.calls(verb) >= calls + 2 || decided().await;
        bad.ticks(STEP, "it was tried", asked).await;
        store.heal();
        bad.ticks(STEP, "it is decided", async || decided().await).await;
        drop(stop);
        tokio::time::timeout(PATIENCE, running).await.expect("it stops").unwrap().unwrap();
        let ran = ran.load(Ordering::SeqCst);
        assert!(ran >= 1 && ran <= runs, "{fault:?} at {verb:?}: {ran} runs");
    })
    .await;
}

/// Where it goes wrong, how, and how often the finder runs at most.
pub(crate) const FINDS: [(Verb, Fault, u32); 4] = [
    (Verb::Campaign, Fault::Refuses, 1),
    (Verb::SaveDocument, Fault::UnknownDone, 1),
    (Verb::Fire, Fault::UnknownDone, 1),
    (Verb::Fire, Fault::Refuses, 4),
];

#[tokio::test]
async fn a_finder_decides_its_instant_though_the_store_misbehaves() {
    for trouble in FINDS {
        finds_through(every_store_on_a_clock().await, trouble).await;
    }
}
