//! Fetching sources: what is due, what comes in, and what it leaves.

use gristmill::TaskType;
use morning_deck::fetch::Kind;
use morning_deck::source::FetchSource;

use crate::desk::{BOTH, Desk, MINUTE, rss};

const PAGE: &str = r#"<article><h2><a href="/w/1">A page's story</a></h2><p>Teaser.</p></article>"#;
const LISTING: &str = r#"{"data":{"children":[{"data":{"name":"t3_1","title":"A post",
    "selftext":"Text.","permalink":"/r/x/1"}}]}}"#;

#[tokio::test]
async fn rss_web_and_reddit_sources_are_fetched() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        let reader = desk.reader("ada@example.com", "UTC", 5).await;
        desk.feed(&[1, 2]);
        desk.web.set("/page", 200, PAGE);
        desk.web.set("/old.json", 302, "/r/x/new.json");
        desk.web.set("/r/x/new.json", 200, LISTING);
        for (kind, path) in
            [(Kind::Rss, "/feed.xml"), (Kind::Web, "/page"), (Kind::Reddit, "/old.json")]
        {
            desk.source(reader, kind, path, 60).await;
        }
        let report = desk.cycle().await;
        assert_eq!((report.done, report.not_done), (3, 0));
        assert_eq!(desk.statuses("source"), ["IDLE", "IDLE", "IDLE"]);
        let titles = desk.texts("SELECT title FROM news_item ORDER BY source_id, id");
        assert_eq!(titles, ["Story 1", "Story 2", "A page's story", "A post"]);
        let contents = desk.texts("SELECT content FROM news_item ORDER BY source_id, id");
        assert_eq!(contents, ["About 1.", "About 2.", "Teaser.", "Text."]);
        let urls = desk.texts("SELECT url FROM news_item ORDER BY source_id, id");
        assert_eq!(urls[3], desk.web.url("/r/x/1"));
        assert_eq!(desk.stats(FetchSource::QUEUE).await.total(), 0, "success leaves no task");
    }
}

#[tokio::test]
async fn a_source_is_idle_then_queued_then_fetching_then_idle_for_all_to_see() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        let reader = desk.reader("ada@example.com", "UTC", 5).await;
        let source = desk.source(reader, Kind::Rss, "/feed.xml", 60).await;
        desk.feed(&[1]);
        assert_eq!(desk.status("source", source), "IDLE");
        desk.tick().await;
        assert_eq!(desk.status("source", source), "QUEUED");
        assert_eq!(desk.size(FetchSource::QUEUE).await, 1);
        desk.web.set_open(false);
        let watching = async {
            desk.web.asked("/feed.xml", 1).await;
            // Another connection sees it while the work goes on.
            assert_eq!(desk.status("source", source), "FETCHING");
            assert_eq!(desk.number("SELECT count(*) FROM news_item"), 0);
            assert_eq!(desk.stats(FetchSource::QUEUE).await.processing, 1);
            desk.web.set_open(true);
        };
        tokio::join!(desk.work(), watching);
        assert_eq!(desk.status("source", source), "IDLE");
        assert_eq!(desk.number("SELECT count(*) FROM news_item"), 1);
    }
}

#[tokio::test]
async fn a_first_import_is_done_at_once_and_what_comes_later_is_new() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        let reader = desk.reader("ada@example.com", "UTC", 5).await;
        let source = desk.source(reader, Kind::Rss, "/feed.xml", 1).await;
        // A first import that fails leaves the next one the first.
        desk.web.set("/feed.xml", 500, "down");
        desk.cycle().await;
        assert_eq!(desk.status("source", source), "ERROR");
        desk.feed(&[1, 2]);
        desk.tick().await;
        desk.work_one::<FetchSource>().await;
        assert_eq!(desk.statuses("news_item"), ["DONE", "DONE"]);
        assert_eq!(desk.number("SELECT count(*) FROM news_item WHERE score IS NOT NULL"), 0);
        desk.feed(&[1, 2, 3]);
        desk.tick().await;
        desk.work_one::<FetchSource>().await;
        assert_eq!(desk.statuses("news_item"), ["DONE", "DONE", "NEW"]);
        assert_eq!((desk.credits(), desk.ai.articles().len()), (5, 0), "the past costs nothing");
    }
}

#[tokio::test]
async fn what_is_known_is_not_taken_in_again() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        desk.imported(9).await;
        for stories in [&[1, 2][..], &[2, 1], &[2, 3, 3]] {
            desk.news(stories).await;
        }
        let titles = desk.texts("SELECT title FROM news_item ORDER BY id");
        assert_eq!(titles, ["Story 1", "Story 2", "Story 3"]);
        // Nor is what was done about it undone: it was paid for.
        desk.cycle().await;
        let all = "SELECT status || ' ' || done_at || ' ' || content FROM news_item ORDER BY id";
        let (done, credits) = (desk.texts(all), desk.credits());
        assert!(done.iter().all(|item| item.starts_with("DONE")), "{done:?}");
        desk.news(&[3, 1, 2]).await;
        desk.cycle().await;
        assert_eq!((desk.texts(all), desk.credits()), (done, credits));
    }
}

#[tokio::test]
async fn a_source_is_due_after_its_own_interval() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        let reader = desk.reader("ada@example.com", "UTC", 5).await;
        desk.feed(&[]);
        desk.web.set("/slow.xml", 200, rss(&[]));
        desk.source(reader, Kind::Rss, "/feed.xml", 2).await;
        desk.source(reader, Kind::Rss, "/slow.xml", 5).await;
        let mut fetched = Vec::new();
        for _ in 0..11 {
            desk.cycle().await;
            fetched.push((desk.web.count("/feed.xml"), desk.web.count("/slow.xml")));
        }
        let expected = [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6].into_iter();
        let expected = expected.zip([1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3]).collect::<Vec<_>>();
        assert_eq!(fetched, expected);
    }
}

#[tokio::test]
async fn sources_of_readers_without_credit_are_passed_over() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        let (rich, poor) = (
            desk.reader("ada@example.com", "UTC", 1).await,
            desk.reader("bob@example.com", "UTC", 0).await,
        );
        desk.feed(&[]);
        desk.source(rich, Kind::Rss, "/feed.xml", 1).await;
        let waiting = desk.source(poor, Kind::Rss, "/feed.xml", 1).await;
        desk.cycle().await;
        assert_eq!(desk.web.count("/feed.xml"), 1);
        assert_eq!(desk.status("source", waiting), "IDLE");
        desk.execute("UPDATE reader SET credits = 1");
        desk.cycle().await;
        assert_eq!(desk.web.count("/feed.xml"), 3, "both, now that both can pay");
    }
}

#[tokio::test]
async fn a_fetch_that_fails_marks_the_source_and_is_tried_at_the_next_interval() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        let reader = desk.reader("ada@example.com", "UTC", 5).await;
        let source = desk.source(reader, Kind::Rss, "/feed.xml", 10).await;
        desk.web.set("/feed.xml", 200, "<html>moved</html>");
        let report = desk.cycle().await;
        assert_eq!((report.done, report.not_done), (0, 1));
        assert_eq!(desk.status("source", source), "ERROR");
        let errors = desk.texts("SELECT error FROM source");
        assert!(errors[0].contains("not a feed"), "{errors:?}");
        // The task is kept for a person, and keeps nobody from going on.
        let failed = desk.failed(FetchSource::QUEUE).await;
        assert_eq!((failed.len(), failed[0].attempts), (1, 1));
        assert!(failed[0].error.as_deref().is_some_and(|error| error.contains("not a feed")));
        desk.cycle().await;
        assert_eq!(desk.web.count("/feed.xml"), 1, "not before its interval has passed");
        desk.feed(&[1]);
        desk.clock.advance(9 * MINUTE);
        desk.cycle().await;
        assert_eq!(desk.status("source", source), "IDLE");
        assert_eq!(desk.number("SELECT count(*) FROM source WHERE error IS NULL"), 1);
    }
}

#[tokio::test]
async fn a_source_that_was_deleted_meanwhile_is_no_error() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        let reader = desk.reader("ada@example.com", "UTC", 5).await;
        desk.source(reader, Kind::Rss, "/feed.xml", 1).await;
        desk.tick().await;
        desk.execute("DELETE FROM source");
        let report = desk.work().await;
        assert_eq!((report.done, report.not_done), (1, 0));
        assert_eq!(desk.web.count("/feed.xml"), 0);
    }
}
