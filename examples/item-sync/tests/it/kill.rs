//! `kill -9` in the middle of a sync and of work, and then again from the
//! start: nothing is lost, nothing stands twice.

use gristmill::port::{Action, State};

use crate::shop::{Shop, json, until};
use crate::webhook::Webhook;

const CHUNK: usize = 100;

fn items(count: i64) -> Vec<(i64, u32)> {
    (1..=count).map(|id| (id, 100)).collect()
}

/// Items, prices and tasks agree, and only whole chunks stand.
fn check_whole(shop: &Shop) -> i64 {
    let rows = shop.rows("item");
    assert_eq!(rows % CHUNK as i64, 0, "only whole chunks");
    assert_eq!(shop.rows("item_price"), rows);
    for queue in ["PRICE_UPDATED", "NEW_ITEM"] {
        let (pending, ..) = shop.standing(queue);
        assert_eq!(pending, rows as u64, "{queue}: one task an item");
    }
    let orphans = "SELECT count(*) FROM gristmill_task WHERE key NOT IN (SELECT id FROM item)";
    assert_eq!(shop.number(orphans), 0);
    rows
}

#[test]
fn a_killed_sync_leaves_whole_chunks_and_a_repeat_completes_it() {
    let shop = Shop::new();
    let all = json(&items(10 * CHUNK as i64));
    // Where in the file each run is cut off.
    let mut before = 0;
    for cut in [40, 250, 251, 500, 730, 990] {
        let mut sync = shop.start(&["sync", "-", "--chunk", &CHUNK.to_string()]);
        let end = all.match_indices("},").nth(cut).map(|(at, _)| at + 2).expect("a place");
        sync.feed(&all[..end]);
        let whole = cut / CHUNK * CHUNK;
        if whole > before {
            // Kill it when there is something of this run to lose, and while
            // it may be anywhere in what follows.
            until("a new chunk stands", || shop.rows("item") > before as i64);
        }
        sync.kill();
        if shop.path("items.db").exists() && shop.rows("gristmill_queue") == 4 {
            before = usize::try_from(check_whole(&shop)).expect("a count");
        }
    }
    assert!(before > 0 && before < 10 * CHUNK);
    std::fs::write(shop.path("feed.json"), all).expect("a file");
    shop.ok(&["sync", "feed.json", "--chunk", &CHUNK.to_string()]);
    assert_eq!(check_whole(&shop), 10 * CHUNK as i64);
    shop.ok(&["work", "--drain"]);
    let mut notices = shop.notices();
    notices.sort();
    notices.dedup();
    assert_eq!(notices.len(), 10 * CHUNK, "each item is told of once");
}

/// Kills a worker at its third notice, while that waits for its answer. Two
/// answered ones have told the worker how fast it is. Returns the third's task.
fn kill_in_the_middle(shop: &Shop, webhook: &Webhook, more: &[&str]) -> i64 {
    let mut args = vec!["work", "--drain", "--lease", "2", "--webhook", webhook.url.as_str()];
    args.extend(more);
    let worker = shop.start(&args);
    webhook.next().answer(200);
    webhook.next().answer(200);
    let post = webhook.next();
    worker.kill();
    post.task
}

#[test]
fn a_killed_worker_s_tasks_come_back() {
    let shop = Shop::new();
    shop.sync(&items(5));
    let webhook = Webhook::start();
    let task = kill_in_the_middle(&shop, &webhook, &["--retries"]);
    let held: Vec<i64> =
        shop.tasks("NEW_ITEM", State::Processing).iter().map(|task| task.id.0).collect();
    assert!(held.contains(&task), "it is not lost: {held:?}");
    // The done of the one before it may have been on its way.
    let left = 5 - shop.stats("NEW_ITEM").counters.done as usize;
    assert!((3..=4).contains(&left), "{left} left");
    until("all are told", || {
        shop.ok(&["work", "--drain", "--retries"]);
        shop.standing("NEW_ITEM") == (0, 0, 0)
    });
    let notices = shop.notices();
    assert_eq!(notices.len(), left, "each that was left, once: {notices:?}");
    assert!(notices.iter().any(|notice| notice.ends_with(&format!("(task {task})"))));
    assert_eq!(shop.rows("gristmill_task"), 0);
    assert_eq!(shop.stats("NEW_ITEM").counters.done, 5);
}

#[test]
fn without_retries_only_the_interrupted_one_waits_for_a_person() {
    let shop = Shop::new();
    shop.sync(&items(5));
    let webhook = Webhook::start();
    let task = kill_in_the_middle(&shop, &webhook, &[]);
    assert_eq!(shop.standing("NEW_ITEM"), (2, 1, 0), "no more was claimed than was begun");
    until("its lease has run out", || {
        shop.ok(&["work", "--drain"]);
        shop.standing("NEW_ITEM") == (0, 0, 1)
    });
    let failed = shop.tasks("NEW_ITEM", State::Failed);
    assert_eq!(failed[0].id.0, task);
    assert!(failed[0].error.as_deref().is_some_and(|e| e.contains("lease ran out")), "{failed:?}");
    assert_eq!(shop.notices().len(), 2, "those behind it are done");
    shop.operate(Action::Retry, "NEW_ITEM");
    shop.ok(&["work", "--drain"]);
    assert_eq!((shop.standing("NEW_ITEM"), shop.notices().len()), ((0, 0, 0), 3));
    assert_eq!(shop.rows("gristmill_task"), 0);
}
