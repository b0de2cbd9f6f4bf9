//! Room kept for workers. A disk that puts have filled has none for claims and
//! settlements either, and the queue could never drain itself free. So a file
//! beside the store holds some, which is given back when a claim or a settlement
//! finds the disk full; puts are refused from then on, until it could be taken
//! again or enough is free within the store's own file.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How much: the log, which must be written back before it is begun anew, and
/// some claims and settlements meanwhile.
pub(crate) const ROOM: u64 = 8 << 20;
/// How often it is looked after.
const LOOK: Duration = Duration::from_secs(1);

/// The file that holds it.
#[derive(Debug)]
pub(crate) struct Reserve {
    store: PathBuf,
    path: PathBuf,
    looked: Option<Instant>,
    short: bool,
}

impl Reserve {
    pub(crate) fn new(store: &Path) -> Self {
        let mut path = store.as_os_str().to_owned();
        path.push("-room");
        Reserve { store: store.to_owned(), path: path.into(), looked: None, short: false }
    }

    /// Whether it was given back and could not be taken again.
    pub(crate) const fn is_short(&self) -> bool {
        self.short
    }

    /// Takes it if it is missing, once the store is so large that it matters.
    /// Whether it is still there is looked at now and then.
    pub(crate) fn keep(&mut self) {
        let large = || std::fs::metadata(&self.store).is_ok_and(|store| store.len() >= ROOM);
        if self.looked.is_some_and(|at| at.elapsed() < LOOK) || !large() {
            return;
        }
        self.looked = Some(Instant::now());
        self.short = !self.path.exists() && self.take().is_err();
    }

    fn take(&self) -> std::io::Result<()> {
        // Written under another name: half of it is no reserve.
        let aside = self.path.with_extension("room-new");
        let written = File::create(&aside).and_then(|mut file| {
            let zeros = [0u8; 1 << 16];
            (0..ROOM >> 16).try_for_each(|_| file.write_all(&zeros))
        });
        written.and_then(|()| std::fs::rename(&aside, &self.path)).inspect_err(|_| {
            let _ = std::fs::remove_file(&aside);
        })
    }

    /// Gives it back; returns whether there was one.
    pub(crate) fn give_back(&mut self) -> bool {
        let given = std::fs::remove_file(&self.path).is_ok();
        if given {
            tracing::warn!("the disk is full: workers go on with what was kept for them");
            self.short = true;
            self.looked = Some(Instant::now());
        }
        given
    }
}
