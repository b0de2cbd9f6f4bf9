//! A disk without room: a clear answer, nothing half-written, and work goes on
//! once there is room again.

use gristmill_conformance::small_disk::{self, SmallDisk};
use gristmill_core::Store;
use gristmill_sqlite::SqliteStore;

use crate::support::{Place, sound};

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
