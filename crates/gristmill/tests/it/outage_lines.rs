//! What is said while a store misbehaves, and what is done when it is back:
//! workers, a scheduler and a manager over one mill.

use std::time::Duration;

use gristmill::manager::Manager;
use gristmill::schedule::{Missed, Scheduler};
use gristmill::testing::{Fault, Verb};
use gristmill::worker::{Context, Worker};
use tokio::sync::watch;

use crate::faulty::{Bad, every_store, side_by_side};
use crate::said::Said;
use crate::{Mail, until};

/// Everybody who asks the store by itself, in trouble for a while.
async fn away(bad: &Bad, fault: Fault, said: &Said) {
    let Bad { mill, store, .. } = bad;
    let (stop, stopping) = watch::channel(false);
    let asked = |mut stopping: watch::Receiver<bool>| async move {
        let _ = stopping.wait_for(|stop| *stop).await;
    };
    let every = mill.schedule("s").every(Duration::from_secs(1)).missed(Missed::All);
    let scheduler = Scheduler::new(mill).schedule(every.puts(Mail::to("a")));
    let scheduling = tokio::spawn(scheduler.run(asked(stopping.clone())));
    let manager = Manager::new(mill).every(Duration::from_millis(100));
    let managing = tokio::spawn(manager.run(asked(stopping)));
    let quick = |_: Mail| async { Ok::<(), String>(()) };
    let workers = [
        Worker::new(mill).processors(4).handle(quick).start().await.unwrap(),
        Worker::new(mill).processors(4).handle(quick).start().await.unwrap(),
    ];
    let done = || workers.iter().map(|worker| worker.stats().report.done).sum::<u64>();
    until("a first fire", async || done() > 0).await;
    let (before, looks) = (said.count("WARN"), store.calls(Verb::Queues));
    store.fails(fault);
    let ready = || workers.iter().all(|worker| worker.stats().store_away.is_none());
    until("it is known", async || !ready()).await;
    until("it is said", async || said.count("the store does not answer") == 1).await;
    if fault == Fault::Refuses {
        // Each of them has tried a few times.
        store.called(Verb::Queues, looks + 8).await;
    }
    store.heal();
    until("it is said", async || said.count("the store answers again after") == 1).await;
    until("all are ready", async || ready()).await;
    let after = done();
    until("work goes on", async || done() > after).await;
    let lines = said.count("WARN") - before;
    assert!(lines <= 3, "{fault:?}: {lines} lines: {said:?}");
    stop.send_replace(true);
    scheduling.await.unwrap().unwrap();
    managing.await.unwrap().unwrap();
    for worker in workers {
        let report = worker.stop().await.unwrap();
        assert!(report.left.is_empty() && report.not_done == 0, "{report:?}");
    }
}

#[tokio::test]
async fn a_store_that_refuses_is_said_once_and_so_is_its_return() {
    let said = Said::default();
    let _listening = tracing::subscriber::set_default(said.clone());
    away(&every_store().await.remove(0), Fault::Refuses, &said).await;
}

#[tokio::test]
async fn a_store_that_hangs_is_said_once_and_so_is_its_return() {
    let said = Said::default();
    let _listening = tracing::subscriber::set_default(said.clone());
    away(&every_store().await.remove(1), Fault::Hangs, &said).await;
}

/// An answer that did not come after a fire was made does not make it twice.
#[tokio::test]
async fn an_instant_fires_once_though_its_answers_are_unknown() {
    side_by_side(every_store().await, |bad| async move {
        let Bad { mill, store, .. } = bad;
        let every = mill.schedule("s").every(Duration::from_secs(1)).missed(Missed::All);
        let scheduler = Scheduler::new(&mill).schedule(every.puts(Mail::to("a")));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        store.fails_at(&[Verb::Fire], Fault::UnknownDone);
        let running = tokio::spawn(scheduler.run(async move { stopped.await.unwrap_or_default() }));
        store.called(Verb::Fire, 2).await;
        store.heal();
        let ready = async || mill.inspect().queue("mails").await.unwrap().ready;
        until("the next fire", async || ready().await >= 3).await;
        drop(stop);
        running.await.unwrap().unwrap();
        let request = gristmill::port::ListRequest { limit: 100, ..Default::default() };
        let tasks = mill.inspect().list(request).await.unwrap().tasks;
        let mut instants: Vec<&String> =
            tasks.iter().map(|task| &task.headers[gristmill::schedule::FIRE_HEADER]).collect();
        instants.sort();
        let fired = instants.len();
        instants.dedup();
        assert_eq!(instants.len(), fired, "{instants:?}");
    })
    .await;
}

/// A manager and a scheduler over a store that does not answer hear the stop.
#[tokio::test]
async fn a_manager_and_a_scheduler_stop_while_the_store_hangs() {
    side_by_side(every_store().await, |bad| async move {
        let Bad { mill, store, .. } = bad;
        let mut manager = Manager::new(&mill);
        manager.look().await.unwrap();
        store.fails(Fault::Hangs);
        let soon = Duration::from_secs(2);
        let managed = manager.run(store.called(Verb::Campaign, 2));
        tokio::time::timeout(soon, managed).await.expect("the manager stops").unwrap();
        let scheduled = Scheduler::new(&mill).run(store.called(Verb::Schedules, 1));
        tokio::time::timeout(soon, scheduled).await.expect("the scheduler stops").unwrap();
    })
    .await;
}

/// It was away for longer than the lease, so nothing is left to be extended: it is
/// back all the same.
#[tokio::test]
async fn a_store_is_back_though_all_leases_ran_out_meanwhile() {
    let said = Said::default();
    let _listening = tracing::subscriber::set_default(said.clone());
    let Bad { mill, store, .. } = every_store().await.remove(0);
    mill.declare::<Mail>().lease(Duration::from_millis(300)).await.unwrap();
    mill.put(Mail::to("a")).await.unwrap();
    let worker = Worker::new(&mill).handle(|_: Mail, context: Context| async move {
        context.cancelled().await;
        Err::<(), _>("stopped")
    });
    let worker = worker.stop_within(Duration::ZERO).start().await.unwrap();
    store.called(Verb::Extend, 1).await;
    store.fails(Fault::Refuses);
    until("it is lost", async || worker.stats().report.lease_lost == 1).await;
    until("it is said", async || said.count("the store does not answer") == 1).await;
    worker.serve("mails", false).unwrap();
    store.heal();
    until("it is said", async || said.count("the store answers again after") == 1).await;
    worker.stop().await.unwrap();
}
