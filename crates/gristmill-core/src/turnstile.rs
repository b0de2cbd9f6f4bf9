//! Turns at a lock that several processes want.
//!
//! Such a lock goes to whoever asks at the right moment, and that is nearly
//! always who has just given it back: a process that writes without a pause keeps
//! all others out for seconds. So whoever wants it stands at the turnstile first,
//! one at a time, and asks for the lock from there. Who gives the lock back and
//! wants it again finds somebody standing there, and comes after.

use std::fs::{File, TryLockError};
use std::time::{Duration, Instant};

/// How often it is asked for.
const OFTEN: Duration = Duration::from_micros(250);
/// Who stands there for longer may be a process that was stopped: it is passed
/// by, and turns are a matter of luck until it goes on.
const STUCK: Duration = Duration::from_millis(250);
/// How long it is not waited for again then.
const PASSED_BY: Duration = Duration::from_secs(1);

/// Where those stand who want the lock. It only gives turns: the lock itself
/// keeps everything right, also beside programs that know no turnstile.
#[derive(Debug, Default)]
pub struct Turnstile {
    /// Its advisory lock is the turnstile; a killed process frees it.
    file: Option<File>,
    stuck: Option<Instant>,
}

/// Standing there; dropped, the next one can.
#[derive(Debug)]
pub struct Standing<'a> {
    file: Option<&'a File>,
    /// Somebody else stood there before.
    pub crowded: bool,
}

impl Turnstile {
    /// A turnstile on a file or folder that all have open and nobody locks in
    /// another way. Without one nobody waits here.
    #[must_use]
    pub const fn new(file: Option<File>) -> Self {
        Turnstile { file, stuck: None }
    }

    /// Waits until nobody else stands there, or has for too long.
    pub fn enter(&mut self) -> Standing<'_> {
        self.enter_or_wait(|| std::thread::sleep(OFTEN))
    }

    fn enter_or_wait(&mut self, wait: impl Fn()) -> Standing<'_> {
        let patience = match self.stuck {
            Some(since) if since.elapsed() < PASSED_BY => Duration::ZERO,
            _ => STUCK,
        };
        let asked = Instant::now();
        let mut crowded = false;
        let mut standing = false;
        if let Some(file) = &self.file {
            loop {
                match file.try_lock() {
                    Ok(()) => {
                        standing = true;
                        break;
                    }
                    Err(TryLockError::WouldBlock) => {
                        crowded = true;
                        if asked.elapsed() >= patience {
                            break;
                        }
                        wait();
                    }
                    // A file system without such locks has no turnstile.
                    Err(TryLockError::Error(_)) => break,
                }
            }
        }
        if standing {
            self.stuck = None;
        } else if crowded && !patience.is_zero() {
            self.stuck = Some(Instant::now());
        }
        Standing { file: self.file.as_ref().filter(|_| standing), crowded }
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.file {
            // Nothing can be done when even this fails; others pass by.
            let _ = file.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of this test's own: another run of it would stand at the same place.
    struct Place(std::path::PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let name = format!("gristmill-turnstile-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir(&path).unwrap();
            Place(path)
        }

        fn turnstile(&self) -> Turnstile {
            Turnstile::new(Some(File::open(&self.0).unwrap()))
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir(&self.0);
        }
    }

    #[test]
    fn one_stands_there_at_a_time() {
        let place = Place::new("turns");
        let (mut one, mut two) = (place.turnstile(), place.turnstile());
        let standing = one.enter();
        assert!(!standing.crowded);
        let (waits, is_waiting) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(move || {
                let standing = two.enter_or_wait(|| {
                    let _ = waits.send(());
                    std::thread::yield_now();
                });
                (standing.crowded, standing.file.is_some())
            });
            is_waiting.recv().unwrap();
            drop(standing);
            assert_eq!(waiting.join().unwrap(), (true, true));
        });
        assert!(!place.turnstile().enter().crowded);
    }

    #[test]
    fn who_stands_there_for_ever_is_passed_by() {
        let place = Place::new("stuck");
        let (mut one, mut two) = (place.turnstile(), place.turnstile());
        let stopped = one.enter();
        assert!(two.enter().file.is_none());
        let start = Instant::now();
        assert!(two.enter().crowded);
        assert!(start.elapsed() < STUCK, "it is not waited for each time");
        drop(stopped);
        assert!(two.enter().file.is_some());
    }

    #[test]
    fn without_a_file_nobody_waits() {
        assert!(!Turnstile::default().enter().crowded);
    }
}
