//! A disk without room: a clear answer, nothing half-written, and work goes on
//! once there is room again. For stores that keep files.

use std::path::{Path, PathBuf};
use std::process::Command;

use gristmill_core::{
    ClaimRequest, Declaration, NewTask, Outcome, Payload, PutRequest, Store, StoreError, Token,
};

use crate::shape::{name, worker};
use crate::short::{settlements, task};

/// A small file system of its own, gone with the value.
#[derive(Debug)]
pub struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    /// Mounts one of this size on the folder, where this process may.
    #[must_use]
    pub fn mount(folder: &Path, bytes: usize) -> Option<Self> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(folder)
            .output()
            .ok()?;
        if !mounted.status.success() {
            eprintln!("skipped: no file system can be mounted here");
            return None;
        }
        Some(SmallDisk { folder: folder.to_owned() })
    }

    /// Changes how it is mounted: `ro`, `size=64m`.
    pub fn remount(&self, how: &str) {
        let remount = Command::new("mount")
            .args(["-o", &format!("remount,{how}")])
            .arg(&self.folder)
            .output()
            .expect("mount runs");
        assert!(remount.status.success(), "{remount:?}");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.folder).output();
    }
}

fn large() -> PutRequest {
    let task = NewTask::new(Payload::raw(vec![7u8; 200_000]));
    PutRequest { queue: name("q"), tasks: vec![task], atomic: false }
}

/// Fills the disk under a store, makes room, and goes on with the same handle.
pub async fn a_full_disk_is_told_and_survived(store: &dyn Store, disk: &SmallDisk) {
    store.declare_queue(Declaration::new(name("q"))).await.expect("a declaration");
    let small = PutRequest { tasks: vec![task("1")], ..large() };
    assert_eq!(store.put(small).await.expect("a put").enqueued(), 1);
    let mut stored = 1;
    let refused = loop {
        match store.put(large()).await {
            Ok(report) => stored += report.enqueued(),
            Err(error) => break error,
        }
        assert!(stored < 100, "the disk is never full");
    };
    assert!(matches!(refused, StoreError::DiskFull(_)), "{refused:?}");
    assert!(refused.is_retryable() && refused.wrote_nothing());
    let ready = store.stats().await.expect("stats")[0].ready;
    assert_eq!(ready, stored as u64);

    disk.remount("size=64m");
    assert_eq!(store.put(large()).await.expect("a put").enqueued(), 1);
    let request = ClaimRequest {
        queue: name("q"),
        max: 100,
        lease: None,
        worker: worker("w"),
        source: None,
        token: Token::from_bytes([7; 16]),
    };
    let taken = store.claim(request).await.expect("a claim");
    assert_eq!(taken.tasks.len(), stored + 1);
    let answers = store.settle(settlements(&taken, &Outcome::Done)).await.expect("settled");
    assert!(answers.iter().all(gristmill_core::SettleAnswer::is_recorded), "{answers:?}");
}
