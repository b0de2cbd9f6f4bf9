//! The store goes away: the scheduler waits, says so, and goes on by itself.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gristmill::core::ListRequest;
use gristmill::schedule::{FIRE_HEADER, Missed, Scheduler};
use gristmill::sqlite::{Options, SqliteStore, rusqlite};
use gristmill::{Mill, Timestamp};
use tokio::sync::oneshot;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

use crate::Mail;

/// Keeps what is said on this thread.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    fn count(&self, part: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|line| line.contains(part)).count()
    }
}

impl Subscriber for Said {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Text(String);

        impl Visit for Text {
            fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{value:?} "));
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

async fn instants(mill: &Mill) -> Vec<Timestamp> {
    let request = ListRequest { limit: 1_000, ..ListRequest::default() };
    let tasks = mill.inspect().list(request).await.unwrap().tasks;
    tasks.iter().map(|task| task.headers[FIRE_HEADER].parse().unwrap()).collect()
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} never came true");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_locked_store_that_says_busy_is_waited_for() {
    outage(Duration::from_millis(200), "the store did not answer; schedules wait", 2).await;
}

#[tokio::test]
async fn a_locked_store_that_says_nothing_is_waited_for() {
    outage(Duration::from_secs(30), "the store has not answered for 2s; schedules wait", 1).await;
}

/// Locks the file until the scheduler has said this so often, and longer.
async fn outage(busy_timeout: Duration, sentence: &str, times: usize) {
    let said = Said::default();
    let _listening = tracing::subscriber::set_default(said.clone());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test.db");
    let options = Options { busy_timeout, ..Options::default() };
    let store = SqliteStore::open(&file, options).unwrap();
    let mill = Mill::over_sqlite(Arc::new(store));
    mill.declare::<Mail>().await.unwrap();
    let every = mill.schedule("s").every(Duration::from_secs(1)).missed(Missed::All);
    let scheduler = Scheduler::new(&mill).schedule(every.puts(&Mail::to("a")));
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(scheduler.run(async move { stopped.await.unwrap_or_default() }));
    until("a first fire", async || !instants(&mill).await.is_empty()).await;

    let other = rusqlite::Connection::open(&file).unwrap();
    until("the lock", async || other.execute_batch("BEGIN EXCLUSIVE").is_ok()).await;
    let before = instants(&mill).await.len();
    until("it is said", async || said.count(sentence) >= times).await;
    assert_eq!(instants(&mill).await.len(), before, "nothing can be written");
    tokio::time::sleep(Duration::from_secs(2)).await;
    other.execute_batch("ROLLBACK").unwrap();

    until("fires again", async || instants(&mill).await.len() >= before + 3).await;
    // Said when the look is over; its fires stand one by one before that.
    until("it is said", async || said.count("the store answers again") >= 1).await;
    stop.send(()).unwrap();
    let report = running.await.unwrap().unwrap();
    let instants = instants(&mill).await;
    assert_eq!(report.fired as usize, instants.len());
    for pair in instants.windows(2) {
        assert_eq!(pair[1].since(pair[0]), Duration::from_secs(1), "none is missing or doubled");
    }
}
