//! Slots under many claimers: never twice, never too many, free after a lease.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gristmill_core::{ClaimRequest, NewTask, SettingsPatch};

use crate::support::{asking, database_within, declare, done, put, stats, store, task};

/// Sixteen claimers of four stores, as four processes have them, on one group
/// with five slots. Every tenth claim is left to its lease.
#[tokio::test(flavor = "multi_thread")]
async fn live_slots_never_repeat_and_stay_below_their_number() {
    const SLOTS: u32 = 5;
    let database = database_within().await;
    let main = store(&database.url()).await;
    let settings = SettingsPatch {
        slots: Some(Some(SLOTS)),
        max_attempts: Some(None),
        ..SettingsPatch::default()
    };
    declare(&main, "q", settings).await;
    let grouped = |n: u32| NewTask { group: Some("g".to_owned()), ..task(&n.to_string()) };
    put(&main, "q", (0..150).map(grouped).collect()).await;
    // Who holds which slot, as the holders see it: between claim and settle.
    let held: Arc<Mutex<HashMap<u32, i64>>> = Arc::default();
    let mut claimers = Vec::new();
    for _ in 0..4 {
        let store = store(&database.url()).await;
        for claimer in 0..4u64 {
            let (store, held) = (store.clone(), held.clone());
            claimers.push(tokio::spawn(async move {
                let mut taken_so_far = claimer;
                loop {
                    let lease = Some(Duration::from_secs(2));
                    let request = ClaimRequest { lease, ..asking("q", 4) };
                    let taken = gristmill_core::Store::claim(&*store, request).await.unwrap();
                    let Some(first) = taken.tasks.first() else {
                        if stats(&store, "q").await.total() == 0 {
                            return;
                        }
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        continue;
                    };
                    assert_eq!(taken.tasks.len(), 1, "one at a time");
                    let slot = first.slot.expect("a slot");
                    assert!(slot < SLOTS, "{slot}");
                    let before = held.lock().unwrap().insert(slot, first.id.0);
                    assert_eq!(before, None, "slot {slot} is held by two");
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    held.lock().unwrap().remove(&slot);
                    taken_so_far += 1;
                    if taken_so_far % 10 == 0 {
                        // Left alone, as a killed claimer leaves it.
                        continue;
                    }
                    done(&store, &taken).await;
                }
            }));
        }
    }
    for claimer in claimers {
        claimer.await.unwrap();
    }
    let counters = stats(&main, "q").await.counters;
    assert_eq!(counters.done, 150);
    assert!(counters.expired > 0, "some slots came back by their lease: {counters:?}");
}
