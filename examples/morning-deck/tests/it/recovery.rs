//! Recovery: rows that nobody is at begin anew, and no others.

use gristmill::TaskType;
use gristmill::port::Extension;
use morning_deck::config::QueuePlace;
use morning_deck::fetch::Kind;
use morning_deck::source::FetchSource;
use morning_deck::stage::Stage;

use crate::crash::claimed;
use crate::desk::{BOTH, Desk, MINUTE};

/// Rows of all kinds as a dead process left them, without a task.
async fn with_stuck_rows(place: QueuePlace, properties: &str) -> Desk {
    let desk = Desk::with(place, properties).await;
    let reader = desk.reader("ada@example.com", "UTC", 0).await;
    for path in ["/1.xml", "/2.xml", "/3.xml", "/4.xml"] {
        desk.source(reader, Kind::Rss, path, 1).await;
    }
    for _ in 0..4 {
        desk.briefing(reader, "00:00", None).await;
    }
    let now = desk.now().as_micros();
    desk.execute(&format!(
        "INSERT INTO news_item (source_id, guid, url, title, content, status, status_at)
         VALUES (1, 'a', '', '', '', 'PENDING', {now}), (1, 'b', '', '', '', 'PROCESSING', {now}),
                (1, 'c', '', '', '', 'DONE', {now}), (1, 'd', '', '', '', 'ERROR', {now});
         UPDATE source SET status = CASE id WHEN 1 THEN 'QUEUED' WHEN 2 THEN 'FETCHING'
                                            WHEN 3 THEN 'IDLE' ELSE 'ERROR' END;
         UPDATE briefing SET status = CASE id WHEN 1 THEN 'QUEUED' WHEN 2 THEN 'PROCESSING'
                                              WHEN 3 THEN 'ACTIVE' ELSE 'ERROR' END;"
    ));
    desk
}

fn all(desk: &Desk) -> [Vec<String>; 3] {
    ["source", "news_item", "briefing"].map(|table| desk.statuses(table))
}

const STUCK: [[&str; 4]; 3] = [
    ["QUEUED", "FETCHING", "IDLE", "ERROR"],
    ["PENDING", "PROCESSING", "DONE", "ERROR"],
    ["QUEUED", "PROCESSING", "ACTIVE", "ERROR"],
];
const RESET: [[&str; 4]; 3] = [
    ["IDLE", "IDLE", "IDLE", "ERROR"],
    ["NEW", "NEW", "DONE", "ERROR"],
    ["ACTIVE", "ACTIVE", "ACTIVE", "ERROR"],
];

#[tokio::test]
async fn rows_stuck_for_more_than_ten_minutes_get_their_first_status_back() {
    for place in BOTH {
        let mut desk = with_stuck_rows(place, "").await;
        for _ in 0..2 {
            desk.clock.advance(5 * MINUTE);
            desk.look().await;
            assert_eq!(all(&desk), STUCK, "ten minutes are not more than ten");
        }
        desk.clock.advance(4 * MINUTE);
        desk.look().await;
        assert_eq!(all(&desk), STUCK, "it looks every five minutes");
        desk.clock.advance(MINUTE);
        desk.look().await;
        assert_eq!(all(&desk), RESET);
    }
}

#[tokio::test]
async fn interval_and_threshold_are_as_configured() {
    for place in BOTH {
        let properties = "
            application.jobs.feed-recovery.interval=120000
            application.jobs.feed-ingestion.stuck-threshold-minutes=3
        ";
        let mut desk = with_stuck_rows(place, properties).await;
        desk.clock.advance(2 * MINUTE);
        desk.look().await;
        assert_eq!(all(&desk), STUCK);
        desk.clock.advance(2 * MINUTE);
        desk.look().await;
        assert_eq!(all(&desk), RESET, "all three kinds");
        // Nobody else looks so often here.
        let rarely = "
            application.jobs.feed-scheduling.interval=86400000
            application.jobs.processing.interval=86400000
            application.jobs.briefing-execution.interval=86400000
        ";
        let mut desk = Desk::with(place, &[properties, rarely].concat()).await;
        let mut looks = Vec::new();
        for _ in 0..3 {
            let next = desk.look().await.expect("a next look");
            looks.push(next);
            desk.clock.advance(next.since(desk.now()));
        }
        let apart = looks.windows(2).map(|two| two[1].since(two[0]));
        assert_eq!(apart.collect::<Vec<_>>(), [2 * MINUTE; 2]);
    }
}

#[tokio::test]
async fn a_row_whose_task_waits_or_runs_is_left_alone_however_long() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        let reader = desk.reader("ada@example.com", "UTC", 5).await;
        let source = desk.source(reader, Kind::Rss, "/feed.xml", 600).await;
        desk.feed(&[1]);
        desk.tick().await;
        for _ in 0..6 {
            desk.clock.advance(10 * MINUTE);
            desk.look().await;
        }
        assert_eq!(desk.status("source", source), "QUEUED", "a long queue is no reason");
        assert_eq!(desk.size(FetchSource::QUEUE).await, 1, "and no second task is put");
        let token = claimed(&desk, FetchSource::QUEUE).await;
        let begin =
            desk.app.deck.transact(move |db, now| FetchSource { row: source }.begin(db, now));
        begin.await.unwrap();
        for _ in 0..6 {
            // As a worker's heartbeat does, however slow the site is.
            let extension = Extension::new(token, 20 * MINUTE);
            desk.app.mill.store().extend(vec![extension]).await.unwrap();
            desk.clock.advance(10 * MINUTE);
            desk.look().await;
        }
        assert_eq!(desk.status("source", source), "FETCHING", "nor is long work");
        assert_eq!(desk.stats(FetchSource::QUEUE).await.processing, 1);
        // The worker dies; its lease runs out, and the task is done by another.
        desk.clock.advance(20 * MINUTE);
        desk.work().await;
        assert_eq!(desk.status("source", source), "IDLE");
        assert_eq!(desk.web.count("/feed.xml"), 1);
    }
}

#[tokio::test]
async fn a_restart_in_memory_loses_the_queue_and_recovery_brings_everything_back() {
    let mut desk = Desk::new(QueuePlace::Memory).await;
    let (reader, source) = desk.imported(9).await;
    desk.news(&[1]).await;
    desk.briefing(reader, "00:00", None).await;
    desk.feed(&[1, 2]);
    desk.execute("UPDATE source SET fetched_at = 0");
    desk.tick().await;
    let between =
        [vec!["QUEUED".to_owned()], vec!["PENDING".to_owned()], vec!["QUEUED".to_owned()]];
    assert_eq!(all(&desk), between);
    desk.restart().await;
    for queue in ["fetch", "processing", "briefing"] {
        assert_eq!(desk.size(queue).await, 0, "{queue} is lost");
    }
    assert_eq!(desk.work().await.done, 0);
    desk.tick().await;
    assert_eq!(all(&desk), between, "too early to call them stuck");
    desk.clock.advance(15 * MINUTE);
    desk.look().await;
    // The rows are reset in the same look or before the next one's finders.
    desk.cycle().await;
    desk.cycle().await;
    assert_eq!(desk.status("source", source), "IDLE");
    assert_eq!(desk.statuses("news_item"), ["DONE", "DONE"]);
    assert_eq!(desk.statuses("briefing"), ["ACTIVE"]);
    assert_eq!((desk.credits(), desk.number("SELECT count(*) FROM report")), (7, 1));
}

#[tokio::test]
async fn a_restart_on_the_file_loses_nothing_and_needs_no_recovery() {
    let mut desk = Desk::new(QueuePlace::Database).await;
    let (reader, _) = desk.imported(9).await;
    desk.news(&[1]).await;
    desk.briefing(reader, "00:00", None).await;
    desk.execute("UPDATE source SET fetched_at = 0");
    desk.tick().await;
    desk.restart().await;
    assert_eq!(desk.work().await.done, 3);
    assert_eq!(
        all(&desk),
        [vec!["IDLE".to_owned()], vec!["DONE".to_owned()], vec!["ACTIVE".to_owned()]]
    );
}
