//! Enriching items: what is asked, what is kept, and what it costs.

use gristmill::TaskType;
use morning_deck::config::QueuePlace;
use morning_deck::item::EnrichItem;
use morning_deck::source::FetchSource;
use morning_deck::status::ITEM;

use crate::desk::{BOTH, Desk, MINUTE};
use crate::test_ai::Mood;

#[tokio::test]
async fn an_item_gets_summary_tags_score_and_reasoning_for_one_credit() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        desk.imported(5).await;
        desk.news(&[42]).await;
        assert_eq!(desk.statuses("news_item"), ["NEW"]);
        desk.cycle().await;
        assert_eq!(desk.statuses("news_item"), ["DONE"]);
        let kept = "SELECT summary || '|' || tags || '|' || score || '|' || score_reasoning FROM news_item";
        let kept = desk.texts(kept).remove(0);
        assert_eq!(kept, r#"Story 42 in short|["one","two"]|42|the number in its title"#);
        assert_eq!(desk.credits(), 4);
        assert_eq!(desk.stats(EnrichItem::QUEUE).await.total(), 0, "success leaves no task");
        desk.cycle().await;
        assert_eq!((desk.credits(), desk.ai.articles().len()), (4, 1), "once is enough");
    }
}

#[tokio::test]
async fn an_item_is_new_then_pending_then_processing_then_done_for_all_to_see() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        desk.imported(5).await;
        desk.news(&[1]).await;
        desk.tick().await;
        assert_eq!(desk.statuses("news_item"), ["PENDING"]);
        desk.ai.set_open(false);
        let watching = async {
            desk.ai.asked(1).await;
            assert_eq!(desk.statuses("news_item"), ["PROCESSING"]);
            assert_eq!(desk.credits(), 5, "nothing is paid before it is done");
            desk.ai.set_open(true);
        };
        tokio::join!(desk.work(), watching);
        assert_eq!(desk.statuses("news_item"), ["DONE"]);
        assert_eq!(desk.credits(), 4);
    }
}

#[tokio::test]
async fn an_item_with_less_than_2000_characters_has_its_page_fetched() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        desk.imported(5).await;
        let item = |n: u32, text: &str| {
            format!(
                "<item><guid>{n}</guid><title>Story {n}</title><link>/s/{n}</link>\
                 <description>{text}</description></item>"
            )
        };
        // In characters, not in bytes.
        let (long, short) = ("é".repeat(2_000), "é".repeat(1_999));
        let feed = format!("<rss>{}{}{}</rss>", item(1, &long), item(2, &short), item(3, "few"));
        desk.execute("UPDATE source SET fetched_at = 0");
        desk.web.set("/feed.xml", 200, feed);
        for n in [1, 2] {
            desk.web.set(&format!("/s/{n}"), 200, format!("<p>{}</p>", "page ".repeat(2_000)));
        }
        desk.tick().await;
        desk.work_one::<FetchSource>().await;
        desk.cycle().await;
        assert_eq!(desk.statuses("news_item"), ["DONE", "DONE", "DONE"], "also without its page");
        let fetched = [1, 2, 3].map(|n| desk.web.count(&format!("/s/{n}")));
        assert_eq!(fetched, [0, 1, 1]);
        let mut articles = desk.ai.articles();
        articles.sort_by(|a, b| a.title.cmp(&b.title));
        assert_eq!(articles[0].content, long);
        assert!(articles[1].content.starts_with("page page"));
        assert_eq!(articles[2].content, "few", "the page was not there");
        let kept = desk.texts("SELECT content FROM news_item ORDER BY id");
        assert!(kept[1].starts_with("page page"), "what was read is kept");
    }
}

#[tokio::test]
async fn an_item_that_fails_is_an_error_costs_nothing_and_can_be_retried() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        desk.imported(5).await;
        desk.news(&[7]).await;
        desk.ai.set_mood(Mood::Refuses);
        desk.cycle().await;
        assert_eq!((desk.statuses("news_item"), desk.credits()), (vec!["ERROR".to_owned()], 5));
        let failed = desk.failed(EnrichItem::QUEUE).await;
        assert_eq!(failed[0].error.as_deref(), Some("the service is over its budget"));
        desk.cycle().await;
        assert_eq!(desk.ai.articles().len(), 1, "an item in error is not found again");
        desk.ai.set_mood(Mood::Answers);
        desk.retry(EnrichItem::QUEUE).await;
        desk.work().await;
        assert_eq!((desk.statuses("news_item"), desk.credits()), (vec!["DONE".to_owned()], 4));
    }
}

#[tokio::test]
async fn an_item_in_error_is_found_again_until_it_failed_three_times() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        desk.imported(5).await;
        desk.news(&[7]).await;
        desk.ai.set_mood(Mood::Refuses);
        desk.cycle().await;
        for (failures, wait) in [(1, 5), (2, 10)] {
            // Also by the process after the next: in memory its task is gone.
            desk.restart().await;
            desk.clock.advance(MINUTE * (wait - 2));
            desk.cycle().await;
            assert_eq!(desk.ai.articles().len(), failures, "it waits first");
            desk.clock.advance(MINUTE);
            desk.cycle().await;
            assert_eq!(desk.ai.articles().len(), failures + 1, "{place:?}");
        }
        desk.clock.advance(60 * MINUTE);
        desk.cycle().await;
        assert_eq!(desk.ai.articles().len(), 3, "now it is for a person");
        assert_eq!((desk.statuses("news_item"), desk.credits()), (vec!["ERROR".to_owned()], 5));
        desk.ai.set_mood(Mood::Answers);
        let retry = desk.app.deck.transact(|db, now| Ok(ITEM.retry(db, None, now)?));
        assert_eq!(retry.await.unwrap(), 1);
        desk.cycle().await;
        assert_eq!((desk.statuses("news_item"), desk.credits()), (vec!["DONE".to_owned()], 4));
        assert_eq!(desk.number("SELECT attempts FROM news_item"), 0);
    }
}

#[tokio::test]
async fn a_service_that_panics_is_an_error_too_and_the_worker_goes_on() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        desk.imported(5).await;
        desk.news(&[7]).await;
        desk.tick().await;
        desk.ai.set_mood(Mood::Panics);
        for attempt in 1..=5 {
            assert_eq!(desk.work().await.not_done, 1, "attempt {attempt}");
            assert_eq!(desk.status("news_item", 1) == "ERROR", attempt == 5);
            desk.clock.advance(10 * MINUTE);
        }
        assert_eq!(desk.failed(EnrichItem::QUEUE).await.len(), 1);
        let error = desk.texts("SELECT error FROM news_item").remove(0);
        assert!(error.contains("on purpose"), "{error}");
        desk.ai.set_mood(Mood::Answers);
        desk.news(&[7, 8]).await;
        desk.cycle().await;
        assert_eq!(desk.statuses("news_item"), ["DONE", "DONE"], "it was found again");
    }
}

#[tokio::test]
async fn credits_are_never_overdrawn() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        desk.imported(2).await;
        desk.news(&[1, 2, 3]).await;
        desk.tick().await;
        assert_eq!(desk.statuses("news_item"), ["PENDING", "PENDING", "NEW"], "what can be paid");
        desk.tick().await;
        assert_eq!(desk.size(EnrichItem::QUEUE).await, 2, "nor more at the next look");
        desk.work().await;
        assert_eq!(desk.statuses("news_item"), ["DONE", "DONE", "NEW"]);
        assert_eq!(desk.credits(), 0);
        desk.cycle().await;
        assert_eq!(desk.ai.articles().len(), 2);
        desk.execute("UPDATE reader SET credits = 10");
        desk.cycle().await;
        assert_eq!((desk.statuses("news_item")[2].as_str(), desk.credits()), ("DONE", 9));
    }
}

#[tokio::test]
async fn credit_that_is_gone_by_the_end_leaves_the_item_new() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        desk.imported(1).await;
        desk.news(&[1]).await;
        desk.tick().await;
        desk.ai.set_open(false);
        let spending = async {
            desk.ai.asked(1).await;
            desk.execute("UPDATE reader SET credits = 0");
            desk.ai.set_open(true);
        };
        tokio::join!(desk.work(), spending);
        assert_eq!((desk.statuses("news_item"), desk.credits()), (vec!["NEW".to_owned()], 0));
        assert_eq!(desk.number("SELECT count(*) FROM news_item WHERE score IS NOT NULL"), 0);
        // And credit that is gone at the start is not even asked for.
        desk.execute("UPDATE reader SET credits = 1");
        desk.tick().await;
        desk.execute("UPDATE reader SET credits = 0");
        desk.work().await;
        assert_eq!(
            (desk.statuses("news_item"), desk.ai.articles().len()),
            (vec!["NEW".to_owned()], 1)
        );
    }
}

#[tokio::test]
async fn result_and_credit_stand_together_or_not_at_all() {
    for place in BOTH {
        let mut desk = Desk::new(place).await;
        desk.imported(5).await;
        desk.news(&[1]).await;
        desk.tick().await;
        desk.execute(
            "CREATE TRIGGER broken BEFORE UPDATE ON news_item WHEN NEW.status = 'DONE'
             BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
        );
        let report = desk.work().await;
        assert_eq!((report.done, report.not_done), (0, 1));
        assert_eq!(
            (desk.statuses("news_item"), desk.credits()),
            (vec!["PROCESSING".to_owned()], 5)
        );
        assert_eq!(desk.number("SELECT count(*) FROM news_item WHERE score IS NOT NULL"), 0);
        desk.execute("DROP TRIGGER broken");
        // The task waits for its next attempt; nobody has to find it again.
        desk.clock.advance(MINUTE);
        assert_eq!(desk.work().await.done, 1);
        assert_eq!((desk.statuses("news_item"), desk.credits()), (vec!["DONE".to_owned()], 4));
    }
}

#[tokio::test]
async fn in_one_file_the_credit_also_stands_together_with_the_task_s_end() {
    let mut desk = Desk::new(QueuePlace::Database).await;
    desk.imported(5).await;
    desk.news(&[1]).await;
    desk.tick().await;
    desk.execute(
        "CREATE TRIGGER broken BEFORE DELETE ON gristmill_task
         BEGIN SELECT RAISE(ABORT, 'the task cannot end'); END",
    );
    desk.work().await;
    assert_eq!((desk.statuses("news_item"), desk.credits()), (vec!["PROCESSING".to_owned()], 5));
    let waiting = desk.waiting(EnrichItem::QUEUE).await;
    assert_eq!(waiting.len(), 1);
    assert!(waiting[0].error.as_deref().is_some_and(|e| e.contains("cannot end")), "{waiting:?}");
    desk.execute("DROP TRIGGER broken");
    desk.clock.advance(MINUTE);
    desk.work().await;
    assert_eq!((desk.statuses("news_item"), desk.credits()), (vec!["DONE".to_owned()], 4));
}

#[tokio::test]
async fn enriched_items_are_indexed_if_search_is_enabled() {
    const INDEX: &str = "/indexes/news_items/documents";
    for place in BOTH {
        let mut desk = Desk::with(place, "application.search.enabled=true").await;
        desk.imported(5).await;
        desk.web.set(INDEX, 503, "busy");
        desk.news(&[11]).await;
        desk.cycle().await;
        assert_eq!(desk.statuses("news_item"), ["DONE"], "it does not depend on the index");
        assert_eq!(desk.number("SELECT count(*) FROM news_item WHERE indexed_at IS NULL"), 1);
        desk.web.set(INDEX, 202, "");
        desk.news(&[11, 12]).await;
        desk.cycle().await;
        assert_eq!(desk.number("SELECT count(*) FROM news_item WHERE indexed_at IS NULL"), 0);
        let posts: Vec<_> = desk.web.seen().into_iter().filter(|s| s.path == INDEX).collect();
        assert_eq!((posts.len(), posts[1].method.as_str()), (2, "POST"));
        assert_eq!(posts[1].authorization.as_deref(), Some("Bearer a key"));
        let documents: serde_json::Value = serde_json::from_str(&posts[1].body).expect("JSON");
        let indexed: Vec<_> = documents
            .as_array()
            .expect("a list")
            .iter()
            .map(|d| (d["title"].as_str().expect("a title"), d["score"].as_u64().expect("a score")))
            .collect();
        assert_eq!(indexed, [("Story 11", 11), ("Story 12", 12)], "the missed one goes along");
        assert_eq!(documents[0]["tags"][1], "two");
    }
    let mut desk = Desk::new(QueuePlace::Database).await;
    desk.imported(5).await;
    desk.news(&[1]).await;
    desk.cycle().await;
    assert_eq!((desk.statuses("news_item"), desk.web.count(INDEX)), (vec!["DONE".to_owned()], 0));
}
