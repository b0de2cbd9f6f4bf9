//! The store goes away: the scheduler waits, says so, and goes on by itself.

use std::sync::Arc;
use std::time::Duration;

use gristmill::port::{Clock, ListRequest, ScheduleName, SystemClock};
use gristmill::schedule::{FIRE_HEADER, Missed, Scheduler};
use gristmill::sqlite::{Options, SqliteStore, rusqlite};
use gristmill::testing::{Faulty, Verb};
use gristmill::{Mill, Timestamp};
use tokio::sync::oneshot;

use crate::said::{AWAY, BACK, Said};
use crate::{Mail, until};

async fn instants(mill: &Mill) -> Vec<Timestamp> {
    let request = ListRequest { limit: 1_000, ..ListRequest::default() };
    let tasks = mill.inspect().list(request).await.unwrap().tasks;
    tasks.iter().map(|task| task.headers[FIRE_HEADER].parse().unwrap()).collect()
}

#[tokio::test]
async fn a_locked_store_that_says_busy_is_waited_for() {
    outage(Duration::from_millis(200)).await;
}

#[tokio::test]
async fn a_locked_store_that_says_nothing_is_waited_for() {
    outage(Duration::from_secs(30)).await;
}

#[tokio::test]
async fn a_store_that_is_away_at_the_start_is_waited_for() {
    let said = Said::default();
    let _listening = tracing::subscriber::set_default(said.clone());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test.db");
    let options = Options { busy_timeout: Duration::from_millis(100), ..Options::default() };
    let mill = Mill::over_sqlite(Arc::new(SqliteStore::open(&file, options).unwrap()));
    mill.declare::<Mail>().await.unwrap();
    let other = rusqlite::Connection::open(&file).unwrap();
    until("the lock", async || other.execute_batch("BEGIN EXCLUSIVE").is_ok()).await;
    let every = mill.schedule("s").every(Duration::from_secs(1)).puts(Mail::to("a"));
    let (stop, stopped) = oneshot::channel::<()>();
    let scheduler = Scheduler::new(&mill).schedule(every);
    let running = tokio::spawn(scheduler.run(async move { stopped.await.unwrap_or_default() }));
    until("it is said", async || said.count(AWAY) == 1).await;
    other.execute_batch("ROLLBACK").unwrap();
    until("a first fire", async || !instants(&mill).await.is_empty()).await;
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();

    // Told to stop before the store was back, it stops.
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let every = mill.schedule("s").every(Duration::from_secs(1)).puts(Mail::to("a"));
    let (stop, stopped) = oneshot::channel::<()>();
    let scheduler = Scheduler::new(&mill).schedule(every);
    let running = tokio::spawn(scheduler.run(async move { stopped.await.unwrap_or_default() }));
    until("it is said", async || said.count(AWAY) == 2).await;
    stop.send(()).unwrap();
    assert_eq!(running.await.unwrap().unwrap().fired, 0);
}

/// Locks the file until the scheduler has said so, and longer.
async fn outage(busy_timeout: Duration) {
    let said = Said::default();
    let _listening = tracing::subscriber::set_default(said.clone());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test.db");
    let options = Options { busy_timeout, ..Options::default() };
    let store = Faulty::over(Arc::new(SqliteStore::open(&file, options).unwrap()));
    let mill = Mill::over(store.clone());
    mill.declare::<Mail>().await.unwrap();
    let every = mill.schedule("s").every(Duration::from_secs(1)).missed(Missed::All);
    let scheduler = Scheduler::new(&mill).schedule(every.puts(Mail::to("a")));
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(scheduler.run(async move { stopped.await.unwrap_or_default() }));
    until("a first fire", async || !instants(&mill).await.is_empty()).await;

    let other = rusqlite::Connection::open(&file).unwrap();
    until("the lock", async || other.execute_batch("BEGIN EXCLUSIVE").is_ok()).await;
    let before = instants(&mill).await.len();
    until("it is said", async || said.count(AWAY) == 1).await;
    assert_eq!(instants(&mill).await.len(), before, "nothing can be written");
    let last = *instants(&mill).await.last().unwrap();
    let missed = || SystemClock::default().now().since(last);
    until("three are missed", async || missed() > Duration::from_secs(3)).await;
    other.execute_batch("ROLLBACK").unwrap();

    until("fires again", async || instants(&mill).await.len() >= before + 3).await;
    // Said when the look is over; its fires stand one by one before that.
    until("it is said", async || said.count(BACK) == 1).await;
    assert_eq!(said.count(AWAY), 1, "once, however long it lasts");
    // The last fire may stand while its look is under way still, and a stop would
    // drop that look before it has counted. One that begins after a pause fires
    // nothing, and those before it are over when it begins.
    mill.store().pause_schedule(&ScheduleName::new("s").unwrap(), true, "me").await.unwrap();
    store.called(Verb::Schedules, store.calls(Verb::Schedules) + 2).await;
    stop.send(()).unwrap();
    let report = running.await.unwrap().unwrap();
    let instants = instants(&mill).await;
    assert_eq!(report.fired as usize, instants.len());
    for pair in instants.windows(2) {
        assert_eq!(pair[1].since(pair[0]), Duration::from_secs(1), "none is missing or doubled");
    }
}
