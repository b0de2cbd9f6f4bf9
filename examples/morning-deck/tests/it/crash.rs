//! Processes that die in the middle: nothing is lost, paid twice, or reported
//! twice.

use gristmill::port::{ClaimRequest, Clock, SystemClock, Token, WorkerId};
use gristmill::{QueueName, TaskType};
use morning_deck::briefing::RunBriefing;
use morning_deck::config::QueuePlace;
use morning_deck::fetch::Kind;
use morning_deck::item::EnrichItem;
use morning_deck::stage::Stage;

use crate::desk::{BOTH, Desk, MINUTE, PATIENCE};

/// A worker claims a queue's next task, and is not heard of again unless the
/// test speaks for it.
pub(crate) async fn claimed(desk: &Desk, queue: &str) -> Token {
    let token = Token::random().unwrap();
    let request = ClaimRequest {
        queue: QueueName::new(queue).unwrap(),
        max: 1,
        lease: None,
        worker: WorkerId::random().unwrap(),
        source: None,
        token,
    };
    assert_eq!(desk.app.mill.store().claim(request).await.unwrap().tasks.len(), 1);
    token
}

#[tokio::test]
async fn a_dead_worker_s_task_comes_back_after_its_lease_and_is_paid_once() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        desk.imported(5).await;
        desk.news(&[1]).await;
        desk.tick().await;
        claimed(&desk, EnrichItem::QUEUE).await;
        // It got as far as saying that it is at it.
        let begin = desk.app.deck.transact(|db, now| EnrichItem { row: 1 }.begin(db, now));
        begin.await.unwrap();
        assert_eq!(desk.work().await.done, 0, "it may still be alive");
        desk.clock.advance(MINUTE + MINUTE / 60);
        assert_eq!(desk.work().await.done, 1, "long before anyone would call it stuck");
        assert_eq!((desk.statuses("news_item"), desk.credits()), (vec!["DONE".to_owned()], 4));
    }
}

#[tokio::test]
async fn a_task_that_comes_back_after_its_row_is_done_changes_nothing() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        desk.imported(5).await;
        desk.news(&[1]).await;
        desk.cycle().await;
        // As if the end had been told to the row, but not to the queue.
        desk.app.mill.put(EnrichItem { row: 1 }).await.unwrap();
        assert_eq!(desk.work().await.done, 1);
        assert_eq!((desk.credits(), desk.ai.articles().len()), (4, 1));
    }
}

#[tokio::test]
async fn a_report_whose_worker_died_before_the_mail_is_finished_not_made_again() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        let (reader, _) = desk.imported(9).await;
        desk.news(&[40]).await;
        desk.cycle().await;
        desk.briefing(reader, "00:00", None).await;
        desk.tick().await;
        // A worker takes it up, and dies while the mail server lets it wait.
        claimed(&desk, RunBriefing::QUEUE).await;
        desk.mail.set_open(false);
        let task = RunBriefing { row: 1, day: "2026-01-01".to_owned() };
        let (deck, begun) = (desk.app.deck.clone(), task.clone());
        deck.transact(move |db, now| begun.begin(db, now)).await.unwrap();
        tokio::select! {
            _ = task.work(&deck, &()) => panic!("it cannot end"),
            () = desk.mail.connected(1) => {}
        }
        desk.restart().await;
        desk.mail.set_open(true);
        assert_eq!(desk.statuses("briefing"), ["PROCESSING"]);
        assert_eq!(desk.number("SELECT count(*) FROM report WHERE closed_at IS NULL"), 1);
        // In the file the lease runs out; in memory recovery has to help.
        for _ in 0..4 {
            desk.clock.advance(5 * MINUTE);
            desk.look().await;
            desk.cycle().await;
        }
        assert_eq!(desk.statuses("briefing"), ["ACTIVE"]);
        assert_eq!(desk.number("SELECT count(*) FROM report"), 1, "{}", desk.is_memory());
        assert_eq!(desk.mail.received().len(), 1);
        assert_eq!(desk.stats(RunBriefing::QUEUE).await.total(), 0);
    }
}

#[tokio::test]
async fn in_one_file_a_row_is_queued_if_and_only_if_its_task_stands() {
    let mut desk = Desk::new(QueuePlace::Database).await;
    desk.imported(5).await;
    desk.news(&[1]).await;
    desk.execute(
        "CREATE TRIGGER broken BEFORE UPDATE ON news_item WHEN NEW.status = 'PENDING'
         BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
    );
    desk.tick().await;
    assert_eq!(
        (desk.statuses("news_item"), desk.size("processing").await),
        (vec!["NEW".to_owned()], 0)
    );
    desk.execute("DROP TRIGGER broken");
    desk.tick().await;
    assert_eq!(
        (desk.statuses("news_item"), desk.size("processing").await),
        (vec!["PENDING".to_owned()], 1)
    );
}

#[tokio::test]
async fn a_killed_process_leaves_a_row_between_two_ends_and_the_next_one_finishes_it() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        desk.at(&SystemClock::default().now().to_string());
        let reader = desk.reader("ada@example.com", "UTC", 5).await;
        let source = desk.source(reader, Kind::Rss, "/feed.xml", 600).await;
        desk.feed(&[1]);
        desk.web.set_open(false);
        let mut process = desk.process();
        tokio::time::timeout(PATIENCE, desk.web.asked("/feed.xml", 1)).await.expect("it fetches");
        process.0.kill().unwrap();
        process.0.wait().unwrap();
        desk.web.set_open(true);
        assert_eq!(desk.status("source", source), "FETCHING");
        desk.restart().await;
        assert_eq!(desk.work().await.done, 0, "the dead one may still be alive");
        if desk.is_memory() {
            desk.clock.advance(15 * MINUTE);
            desk.look().await;
            desk.tick().await;
        } else {
            desk.clock.advance(2 * MINUTE);
        }
        assert_eq!(desk.work().await.done, 1);
        assert_eq!(
            (desk.status("source", source).as_str(), desk.statuses("news_item").len()),
            ("IDLE", 1)
        );
    }
}
