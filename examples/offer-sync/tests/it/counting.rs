//! The script: the table of three workers, the trap of the bare count, and what
//! prevents it.

use gristmill::QueueName;
use gristmill::port::Settings;

use crate::shop::{STORES, Shop};

/// The table, as the README has it.
const TABLE: &str = "\
| Worker 1 | 0 | 0 | EANs 1-100 |
| Worker 2 | 1 | 100 | EANs 101-200 |
| Worker 3 | 2 | 200 | EANs 201-300 |
";

#[test]
fn the_script_shows_the_table_on_both_stores() {
    for store in STORES {
        let said = Shop::new(store).run(&["counting"]);
        assert_eq!(said.matches(TABLE).count(), 2, "by count and by slot, {store}: {said}");
    }
}

#[test]
fn the_bare_count_overlaps_and_a_slot_does_not() {
    for store in STORES {
        let said = Shop::new(store).run(&["counting"]);
        let (by_count, by_slot) = said.split_once("The same with slots").unwrap();
        assert!(by_count.contains("| Worker 4 | 2 | 200 | EANs 201-300 |"), "{said}");
        assert!(by_count.contains("the same rows twice"), "{said}");
        assert!(by_slot.contains("A fourth while three run: 0 tasks"), "{said}");
        assert!(by_slot.contains("| Worker 4 | 0 | 0 | EANs 1-100 |"), "{said}");
    }
}

#[test]
fn listed_offers_are_told_neither_and_processes_are_sliced() {
    for store in STORES {
        let said = Shop::new(store).run(&["counting"]);
        assert!(said.contains("worker 3: count None, slot None, EAN 3"), "{said}");
        assert!(said.contains("worker 3: offset 100, processes 101-150"), "{said}");
    }
}

#[test]
fn the_script_cleans_up_and_leaves_others_alone() {
    for store in STORES {
        let shop = Shop::new(store);
        shop.run(&["put", "--by", "count", "--sync", "2", "--upsert", "7=100"]);
        let before = shop.run(&["show"]);
        let (name, settings) = (QueueName::new("offer.sync.batch").unwrap(), settings(&shop));
        assert!(settings.count && settings.slots.is_none(), "{store}: {settings:?}");
        assert!(before.contains("offer.sync.batch       2 ready, 0 running"), "{before}");
        assert!(shop.run(&["counting"]).contains("cleaned up"));
        assert_eq!(shop.run(&["show"]), before);
        assert_eq!(self::settings(&shop), settings, "{store}: it counts as it did before");
        // Nor does it leave anything when it comes to no end: nobody can claim here.
        shop.mill(async |mill| mill.store().pause_queue(&name, true, "the test").await.unwrap());
        let broken = shop.command(&["counting"]).output().unwrap();
        assert!(!broken.status.success(), "{broken:?}");
        assert_eq!((shop.run(&["show"]), self::settings(&shop)), (before, settings), "{store}");
        shop.mill(async |mill| mill.store().pause_queue(&name, false, "the test").await.unwrap());
        shop.run(&["work", "--by", "count", "--drain"]);
        assert_eq!(shop.taken("sync").len(), 2);
    }
}

/// Of the queue of syncs.
fn settings(shop: &Shop) -> Settings {
    let queues = shop.mill(async |mill| mill.inspect().queues().await.unwrap());
    let sync = queues.into_iter().find(|queue| queue.name.as_str() == "offer.sync.batch");
    sync.unwrap().settings
}

#[test]
fn the_queue_part_is_short() {
    let parts = [include_str!("../../src/queue.rs"), include_str!("../../src/work.rs")];
    let lines: usize = parts.iter().map(|part| part.lines().count()).sum();
    assert!(lines < 120, "{lines} lines");
}
