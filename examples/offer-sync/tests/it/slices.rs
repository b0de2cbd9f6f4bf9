//! Real workers: which rows their batches take.

use std::collections::BTreeSet;

use crate::shop::{STORES, Shop, Taken};

/// Pairs of batches that ran at the same time and took a row in common.
fn overlaps(taken: &[Taken]) -> usize {
    let pairs = taken.iter().enumerate().flat_map(|(n, one)| {
        taken.iter().skip(n + 1).filter(move |two| {
            let together = one.began < two.ended && two.began < one.ended;
            together && one.first <= two.last && two.first <= one.last
        })
    });
    pairs.count()
}

#[test]
fn three_batches_side_by_side_take_three_slices() {
    for (store, by) in STORES.into_iter().flat_map(|s| [(s, "count"), (s, "slot")]) {
        let shop = Shop::new(store);
        shop.run(&["put", "--by", by, "--sync", "3"]);
        shop.run(&["work", "--by", by, "--drain", "--processors", "3", "--meet", "3"]);
        let taken = shop.taken("sync");
        let slices: BTreeSet<(i64, i64)> = taken.iter().map(|t| (t.first, t.last)).collect();
        assert_eq!(slices, BTreeSet::from([(1, 100), (101, 200), (201, 300)]), "{store} by {by}");
        let numbers: BTreeSet<Option<u32>> = taken.iter().map(|t| t.number).collect();
        assert_eq!(numbers, BTreeSet::from([Some(0), Some(1), Some(2)]));
        assert_eq!(shop.number("SELECT count(*) FROM offer WHERE synced = 1"), 300);
        assert_eq!(shop.number("SELECT max(synced) FROM offer"), 1);
    }
}

#[test]
fn slots_never_overlap_however_batches_come_and_go() {
    for store in STORES {
        let shop = Shop::new(store);
        shop.run(&["put", "--by", "slot", "--sync", "24"]);
        // Several processes, so that nothing but the store keeps them apart.
        shop.together(3, &["work", "--by", "slot", "--drain", "--processors", "2"]);
        let taken = shop.taken("sync");
        assert_eq!(taken.len(), 24, "{store}");
        assert_eq!(overlaps(&taken), 0, "{store}: {taken:?}");
        assert!(taken.iter().all(|taken| taken.number < Some(3)), "{taken:?}");
    }
}

#[test]
fn processes_are_checked_in_slices() {
    for store in STORES {
        let shop = Shop::new(store);
        shop.run(&["put", "--check", "3", "--batch-size", "50"]);
        shop.run(&["work", "--drain", "--meet", "3"]);
        let slices: BTreeSet<(i64, i64)> =
            shop.taken("check").iter().map(|t| (t.first, t.last)).collect();
        assert_eq!(slices, BTreeSet::from([(1, 50), (51, 100), (101, 150)]), "{store}");
        assert_eq!(shop.number("SELECT sum(checks) FROM process"), 150);
    }
}

#[test]
fn listed_offers_are_written_whatever_runs_beside() {
    for store in STORES {
        let shop = Shop::new(store);
        shop.run(&["put", "--sync", "3", "--upsert", "5=111,2000=222"]);
        shop.run(&["put", "--upsert", "6=333"]);
        shop.run(&["work", "--drain", "--processors", "3"]);
        assert!(shop.run(&["show"]).contains("upsert       -      2  of 5-2000"));
        let taken = shop.taken("upsert");
        assert_eq!(taken.len(), 2, "{store}");
        assert!(taken.iter().all(|taken| taken.number.is_none()), "{taken:?}");
        assert_eq!(shop.number("SELECT price FROM offer WHERE ean = 5"), 111);
        assert_eq!(shop.number("SELECT price FROM offer WHERE ean = 6"), 333);
        assert_eq!(shop.number("SELECT price FROM offer WHERE ean = 2000"), 222);
    }
}
