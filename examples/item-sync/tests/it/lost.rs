//! A sync that breaks in the middle: the error reaches the caller, what was
//! committed stands, and a repeat completes it.

use std::process::Command;

use crate::shop::{Shop, json, ran};

fn items(count: i64) -> Vec<(i64, u32)> {
    (1..=count).map(|id| (id, 100)).collect()
}

/// What stands: items, and tasks of both queues.
fn standing(shop: &Shop) -> (i64, u64, u64) {
    (shop.rows("item"), shop.stats("PRICE_UPDATED").pending(), shop.stats("NEW_ITEM").pending())
}

#[test]
fn a_broken_record_ends_the_sync_where_it_is() {
    let shop = Shop::new();
    let good = json(&items(50));
    let broken = good.replacen(r#""id":25,"#, r#""id":"x","#, 1);
    std::fs::write(shop.path("feed.json"), broken).expect("a file");
    let ran = shop.run(&["sync", "feed.json", "--chunk", "10"]);
    assert!(!ran.ok && ran.stdout.is_empty(), "{ran:?}");
    for part in ["feed.json", "line 1 column", "20 items in 2 chunks stand"] {
        assert!(ran.stderr.contains(part), "{ran:?}");
    }
    assert_eq!(standing(&shop), (20, 20, 20));

    std::fs::write(shop.path("feed.json"), good).expect("a file");
    let ran = shop.ok(&["sync", "feed.json", "--chunk", "10"]);
    assert!(ran.stdout.contains("50 items (30 new, 30 new prices), 60 tasks put"), "{ran:?}");
    assert_eq!(standing(&shop), (50, 50, 50));
}

#[test]
fn a_queue_that_cannot_be_filled_takes_the_chunk_s_items_along() {
    let shop = Shop::new();
    shop.sync(&items(5));
    let broken = "CREATE TRIGGER broken BEFORE INSERT ON gristmill_task WHEN NEW.key = '25'
                  BEGIN SELECT RAISE(ABORT, 'the queue is gone'); END";
    shop.sql().execute_batch(broken).expect("a trigger");
    shop.file("feed.json", &items(50));
    let ran = shop.run(&["sync", "feed.json", "--chunk", "10"]);
    assert!(!ran.ok && ran.stderr.contains("the queue is gone"), "{ran:?}");
    assert_eq!(standing(&shop), (20, 20, 20), "nothing of the third chunk");

    shop.sql().execute_batch("DROP TRIGGER broken").expect("dropped");
    shop.ok(&["sync", "feed.json", "--chunk", "10"]);
    assert_eq!(standing(&shop), (50, 50, 50));
}

#[test]
fn a_disk_that_takes_no_more_ends_the_sync() {
    let shop = Shop::new();
    shop.file("feed.json", &items(20_000));
    // The system refuses to let any file grow further: to the database that is
    // a disk that fails in the middle of a write.
    let mut limited = Command::new("sh");
    limited
        .args(["-c", r#"trap "" XFSZ; ulimit -f 2000; exec "$0" "$@""#])
        .arg(env!("CARGO_BIN_EXE_item-sync"))
        .args(["sync", "feed.json"]);
    let broken = ran(shop.here(limited));
    assert!(!broken.ok && broken.stderr.contains("sync the file again"), "{broken:?}");
    let (stood, updated, new) = standing(&shop);
    assert!(stood > 0 && stood < 20_000 && stood % 500 == 0, "{stood}");
    assert_eq!((updated, new), (stood as u64, stood as u64), "items and tasks agree");

    shop.ok(&["sync", "feed.json"]);
    assert_eq!(standing(&shop), (20_000, 20_000, 20_000));
    assert_eq!(shop.rows("item_price"), 20_000);
}
