//! Room kept for workers. A disk that puts have filled has none for claims and
//! settlements either, and the queue could never drain itself free. So a file
//! beside the store holds some, which is given back when a claim or a settlement
//! finds the disk full; puts are refused from then on, until it could be taken
//! again or enough is free within the store's own file.

use std::fs::{File, TryLockError};
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
        let mut file = File::options().create(true).truncate(false).write(true).open(&aside)?;
        // One process at a time: what another is about to take is not missing.
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if self.path.exists() {
            // It was taken between our look and our lock: what was opened is it, or
            // nothing that anybody needs.
            let _ = std::fs::remove_file(&aside);
            return Ok(());
        }
        let zeros = [0u8; 1 << 16];
        let written =
            file.set_len(0).and_then(|()| (0..ROOM >> 16).try_for_each(|_| file.write_all(&zeros)));
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

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn those_who_take_it_at_once_all_have_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("queue.db");
        File::create(&store).unwrap().set_len(ROOM).unwrap();
        for _ in 0..5 {
            let start = Barrier::new(4);
            let keep = || {
                let mut reserve = Reserve::new(&store);
                start.wait();
                reserve.keep();
                reserve.is_short()
            };
            let short: Vec<bool> = std::thread::scope(|scope| {
                let keepers: Vec<_> = (0..4).map(|_| scope.spawn(keep)).collect();
                keepers.into_iter().map(|keeper| keeper.join().unwrap()).collect()
            });
            assert_eq!(short, [false; 4]);
            let mut reserve = Reserve::new(&store);
            assert_eq!(std::fs::metadata(&reserve.path).unwrap().len(), ROOM);
            assert!(reserve.give_back());
        }
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}
