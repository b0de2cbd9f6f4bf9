//! Taking turns on one folder: an advisory lock that a killed process frees.
//!
//! Such a lock is not fair, so whoever waits for it stands at a turnstile, which
//! is a lock on the folder itself.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use gristmill_core::{Result, StoreError, Turnstile};

use crate::errors::fault;
use crate::spool::{LOCK, Spool};

/// How often it is asked for at first, and when the wait has become long.
const OFTEN: Duration = Duration::from_micros(250);
const SELDOM: Duration = Duration::from_millis(1);
/// A wait is long after this.
const LONG: Duration = Duration::from_millis(100);

/// The folder's one lock.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    turnstile: Turnstile,
}

/// The lock while it is held.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    lock: &'a File,
    /// How long it was waited for.
    pub(crate) waited: Duration,
    /// Others had it or stood in front.
    pub(crate) crowded: bool,
}

impl Lock {
    pub(crate) fn new(file: File, folder: &Path) -> Self {
        Lock { file, turnstile: Turnstile::new(File::open(folder).ok()) }
    }

    /// Waits for the turn.
    pub(crate) fn take(&mut self, spool: &Spool, patience: Duration) -> Result<Turn<'_>> {
        let asked = Instant::now();
        let standing = self.turnstile.enter();
        let mut crowded = standing.crowded;
        loop {
            match self.file.try_lock() {
                Ok(()) => {
                    let turn = Turn { lock: &self.file, waited: asked.elapsed(), crowded };
                    // Held or not, it means nothing if others lock another one.
                    return spool.in_place().map(|()| turn);
                }
                Err(TryLockError::WouldBlock) if asked.elapsed() < patience => {
                    crowded = true;
                    let long = asked.elapsed() > LONG;
                    std::thread::sleep(if long { SELDOM } else { OFTEN });
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(StoreError::busy(format!(
                        "{} was locked for {patience:?}",
                        spool.at(LOCK).display()
                    )));
                }
                Err(TryLockError::Error(error)) => return Err(fault(&spool.at(LOCK), error)),
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Nothing can be done when even this fails; the end of the process
        // frees it.
        let _ = self.lock.unlock();
    }
}

/// Leaves the lock free for a moment after we had it, so that another process can
/// have it. Who comes back later than that has left it free already.
pub(crate) fn give_way(freed: Instant) {
    let left = OFTEN.saturating_sub(freed.elapsed());
    if !left.is_zero() {
        std::thread::sleep(left);
    }
}
