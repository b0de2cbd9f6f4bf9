//! Briefings: when they are due, what is in them, and how they reach a reader.

use gristmill::TaskType;
use morning_deck::briefing::RunBriefing;
use morning_deck::config::QueuePlace;

use crate::desk::{BOTH, Desk, MINUTE};

/// A desk with a reader, and scored stories by their number.
async fn with_stories(place: QueuePlace, properties: &str, stories: &[u32]) -> (Desk, i64) {
    let mut desk = Desk::with(place, properties).await;
    let (reader, _) = desk.imported(100).await;
    desk.news(stories).await;
    desk.cycle().await;
    (desk, reader)
}

fn numbers(text: &str) -> Vec<u32> {
    let titles = text.lines().filter_map(|line| line.split_once(". Story "));
    titles.map(|(_, rest)| rest.split(' ').next().unwrap().parse().unwrap()).collect()
}

#[tokio::test]
async fn the_top_ten_scored_items_come_by_mail_best_first() {
    for place in BOTH {
        let stories = [31, 7, 64, 12, 88, 3, 50, 45, 99, 21, 76, 5];
        let (mut desk, reader) = with_stories(place, "", &stories).await;
        // What came with a first import has no score, and is not told.
        desk.execute(
            "INSERT INTO news_item (source_id, guid, url, title, content, status, status_at, done_at)
             SELECT id, 'old', url, 'Story 100', '', 'DONE', 0, 9e15 FROM source",
        );
        let briefing = desk.briefing(reader, "00:00", None).await;
        let report = desk.cycle().await;
        assert_eq!((report.done, report.not_done), (1, 0));
        let best = [99, 88, 76, 64, 50, 45, 31, 21, 12, 7];
        let mails = desk.mail.received();
        assert_eq!(mails.len(), 1);
        assert_eq!(numbers(&mails[0].text), best);
        assert!(mails[0].text.contains("Story 99 in short"), "{}", mails[0].text);
        assert!(mails[0].text.contains(&desk.web.url("/s/99")));
        assert_eq!(
            (mails[0].to.as_str(), mails[0].from.as_str()),
            ("ada@example.com", "morning-deck@example.com")
        );
        assert_eq!(mails[0].header("Subject"), Some("The deck, 2026-01-01"));
        let entries = desk.texts(
            "SELECT i.title FROM report_item e JOIN news_item i ON i.id = e.item_id ORDER BY e.position",
        );
        assert_eq!(entries, best.map(|n| format!("Story {n}")));
        assert_eq!(desk.status("briefing", briefing), "ACTIVE");
        let executed = desk.number("SELECT last_executed_at FROM briefing");
        assert_eq!(executed, desk.now().as_micros());
    }
}

#[tokio::test]
async fn a_briefing_is_active_then_queued_then_processing_then_active_for_all_to_see() {
    for place in BOTH {
        let (mut desk, reader) = with_stories(place, "", &[1]).await;
        let briefing = desk.briefing(reader, "00:00", None).await;
        assert_eq!(desk.status("briefing", briefing), "ACTIVE");
        desk.tick().await;
        assert_eq!(desk.status("briefing", briefing), "QUEUED");
        desk.mail.set_open(false);
        let watching = async {
            desk.mail.connected(1).await;
            assert_eq!(desk.status("briefing", briefing), "PROCESSING");
            // Report and execution stand before the mail goes out.
            assert_eq!(desk.number("SELECT count(*) FROM report WHERE closed_at IS NULL"), 1);
            let executed = desk.number("SELECT last_executed_at FROM briefing");
            assert_eq!(executed, desk.now().as_micros());
            desk.mail.set_open(true);
        };
        tokio::join!(desk.work(), watching);
        assert_eq!(desk.status("briefing", briefing), "ACTIVE");
        assert_eq!(desk.number("SELECT count(*) FROM report WHERE mailed_at IS NULL"), 0);
    }
}

#[tokio::test]
async fn each_report_has_what_is_new_since_the_one_before() {
    for place in BOTH {
        let first = [80, 79, 78, 77, 76, 75, 74, 73, 72, 71, 60, 50];
        let (mut desk, reader) = with_stories(place, "", &first).await;
        desk.briefing(reader, "00:00", None).await;
        desk.cycle().await;
        // As if one of them had been done in the very microsecond of the execution.
        desk.execute(
            "UPDATE news_item SET done_at = (SELECT last_executed_at FROM briefing)
              WHERE title = 'Story 80'",
        );
        desk.news(&[&first[..], &[10]].concat()).await;
        desk.cycle().await;
        assert_eq!(desk.mail.received().len(), 1, "not twice on one day");
        desk.at("2026-01-02T00:00:00Z");
        desk.look().await;
        desk.work().await;
        let told: Vec<_> = desk.mail.received().iter().map(|mail| numbers(&mail.text)).collect();
        // What was not among the best ten is not news the day after.
        assert_eq!(told, [first[..10].to_vec(), vec![10]]);
    }
}

#[tokio::test]
async fn a_daily_briefing_comes_at_its_time_in_the_reader_s_zone() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        desk.at("2026-03-28T00:00:00Z");
        let reader = desk.reader("ada@example.com", "Europe/Athens", 5).await;
        desk.briefing(reader, "07:00", None).await;
        let mut executed = Vec::new();
        // Three days, over the night in which clocks go forward there.
        for _ in 0..(3 * 24 * 2) {
            desk.clock.advance(30 * MINUTE);
            desk.look().await;
            if desk.size(RunBriefing::QUEUE).await > 0 {
                assert_eq!(desk.work_one::<RunBriefing>().await.not_done, 0);
                executed.push(desk.now().to_string());
            }
        }
        let expected = ["2026-03-28T05:00:00Z", "2026-03-29T04:00:00Z", "2026-03-30T04:00:00Z"];
        assert_eq!(executed, expected);
        let days = desk.texts("SELECT day FROM report ORDER BY id");
        assert_eq!(days, ["2026-03-28", "2026-03-29", "2026-03-30"]);
    }
}

#[tokio::test]
async fn a_weekly_briefing_comes_on_its_day_of_the_week() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        let reader = desk.reader("ada@example.com", "Pacific/Auckland", 5).await;
        // Mondays at six there, which is Sunday evening in UTC.
        desk.briefing(reader, "06:00", Some(1)).await;
        let mut executed = Vec::new();
        desk.at("2026-01-01T01:00:00Z");
        for _ in 0..(15 * 6) {
            desk.clock.advance(4 * 60 * MINUTE);
            desk.look().await;
            if desk.size(RunBriefing::QUEUE).await > 0 {
                assert_eq!(desk.work_one::<RunBriefing>().await.not_done, 0);
                executed.push(desk.now().to_string());
            }
        }
        assert_eq!(executed, ["2026-01-04T17:00:00Z", "2026-01-11T17:00:00Z"]);
    }
}

#[tokio::test]
async fn a_reader_without_credit_gets_no_briefing() {
    for place in BOTH {
        let (mut desk, reader) = with_stories(place, "", &[1]).await;
        desk.briefing(reader, "00:00", None).await;
        desk.execute("UPDATE reader SET credits = 0");
        desk.cycle().await;
        assert_eq!(desk.statuses("briefing"), ["ACTIVE"]);
        assert_eq!(desk.number("SELECT count(*) FROM report"), 0);
        desk.execute("UPDATE reader SET credits = 1");
        desk.cycle().await;
        assert_eq!(desk.mail.received().len(), 1);
    }
}

#[tokio::test]
async fn a_report_is_mailed_only_if_that_is_enabled_and_there_is_something_in_it() {
    for place in BOTH {
        // Not by this briefing.
        let (mut desk, reader) = with_stories(place, "", &[1]).await;
        desk.briefing(reader, "00:00", None).await;
        desk.execute("UPDATE briefing SET by_mail = 0");
        desk.cycle().await;
        // Not by this configuration.
        let (mut other, reader) = with_stories(place, "application.mail.enabled=false", &[1]).await;
        other.briefing(reader, "00:00", None).await;
        other.cycle().await;
        // Nothing to tell.
        let (mut empty, reader) = with_stories(place, "", &[]).await;
        empty.briefing(reader, "00:00", None).await;
        empty.cycle().await;
        for (desk, items) in [(&desk, 1), (&other, 1), (&empty, 0)] {
            assert_eq!(desk.mail.received(), []);
            assert_eq!(desk.statuses("briefing"), ["ACTIVE"]);
            let reports =
                "SELECT count(*) FROM report WHERE closed_at IS NOT NULL AND mailed_at IS NULL";
            assert_eq!(desk.number(reports), 1, "the report is made all the same");
            assert_eq!(desk.number("SELECT count(*) FROM report_item"), items);
        }
    }
}

#[tokio::test]
async fn a_mail_that_is_refused_is_an_error_and_its_retry_sends_the_same_report() {
    for place in BOTH {
        let (mut desk, reader) = with_stories(place, "", &[20, 30]).await;
        desk.briefing(reader, "00:00", None).await;
        desk.mail.refuse(true);
        desk.cycle().await;
        assert_eq!(desk.statuses("briefing"), ["ERROR"]);
        let failed = desk.failed(RunBriefing::QUEUE).await;
        assert!(failed[0].error.as_deref().is_some_and(|e| e.contains("550")), "{failed:?}");
        desk.cycle().await;
        assert_eq!(desk.failed(RunBriefing::QUEUE).await.len(), 1, "not again on the same day");
        desk.mail.refuse(false);
        // Something better came since, which is for tomorrow.
        desk.news(&[20, 30, 90]).await;
        desk.cycle().await;
        desk.retry(RunBriefing::QUEUE).await;
        desk.work().await;
        assert_eq!(desk.statuses("briefing"), ["ACTIVE"]);
        desk.at("2026-01-02T00:00:00Z");
        desk.look().await;
        desk.work().await;
        let mails = desk.mail.received();
        let told: Vec<_> = mails.iter().map(|mail| numbers(&mail.text)).collect();
        assert_eq!(told, [vec![30, 20], vec![90]]);
        assert_eq!(mails[0].header("Message-ID"), Some("<briefing-1-2026-01-01@morning-deck>"));
    }
}

#[tokio::test]
async fn a_briefing_in_error_is_executed_again_the_next_day() {
    for place in BOTH {
        let (mut desk, reader) = with_stories(place, "", &[20]).await;
        desk.briefing(reader, "00:00", None).await;
        desk.mail.refuse(true);
        desk.cycle().await;
        desk.mail.refuse(false);
        desk.news(&[20, 30]).await;
        desk.cycle().await;
        desk.at("2026-01-02T00:00:00Z");
        for _ in 0..3 {
            desk.look().await;
            desk.work().await;
            desk.clock.advance(MINUTE);
        }
        assert_eq!(desk.statuses("briefing"), ["ACTIVE"]);
        let told: Vec<_> = desk.mail.received().iter().map(|mail| numbers(&mail.text)).collect();
        assert_eq!(told, [vec![30]], "yesterday's is not sent behind it");
        // Unless somebody asks for it, and then it is found closed.
        desk.retry(RunBriefing::QUEUE).await;
        desk.work().await;
        assert_eq!(
            (desk.mail.received().len(), desk.statuses("briefing").remove(0)),
            (1, "ACTIVE".to_owned())
        );
    }
}
