//! A deleted item takes its tasks along, in whatever state they are.

use gristmill::port::{Outcome, SettleAnswer, State};

use crate::shop::Shop;
use crate::webhook::Webhook;

/// The items that tasks of a queue are about.
fn keys(shop: &Shop, queue: &str, state: State) -> Vec<String> {
    shop.tasks(queue, state).into_iter().filter_map(|task| task.key).collect()
}

#[test]
fn pending_tasks_go() {
    let shop = Shop::new();
    shop.sync(&[(1, 100), (2, 100)]);
    shop.ok(&["delete", "1"]);
    for queue in ["PRICE_UPDATED", "NEW_ITEM"] {
        assert_eq!(keys(&shop, queue, State::Pending), ["2"]);
        let stats = shop.stats(queue);
        assert_eq!((stats.ready, stats.total(), stats.counters.subject_gone), (1, 1, 1));
    }
    shop.ok(&["work", "--drain"]);
    assert_eq!(shop.notices().len(), 1, "nobody is told of what is gone");
    assert_eq!(shop.rows("item_price"), 1);
}

#[test]
fn failed_tasks_go() {
    let shop = Shop::new();
    shop.sync(&[(1, 100), (2, 100)]);
    shop.ok(&["work", "--drain", "--webhook", &Webhook::nobody()]);
    assert_eq!(shop.standing("NEW_ITEM"), (0, 0, 2));
    shop.ok(&["delete", "1"]);
    assert_eq!(shop.standing("NEW_ITEM"), (0, 0, 1));
    assert_eq!(keys(&shop, "NEW_ITEM", State::Failed), ["2"]);
}

#[test]
fn processing_tasks_go_and_their_settlement_is_answered_gone() {
    let shop = Shop::new();
    shop.sync(&[(1, 100), (2, 100)]);
    let answers = shop.while_claimed("NEW_ITEM", Outcome::Done, |claimed| {
        assert_eq!((claimed.len(), shop.standing("NEW_ITEM")), (2, (0, 2, 0)));
        shop.ok(&["delete", "1"]);
        assert_eq!(shop.standing("NEW_ITEM"), (0, 1, 0));
    });
    assert_eq!(answers[0], SettleAnswer::Gone);
    assert!(answers[1].is_recorded(), "its neighbour is not touched");
    let stats = shop.stats("NEW_ITEM");
    assert_eq!((stats.total(), stats.counters.done, stats.counters.subject_gone), (0, 1, 1));
}

#[test]
fn a_worker_in_the_middle_of_it_ends_well() {
    let shop = Shop::new();
    shop.sync(&[(1, 100), (2, 100)]);
    let webhook = Webhook::start();
    let worker = shop.start(&["work", "--drain", "--webhook", &webhook.url]);
    let post = webhook.next();
    assert_eq!((post.item, shop.standing("NEW_ITEM")), (1, (1, 1, 0)));
    shop.ok(&["delete", "1"]);
    assert_eq!(shop.standing("NEW_ITEM"), (1, 0, 0));
    post.answer(200);
    webhook.next().answer(200);
    let ran = worker.end();
    assert!(ran.ok, "{ran:?}");
    assert_eq!(shop.standing("NEW_ITEM"), (0, 0, 0));
    assert_eq!(shop.stats("NEW_ITEM").counters.done, 1, "what is gone was not done");
}

#[test]
fn only_what_is_there_can_be_deleted() {
    let shop = Shop::new();
    assert!(!shop.run(&["delete", "1"]).ok && !shop.path("items.db").exists());
    shop.sync(&[(1, 100)]);
    let ran = shop.run(&["delete", "2"]);
    assert!(!ran.ok && ran.stderr.contains("no item 2"), "{ran:?}");
}
