//! Each property does what it says, in the running application.

use std::time::Duration;

use gristmill::TaskType;
use morning_deck::fetch::Kind;
use morning_deck::item::EnrichItem;
use morning_deck::stage::Stage as _;

use crate::desk::{BOTH, Desk, MINUTE, nothing_comes_within, rss};

/// In which one more would have come.
const A_MOMENT: Duration = Duration::from_millis(200);

#[tokio::test]
async fn a_queue_that_is_not_enabled_is_neither_filled_nor_served() {
    for place in BOTH {
        let mut desk = Desk::with(place, "application.jobs.feed-ingestion.enabled=false").await;
        let reader = desk.reader("ada@example.com", "UTC", 5).await;
        let source = desk.source(reader, Kind::Rss, "/feed.xml", 1).await;
        desk.cycle().await;
        assert_eq!((desk.status("source", source).as_str(), desk.web.seen().len()), ("IDLE", 0));
        assert_eq!(desk.app.workers().len(), 2);

        let off = "
            application.jobs.processing.enabled=false
            application.jobs.briefing-execution.enabled=false
        ";
        let mut desk = Desk::with(place, off).await;
        let (reader, _) = desk.imported(5).await;
        desk.briefing(reader, "00:00", None).await;
        desk.news(&[1]).await;
        for _ in 0..3 {
            desk.cycle().await;
        }
        assert_eq!(desk.statuses("news_item"), ["NEW"], "fetched, and no more");
        assert_eq!(
            (desk.statuses("briefing"), desk.ai.articles().len()),
            (vec!["ACTIVE".to_owned()], 0)
        );
        assert_eq!(desk.app.workers().len(), 1);
    }
}

#[tokio::test]
async fn a_full_look_is_followed_by_another() {
    for place in BOTH {
        let sizes = "
            application.jobs.feed-ingestion.batch-size=2
            application.jobs.processing.batch-size=3
        ";
        let mut desk = Desk::with(place, sizes).await;
        let (reader, _) = desk.imported(50).await;
        desk.news(&[1, 2, 3, 4, 5, 6, 7]).await;
        for number in 0..5 {
            desk.web.set(&format!("/{number}.xml"), 200, rss(&[]));
            desk.source(reader, Kind::Rss, &format!("/{number}.xml"), 600).await;
        }
        let mut sizes = Vec::new();
        // One look takes no more than the batch size, and a full one is not the last.
        let one = |desk: &Desk| EnrichItem::due(&desk.sql(), desk.now(), 3).unwrap().len();
        sizes.push((0, one(&desk) as u64));
        for _ in 0..2 {
            desk.tick().await;
            sizes.push((desk.size("fetch").await, desk.size("processing").await));
        }
        assert_eq!(sizes, [(0, 3), (5, 7), (5, 7)]);
    }
}

#[tokio::test]
async fn as_many_items_are_enriched_side_by_side_as_there_are_workers() {
    for place in BOTH {
        let mut desk = Desk::with(place, "application.jobs.processing.worker-count=3").await;
        desk.imported(50).await;
        desk.news(&[1, 2, 3, 4, 5, 6, 7, 8]).await;
        desk.tick().await;
        desk.ai.set_open(false);
        let watching = async {
            desk.ai.asked(3).await;
            nothing_comes_within(A_MOMENT).await;
            assert_eq!(desk.ai.articles().len(), 3);
            desk.ai.set_open(true);
        };
        tokio::join!(desk.work(), watching);
        assert_eq!(desk.ai.articles().len(), 8);
        assert_eq!(desk.ai.most_at_once(), 3);
    }
}

#[tokio::test]
async fn as_many_sources_are_fetched_side_by_side_as_there_are_workers() {
    for place in BOTH {
        let mut desk = Desk::with(place, "application.jobs.feed-ingestion.worker-count=3").await;
        let reader = desk.reader("ada@example.com", "UTC", 50).await;
        for number in 0..7 {
            desk.web.set(&format!("/{number}.xml"), 200, rss(&[]));
            desk.source(reader, Kind::Rss, &format!("/{number}.xml"), 600).await;
        }
        desk.tick().await;
        desk.web.set_open(false);
        let watching = async {
            desk.web.asked_for(3).await;
            nothing_comes_within(A_MOMENT).await;
            assert_eq!(desk.web.seen().len(), 3);
            desk.web.set_open(true);
        };
        tokio::join!(desk.work(), watching);
        assert_eq!(desk.web.seen().len(), 7);
    }
}

#[tokio::test]
async fn as_many_briefings_are_executed_side_by_side_as_there_are_workers() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        let (reader, _) = desk.imported(50).await;
        desk.news(&[1]).await;
        desk.cycle().await;
        for _ in 0..5 {
            desk.briefing(reader, "00:00", None).await;
        }
        desk.tick().await;
        desk.mail.set_open(false);
        let watching = async {
            // Two, unless another number is configured.
            desk.mail.connected(2).await;
            nothing_comes_within(A_MOMENT).await;
            assert_eq!(desk.mail.connections(), 2);
            desk.mail.set_open(true);
        };
        tokio::join!(desk.work(), watching);
        assert_eq!(desk.mail.received().len(), 5);
    }
}

#[tokio::test]
async fn each_scheduler_looks_at_its_own_interval() {
    for place in BOTH {
        let intervals = "
            application.jobs.feed-scheduling.interval=30000
            application.jobs.processing.interval=120000
            application.jobs.briefing-execution.interval=300000
        ";
        let mut desk = Desk::with(place, intervals).await;
        let reader = desk.reader("ada@example.com", "UTC", 50).await;
        desk.source(reader, Kind::Rss, "/feed.xml", 1).await;
        desk.feed(&[1]);
        desk.briefing(reader, "00:00", None).await;
        let start = desk.now();
        assert_eq!(desk.look().await, Some(start.after(MINUTE / 2)), "the earliest is ahead");
        let mut seen = Vec::new();
        for half_minutes in 1..=10u32 {
            desk.clock.advance(MINUTE / 2);
            desk.look().await;
            if half_minutes == 1 {
                assert_eq!(desk.size("fetch").await, 1);
                desk.execute("INSERT INTO news_item (source_id, guid, url, title, content, status, status_at)
                    VALUES (1, 'n', '', 'Story 1', '', 'NEW', 0)");
            }
            for queue in ["processing", "briefing"] {
                if desk.size(queue).await == 1 && !seen.iter().any(|(known, _)| *known == queue) {
                    seen.push((queue, half_minutes));
                }
            }
        }
        assert_eq!(seen, [("processing", 4), ("briefing", 10)]);
        assert_eq!(EnrichItem::QUEUE, "processing");
    }
}

#[tokio::test]
async fn capacities_are_those_of_the_queues() {
    for place in BOTH {
        let desk = Desk::new(place).await;
        let queues = desk.app.mill.inspect().queues().await.unwrap();
        let capacity = |name: &str| {
            queues.iter().find(|queue| queue.name.as_str() == name).unwrap().settings.capacity
        };
        assert_eq!(capacity("fetch"), Some(1_000));
        assert_eq!(capacity("processing"), Some(1_000));
        assert_eq!(capacity("briefing"), Some(100));
    }
}
