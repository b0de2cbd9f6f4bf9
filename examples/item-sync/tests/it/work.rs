//! Working: order, follow-ups, and what is left when all went well.

use gristmill::QueueName;
use gristmill::port::{Outcome, State};

use crate::shop::Shop;

#[test]
fn done_tasks_are_deleted_and_followed_up() {
    let shop = Shop::new();
    shop.sync(&[(1, 1_000), (1, 1_100), (2, 500)]);
    let ran = shop.ok(&["work", "--drain"]);
    assert!(ran.stdout.contains("8 done, 0 not done"), "{ran:?}");
    for queue in ["PRICE_UPDATED", "NEW_ITEM", "price-trend", "price-anomaly"] {
        let stats = shop.stats(queue);
        assert_eq!((stats.total(), stats.counters.done), (0, 2), "{queue}");
    }
    assert_eq!(shop.rows("gristmill_task"), 0, "success leaves no row");
    let rising = "SELECT count(*) FROM item_trend WHERE item_id = 1 AND direction = 'rising'";
    assert_eq!((shop.number(rising), shop.rows("item_trend")), (1, 1));
    assert_eq!(shop.rows("item_anomaly"), 0);
}

#[test]
fn an_unusual_price_is_found_once() {
    let shop = Shop::new();
    shop.sync(&[(1, 1_000), (1, 1_010), (1, 990), (1, 5_000)]);
    shop.ok(&["work", "--drain"]);
    assert_eq!(shop.rows("item_anomaly"), 1);
    shop.sync(&[(1, 5_001)]);
    shop.ok(&["work", "--drain"]);
    assert_eq!(shop.rows("item_anomaly"), 1, "the next price is near one seen before");
    let shown = shop.ok(&["show"]).stdout;
    assert!(shown.contains("Item 1") && shown.contains("50.01"), "{shown}");
}

#[test]
fn first_in_is_first_out() {
    let shop = Shop::new();
    let order = [30, 10, 20, 7, 99, 1];
    shop.file("feed.json", &order.map(|id| (id, 100)));
    shop.ok(&["sync", "feed.json", "--chunk", "2"]);
    shop.ok(&["work", "--drain"]);
    let expected: Vec<String> = order.iter().map(|id| format!("new item {id}:")).collect();
    let notices = shop.notices();
    assert_eq!(notices.len(), expected.len());
    for (notice, expected) in notices.iter().zip(&expected) {
        assert!(notice.starts_with(expected), "{notice} instead of {expected}");
    }
}

#[test]
fn one_follow_up_can_fail_without_the_other() {
    let shop = Shop::new();
    shop.sync(&[(1, 1_000), (1, 1_010), (1, 990), (1, 5_000)]);
    // Whatever is found cannot be written; trends can.
    let broken = "CREATE TRIGGER broken BEFORE INSERT ON item_anomaly
                  BEGIN SELECT RAISE(ABORT, 'no room for anomalies'); END";
    shop.sql().execute_batch(broken).expect("a trigger");
    let ran = shop.ok(&["work", "--drain"]);
    assert!(ran.stdout.contains("3 done, 1 not done"), "{ran:?}");
    assert_eq!(shop.standing("PRICE_UPDATED"), (0, 0, 0));
    assert_eq!(shop.standing("price-trend"), (0, 0, 0));
    assert_eq!(shop.rows("item_trend"), 1);
    let failed = shop.tasks("price-anomaly", State::Failed);
    assert!(failed[0].error.as_deref().is_some_and(|e| e.contains("no room for anomalies")));

    // A failed one blocks nothing, and there may be many of one item.
    shop.sync(&[(1, 90_000)]);
    shop.ok(&["work", "--drain"]);
    let failed = shop.tasks("price-anomaly", State::Failed);
    assert_eq!(failed.len(), 2);
    assert!(failed.iter().all(|task| task.key.as_deref() == Some("1")));
}

#[test]
fn a_price_that_changes_while_its_task_runs_is_not_lost() {
    let shop = Shop::new();
    shop.sync(&[(1, 1_000)]);
    let given_back = Outcome::Release { at: None, started: true };
    shop.while_claimed("PRICE_UPDATED", given_back, |claimed| {
        assert_eq!(claimed.len(), 1);
        let ran = shop.sync(&[(1, 1_100)]);
        assert!(ran.stderr.contains("skipped=1 enqueued=0"), "running counts as standing: {ran:?}");
    });
    shop.ok(&["work", "--drain"]);
    assert_eq!(shop.number("SELECT prices FROM item_trend"), 2, "both prices were seen");
}

#[test]
fn nor_is_one_that_changes_while_the_trend_is_computed() {
    let shop = Shop::new();
    shop.sync(&[(1, 1_000), (1, 1_100)]);
    pause_trends(&shop, true);
    shop.ok(&["work", "--drain"]);
    pause_trends(&shop, false);
    shop.while_claimed("price-trend", Outcome::Done, |claimed| {
        assert_eq!(claimed.len(), 1);
        shop.sync(&[(1, 1_200)]);
        shop.ok(&["work", "--drain"]);
        assert_eq!(shop.standing("price-trend"), (1, 1, 0), "the next one waits for the first");
    });
    shop.ok(&["work", "--drain"]);
    assert_eq!(shop.number("SELECT prices FROM item_trend"), 3, "all prices were seen");
    assert_eq!(shop.standing("price-trend"), (0, 0, 0));
}

fn pause_trends(shop: &Shop, paused: bool) {
    let queue = QueueName::new("price-trend").expect("a name");
    shop.mill(|mill| async move {
        mill.store().pause_queue(&queue, paused, "the test").await.expect("paused");
    });
}

#[test]
fn the_queue_part_is_short() {
    let parts = [include_str!("../../src/queue.rs"), include_str!("../../src/work.rs")];
    let lines: usize = parts.iter().map(|part| part.lines().count()).sum();
    assert!(lines < 120, "{lines} lines");
}
