//! What is not synced yet, by shares: the table gets done, each offer once.

use std::collections::BTreeSet;
use std::io::Read;
use std::process::Stdio;

use gristmill::port::{Action, Operation, Selection};

use crate::shop::{STORES, Shop};

const NOT_ONCE: &str = "SELECT count(*) FROM offer WHERE synced <> 1 OR taken <> 1";

#[test]
fn as_many_batches_as_it_takes_sync_every_offer_once() {
    for store in STORES {
        let shop = Shop::new(store);
        // A thousand offers, a hundred at a time; three shares of some 333.
        shop.run(&["put", "--sync", "10"]);
        // Several processes, so that nothing but the tables keeps them apart, and long
        // enough for batches to run side by side.
        shop.together(3, &["work", "--drain", "--processors", "2", "--pause", "30"]);
        assert_eq!(shop.taken("sync").len(), 10, "{store}");
        assert_eq!(shop.number(NOT_ONCE), 0, "{store}");
        assert!(shop.run(&["show"]).contains("\n0 offers are not synced\n"));
    }
}

#[test]
fn all_that_is_not_synced_can_be_put_and_a_change_is_synced_again() {
    for store in STORES {
        let shop = Shop::with(store, 250);
        assert!(shop.run(&["put", "--sync", "all"]).contains("3 tasks put"), "{store}");
        shop.run(&["work", "--drain"]);
        assert_eq!(shop.number(NOT_ONCE), 0, "{store}");
        assert!(shop.run(&["put", "--sync", "all"]).contains("0 tasks put"), "{store}");
        shop.run(&["put", "--upsert", "7=1,9=2,1000=3"]);
        shop.run(&["work", "--drain"]);
        assert!(shop.run(&["put", "--sync", "all"]).contains("1 task put"), "{store}");
        shop.run(&["work", "--drain"]);
        let again = shop.number("SELECT count(*) FROM offer WHERE synced = 2 AND ean IN (7, 9)");
        assert_eq!((again, shop.number("SELECT sum(synced) FROM offer")), (2, 253), "{store}");
    }
}

#[test]
fn an_offer_that_changes_while_it_is_on_its_way_stays_due() {
    for store in STORES {
        let shop = Shop::with(store, 100);
        shop.run(&["put", "--sync", "1"]);
        let mut worker = shop.start(&["work", "--drain", "--processors", "1", "--pause", "3000"]);
        worker.says(" has 100 rows", 1);
        shop.run(&["put", "--upsert", "7=1"]);
        // By another worker: this one has its hands full.
        shop.run(&["work", "--drain"]);
        assert_eq!(shop.number("SELECT sum(synced) FROM offer"), 0, "{store}: still on its way");
        worker.says(" wrote ", 1);
        let due = "SELECT group_concat(ean) = '7' FROM offer WHERE synced_version < version";
        assert_eq!(shop.number(due), 1, "{store}");
        assert_eq!(shop.number("SELECT sum(synced) FROM offer"), 99, "{store}");
    }
}

#[test]
fn batches_side_by_side_have_a_share_each() {
    for store in STORES {
        let shop = Shop::new(store);
        shop.run(&["put", "--sync", "3"]);
        shop.run(&["work", "--drain", "--meet", "3"]);
        let numbers: BTreeSet<Option<u32>> = shop.taken("sync").iter().map(|t| t.number).collect();
        assert_eq!(numbers, BTreeSet::from([Some(0), Some(1), Some(2)]), "{store}");
        // As long as its share has some, a batch takes of no other: three shares of
        // a hundred each are begun.
        let share = "((ean % 65521) * 40503 / 16) % 3";
        for n in 0..3 {
            let of = format!("SELECT count(*) FROM offer WHERE synced = 1 AND {share} = {n}");
            assert_eq!(shop.number(&of), 100, "{store}: share {n}");
        }
    }
}

#[test]
fn slots_are_as_many_as_said_and_said_once() {
    for store in STORES {
        let shop = Shop::new(store);
        shop.run(&["put", "--sync", "8", "--slots", "8"]);
        shop.run(&["work", "--drain", "--meet", "8"]);
        let numbers: BTreeSet<Option<u32>> = shop.taken("sync").iter().map(|t| t.number).collect();
        assert_eq!(numbers, (0..8).map(Some).collect(), "{store}");
    }
}

/// As an operator does it.
fn cancel(shop: &Shop, task: i64) {
    shop.mill(async |mill| {
        let ids = vec![gristmill::TaskId(task)];
        let operation = Operation {
            action: Action::Cancel,
            selection: Selection::Ids(ids),
            limit: 1,
            by: "the test".to_owned(),
            note: None,
            start: gristmill::port::Start::Now,
        };
        mill.store().operate(operation).await.unwrap();
    });
}

#[test]
fn a_running_batch_that_is_cancelled_lets_go_of_its_offers() {
    for store in STORES {
        let shop = Shop::with(store, 100);
        shop.run(&["put", "--sync", "1"]);
        let mut worker = shop.start(&["work", "--pause", "60000"]);
        worker.says(" has 100 rows", 1);
        assert_eq!(shop.number("SELECT count(*) FROM offer WHERE batch = 1"), 100, "{store}");
        cancel(&shop, 1);
        // Its handler would run for a minute, and no other batch comes by.
        worker.says("the 100 offers in its hands are free again", 1);
        assert_eq!(shop.number("SELECT count(*) FROM offer WHERE batch IS NOT NULL"), 0, "{store}");
        worker.kill();
        shop.run(&["put", "--sync", "all"]);
        shop.drain(&["--lease", "500"]);
        assert_eq!(shop.number("SELECT count(*) FROM offer WHERE synced <> 1"), 0, "{store}");
    }
}

#[test]
fn what_a_cancelled_batch_had_in_hand_is_synced_by_others() {
    for store in STORES {
        let shop = Shop::with(store, 100);
        shop.run(&["put", "--sync", "1"]);
        let mut worker = shop.start(&["work", "--pause", "60000"]);
        worker.says(" has 100 rows", 1);
        worker.kill();
        cancel(&shop, 1);
        // Until the dead worker's lease is over, its batch still stands.
        shop.drain(&["--lease", "500"]);
        shop.run(&["put", "--sync", "all"]);
        shop.drain(&["--lease", "500"]);
        assert_eq!(shop.number("SELECT min(synced) FROM offer"), 1, "{store}");
        assert_eq!(shop.number("SELECT sum(synced) FROM offer"), 100, "{store}");
    }
}

#[test]
fn whoever_reads_only_the_first_line_gets_no_panic() {
    let shop = Shop::new("files://spool");
    for args in [["show", "--slots=3"], ["picture", "sync"], ["counting", "--slots=3"]] {
        let mut command = shop.command(&args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success() && said.is_empty(), "{args:?}: {said}");
    }
}
