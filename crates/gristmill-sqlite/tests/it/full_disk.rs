//! A disk without room: a clear answer, nothing half-written, and work goes on
//! once there is room again.

use gristmill_conformance::small_disk::{self, SmallDisk};
use gristmill_core::{SettingsPatch, Store};
use gristmill_sqlite::SqliteStore;

use crate::support::{Place, claim, declare, done, request, sound, task};

/// Workers go on on a full disk, so that the queue makes its own room.
#[tokio::test]
async fn a_queue_on_a_full_disk_drains_itself_free() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(_disk) = SmallDisk::mount(folder.path(), 24 << 20) else {
        return;
    };
    let options = Place::new().options();
    let store = SqliteStore::open(folder.path().join("queue.db"), options).expect("a store");
    declare(&store, "q", SettingsPatch::default()).await;
    let some = || (0..50).map(|_| task(&format!("\"{}\"", "x".repeat(2_000)))).collect();
    let mut stored = 0;
    while let Ok(report) = store.put(request("q", some())).await {
        stored += report.enqueued();
    }
    assert!(stored > 1_000, "{stored}");
    // Nothing is left for others either.
    let filler = folder.path().join("filler");
    let mut other = std::fs::File::create(filler).expect("a file");
    while std::io::Write::write_all(&mut other, &[7; 4_096]).is_ok() {}
    let mut ended = 0;
    while ended < stored {
        let taken = claim(&store, "q", 500).await;
        assert!(!taken.tasks.is_empty(), "{ended} of {stored}");
        ended += done(&store, &taken).await.len();
    }
    // What was freed within the file is used again.
    assert_eq!(store.put(request("q", some())).await.expect("a put").enqueued(), 50);
    sound(&store).await;
}

#[tokio::test]
async fn a_full_disk_is_told_and_survived() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(disk) = SmallDisk::mount(folder.path(), 4 << 20) else {
        return;
    };
    let options = Place::new().options();
    let store = SqliteStore::open(folder.path().join("queue.db"), options).expect("a store");
    small_disk::a_full_disk_is_told_and_survived(&store, &disk).await;
    sound(&store).await;
    store.close().await.expect("closed");
}
