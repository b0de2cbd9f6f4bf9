//! Full queues: the schedulers stop, rows stay as they are and are found again.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gristmill::TaskType;
use morning_deck::briefing::RunBriefing;
use morning_deck::config::QueuePlace;
use morning_deck::fetch::Kind;
use morning_deck::item::EnrichItem;
use morning_deck::source::FetchSource;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::desk::{BOTH, Desk, rss};

const TIGHT: &str = "
    application.jobs.feed-ingestion.queue-capacity=2
    application.jobs.processing.queue-capacity=3
    application.jobs.briefing-execution.queue-capacity=1
";

fn count(statuses: &[String], status: &str) -> usize {
    statuses.iter().filter(|found| *found == status).count()
}

async fn with_sources(place: QueuePlace, sources: usize) -> Desk {
    let desk = Desk::with(place, TIGHT).await;
    let reader = desk.reader("ada@example.com", "UTC", 100).await;
    for number in 0..sources {
        desk.web.set(&format!("/{number}.xml"), 200, rss(&[]));
        desk.source(reader, Kind::Rss, &format!("/{number}.xml"), 600).await;
    }
    desk
}

#[tokio::test]
async fn a_full_queue_leaves_the_rest_as_it_is_for_the_next_cycle() {
    for place in BOTH {
        let mut desk = with_sources(place, 5).await;
        for (round, (queued, idle)) in [(2, 3), (2, 3), (1, 4)].into_iter().enumerate() {
            desk.tick().await;
            let statuses = desk.statuses("source");
            assert_eq!((count(&statuses, "QUEUED"), count(&statuses, "IDLE")), (queued, idle));
            assert_eq!(desk.size(FetchSource::QUEUE).await, queued as u64);
            // Nobody worked: this cycle is skipped, and nothing changes.
            desk.tick().await;
            assert_eq!(desk.statuses("source"), statuses, "round {round}");
            desk.work().await;
        }
        let fetched: usize = (0..5).map(|n| desk.web.count(&format!("/{n}.xml"))).sum();
        assert_eq!(fetched, 5, "each of them once");
        let stats = desk.app.mill.inspect().queue(FetchSource::QUEUE).await.unwrap();
        assert_eq!(stats.counters.refused, 0, "there was room for each before it was put");
        assert_eq!(desk.failed(FetchSource::QUEUE).await, []);
    }
}

#[tokio::test]
async fn items_wait_as_new_and_briefings_as_active() {
    for place in BOTH {
        let mut desk = Desk::with(place, TIGHT).await;
        let (reader, _) = desk.imported(100).await;
        desk.news(&[1, 2, 3, 4, 5]).await;
        desk.briefing(reader, "00:00", None).await;
        desk.briefing(reader, "00:00", None).await;
        desk.tick().await;
        let items = desk.statuses("news_item");
        assert_eq!((count(&items, "PENDING"), count(&items, "NEW")), (3, 2));
        assert_eq!(desk.statuses("briefing"), ["QUEUED", "ACTIVE"]);
        desk.work().await;
        desk.tick().await;
        let items = desk.statuses("news_item");
        assert_eq!((count(&items, "DONE"), count(&items, "PENDING")), (3, 2));
        assert_eq!(desk.statuses("briefing"), ["ACTIVE", "QUEUED"]);
        assert_eq!(desk.size(EnrichItem::QUEUE).await, 2);
        assert_eq!(desk.size(RunBriefing::QUEUE).await, 1);
    }
}

#[tokio::test]
async fn what_is_put_on_a_full_queue_is_refused() {
    for place in BOTH {
        let desk = with_sources(place, 0).await;
        let mill = &desk.app.mill;
        for row in [1, 2] {
            assert!(mill.can_accept(FetchSource::QUEUE).await.unwrap());
            assert!(mill.put(FetchSource { row }).await.unwrap().is_enqueued());
        }
        assert!(!mill.can_accept(FetchSource::QUEUE).await.unwrap());
        let refused = mill.put(FetchSource { row: 3 }).await.expect_err("no room");
        assert!(refused.is_full(), "{refused}");
        assert_eq!(desk.size(FetchSource::QUEUE).await, 2);
    }
}

/// There was room when it was asked for, and none, or something else, when it was put.
#[tokio::test]
async fn what_is_refused_all_the_same_stays_as_it_was() {
    for place in BOTH {
        let mut desk = with_sources(place, 2).await;
        desk.on_put(|_, task| {
            if task.key.as_deref() == Some("2") {
                task.key = Some(String::new());
            }
        })
        .await;
        desk.tick().await;
        assert_eq!(desk.statuses("source"), ["QUEUED", "IDLE"]);
        assert_eq!(desk.size(FetchSource::QUEUE).await, 1);
    }
}

/// A look takes no more than its batch: it is not the queue's room alone that ends it.
#[tokio::test]
async fn a_look_takes_no_more_than_its_batch() {
    for place in BOTH {
        let looks = Lines::of(Level::DEBUG, "queue=\"fetch\" due=");
        let _listening = tracing::subscriber::set_default(looks.clone());
        let sizes = "application.jobs.feed-ingestion.batch-size=2";
        let mut desk = Desk::with(place, sizes).await;
        let reader = desk.reader("ada@example.com", "UTC", 100).await;
        for number in 0..5 {
            desk.source(reader, Kind::Rss, &format!("/{number}.xml"), 600).await;
        }
        let before = looks.count();
        desk.tick().await;
        assert_eq!(desk.size(FetchSource::QUEUE).await, 5);
        assert_eq!(looks.count() - before, 3, "of two, two and one");
    }
}

#[tokio::test]
async fn the_three_queues_do_not_fill_one_another() {
    for place in BOTH {
        let mut desk = with_sources(place, 3).await;
        desk.tick().await;
        assert!(!desk.app.mill.can_accept(FetchSource::QUEUE).await.unwrap());
        assert!(desk.app.mill.can_accept(EnrichItem::QUEUE).await.unwrap());
        assert!(desk.app.mill.can_accept(RunBriefing::QUEUE).await.unwrap());
    }
}

#[tokio::test]
async fn a_full_queue_is_warned_about() {
    for place in BOTH {
        let warnings = Lines::of(Level::WARN, "the queue is full");
        let _listening = tracing::subscriber::set_default(warnings.clone());
        let mut desk = with_sources(place, 3).await;
        assert_eq!(warnings.count(), 0);
        desk.tick().await;
        assert_eq!(warnings.count(), 1, "it put two, and the third had no room");
        desk.tick().await;
        assert_eq!(warnings.count(), 2, "and this cycle it put nothing");
        desk.work().await;
        desk.tick().await;
        assert_eq!(warnings.count(), 2, "there was room for all");
    }
}

/// Counts the lines of a level with these words.
#[derive(Debug, Clone)]
struct Lines {
    level: Level,
    words: &'static str,
    heard: Arc<AtomicUsize>,
}

impl Lines {
    fn of(level: Level, words: &'static str) -> Self {
        Lines { level, words, heard: Arc::default() }
    }

    fn count(&self) -> usize {
        self.heard.load(Ordering::SeqCst)
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() == self.level
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        if line.0.contains(self.words) {
            self.heard.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, "{field}={value:?} ").expect("written");
    }
}
