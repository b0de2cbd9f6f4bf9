//! A disk without room, or that may not be written: a clear answer, nothing
//! half-written, and work goes on once it is better.

use gristmill_core::{NewTask, Payload, SettingsPatch, Store, StoreError};

use crate::support::{Place, claim, declare, done, put, request, sound, stats, task};

/// A small file system of its own, where this process may mount one.
struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    fn mount(bytes: usize) -> Option<Self> {
        let folder = tempfile::tempdir().ok()?;
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(folder.path())
            .output()
            .ok()?;
        mounted.status.success().then_some(SmallDisk { folder })
    }
}

impl SmallDisk {
    fn remount(&self, how: &str) {
        let remount = std::process::Command::new("mount")
            .args(["-o", &format!("remount,{how}")])
            .arg(self.folder.path())
            .output()
            .unwrap();
        assert!(remount.status.success(), "{remount:?}");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.folder.path()).output();
    }
}

fn large() -> NewTask {
    NewTask::new(Payload::raw(vec![7u8; 200_000]))
}

#[tokio::test]
async fn a_full_disk_is_told_and_survived() {
    let Some(disk) = SmallDisk::mount(4 << 20) else {
        eprintln!("skipped: no file system can be mounted here");
        return;
    };
    let place = Place::new();
    let path = disk.folder.path().join("spool");
    let store = gristmill_files::FilesStore::open(&path, place.options()).expect("a store");
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1")]).await;
    let mut stored = 1;
    let refused = loop {
        match store.put(request("q", vec![large()])).await {
            Ok(report) => stored += report.enqueued() as u64,
            Err(error) => break error,
        }
        assert!(stored < 100, "the disk is never full");
    };
    assert!(matches!(refused, StoreError::DiskFull(_)), "{refused:?}");
    assert!(refused.is_retryable() && refused.wrote_nothing());
    assert_eq!(stats(&store, "q").await.ready, stored);
    // Room again: the same handle goes on.
    disk.remount("size=64m");
    assert!(put(&store, "q", vec![large()]).await[0].is_enqueued());
    let taken = claim(&store, "q", 100).await;
    assert_eq!(taken.tasks.len() as u64, stored + 1);
    done(&store, &taken).await;
    sound(&store).await;
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_folder_that_may_not_be_written_is_told_and_survived() {
    let Some(disk) = SmallDisk::mount(4 << 20) else {
        eprintln!("skipped: no file system can be mounted here");
        return;
    };
    let place = Place::new();
    let path = disk.folder.path().join("spool");
    let store = gristmill_files::FilesStore::open(&path, place.options()).expect("a store");
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1")]).await;
    store.close().await.unwrap();
    disk.remount("ro");
    let refused = gristmill_files::FilesStore::open(&path, place.options()).expect_err("read-only");
    let named = matches!(&refused, StoreError::Permission(said) if said.contains("spool"));
    assert!(named, "{refused:?}");
    disk.remount("rw");
    let store = gristmill_files::FilesStore::open(&path, place.options()).expect("a store");
    assert_eq!(claim(&store, "q", 10).await.tasks.len(), 1);
    store.close().await.unwrap();
}
