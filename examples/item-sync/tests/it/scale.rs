//! Kinds of events scale apart: served by processes of their own, or with processors
//! of their own, and for as long as cron leaves time.

use std::time::{Duration, Instant};

use crate::shop::{Shop, until};
use crate::webhook::Webhook;

const ITEMS: u64 = 20;

fn shop() -> Shop {
    let shop = Shop::new();
    shop.sync(&(1..=ITEMS as i64).map(|id| (id, 100)).collect::<Vec<_>>());
    shop
}

#[test]
fn a_worker_serves_the_queues_it_is_told() {
    let shop = shop();
    shop.ok(&["work", "--drain", "--queue", "PRICE_UPDATED", "--queue", "price-trend"]);
    assert_eq!(shop.standing("PRICE_UPDATED"), (0, 0, 0));
    assert_eq!(shop.stats("price-trend").counters.done, ITEMS);
    for waits in ["NEW_ITEM", "price-anomaly"] {
        assert_eq!(shop.standing(waits), (ITEMS, 0, 0), "{waits}");
    }
    let ran = shop.run(&["work", "--drain", "--queue", "NEW"]);
    assert!(!ran.ok && ran.stderr.contains("NEW_ITEM"), "{ran:?}");
}

#[test]
fn a_kind_that_hangs_holds_up_no_kind_with_processors_of_its_own() {
    let shop = shop();
    let webhook = Webhook::start();
    let words = ["work", "--drain", "--processors", "2,NEW_ITEM=1", "--webhook", &webhook.url];
    let worker = shop.start(&words);
    // It answers nothing yet, and all that is not about new items is done.
    let first = webhook.next();
    until("the others are done", || shop.stats("price-anomaly").counters.done == ITEMS);
    until("trends too", || shop.stats("price-trend").counters.done == ITEMS);
    assert_eq!(shop.stats("NEW_ITEM").counters.done, 0);
    assert!(webhook.try_next().is_none(), "one at a time");
    first.answer(200);
    for _ in 1..ITEMS {
        webhook.next().answer(200);
    }
    let ran = worker.end();
    assert!(ran.ok && ran.stdout.contains(&format!("{} done, 0 not done", 4 * ITEMS)), "{ran:?}");
}

#[test]
fn follow_ups_of_another_worker_are_drained_as_well() {
    let shop = shop();
    // Each queue has a worker; those of the follow-ups find nothing at first.
    let all = "PRICE_UPDATED=1,NEW_ITEM=1,price-trend=2,price-anomaly=2";
    let ran = shop.ok(&["work", "--drain", "--processors", all]);
    assert!(ran.stdout.contains(&format!("{} done, 0 not done", 4 * ITEMS)), "{ran:?}");
    assert_eq!(shop.rows("gristmill_task"), 0);
}

#[test]
fn a_worker_ends_when_its_time_is_over() {
    let shop = shop();
    let webhook = Webhook::start();
    let began = Instant::now();
    let words = ["work", "--budget", "300ms", "--queue", "NEW_ITEM", "--webhook", &webhook.url];
    let worker = shop.start(&words);
    // What runs when the time is over may finish; nothing more is begun.
    let first = webhook.next();
    until("the time is over", || began.elapsed() > Duration::from_millis(1_500));
    first.answer(200);
    let ran = worker.end();
    assert!(ran.ok, "{ran:?}");
    // One is done; the other kind of new items' tasks, 20, were not served.
    let left = format!("1 done, 0 not done\n{} ready for the next run\n", 2 * ITEMS - 1);
    assert_eq!(ran.stdout, left, "{ran:?}");
}
