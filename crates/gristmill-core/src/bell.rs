//! A bell on a file that several processes have open: who has committed rings it,
//! and who waits for work in another process hears it and looks.
//!
//! Ringing is opening the file and closing it again, which writes nothing: it
//! works without room on the disk and without the right to write, waits for
//! nobody, and leaves nothing behind when a process is killed. Linux tells whoever
//! watches the file (inotify). It is a hint: where nobody can be told (another
//! system, a file system over the network, too many watches) the look that is
//! taken now and then finds the same, only later.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::thread::JoinHandle;

/// A bell. Every process of a store makes one on the same file.
#[derive(Debug, Clone)]
pub struct Bell {
    path: PathBuf,
}

impl Bell {
    /// A bell on a file that stays where it is while a process has the store open,
    /// and that nobody opens only to read as a part of its daily work.
    #[must_use]
    pub fn on(path: impl Into<PathBuf>) -> Self {
        Bell { path: path.into() }
    }

    /// Work may have become claimable, and what says so is committed.
    pub fn ring(&self) {
        // Without waiting, whatever lies there. One that cannot be opened cannot
        // be rung; others look by themselves.
        let _ = OpenOptions::new().read(true).custom_flags(WITHOUT_WAITING).open(&self.path);
    }

    /// Calls `heard` after each ring, also of this process, until the answer is
    /// dropped. Several rings may be heard as one. None where nothing can be heard.
    #[must_use]
    pub fn listen(&self, heard: impl FnMut() + Send + 'static) -> Option<Listening> {
        match ear::listen(&self.path, heard) {
            Ok(listening) => Some(listening),
            Err(error) => {
                let path = self.path.display();
                tracing::debug!(%path, %error, "other processes' commits are looked for only");
                None
            }
        }
    }
}

/// Someone listens; dropped, it does no more.
#[derive(Debug)]
pub struct Listening {
    /// Its thread ends when this is closed.
    _near: std::io::PipeWriter,
    _thread: JoinHandle<()>,
}

#[cfg(target_os = "linux")]
const WITHOUT_WAITING: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
#[cfg(not(target_os = "linux"))]
const WITHOUT_WAITING: i32 = 0;

#[cfg(target_os = "linux")]
mod ear {
    use std::io::Result;
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd, OwnedFd};
    use std::path::Path;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
    use rustix::io::Errno;

    use super::Listening;

    /// Room for the events of one look; what does not fit is read with the next.
    const EVENTS: usize = 1024;

    pub(super) fn listen(path: &Path, heard: impl FnMut() + Send + 'static) -> Result<Listening> {
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        inotify::add_watch(&watch, path, WatchFlags::CLOSE_NOWRITE)?;
        let (far, near) = std::io::pipe()?;
        let thread = std::thread::Builder::new()
            .name("gristmill-bell".to_owned())
            .spawn(move || attend(&watch, &far, heard))?;
        Ok(Listening { _near: near, _thread: thread })
    }

    /// Hears rings until the near end is closed, or nothing more can come.
    fn attend(watch: &OwnedFd, far: &impl AsFd, mut heard: impl FnMut()) {
        loop {
            let mut both =
                [PollFd::new(watch, PollFlags::IN), PollFd::new(far, PollFlags::empty())];
            match poll(&mut both, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            let [rung, closed] = both;
            if !closed.revents().is_empty() {
                return;
            }
            if rung.revents().is_empty() {
                continue;
            }
            let is_over = read_all(watch);
            heard();
            if is_over {
                return;
            }
        }
    }

    /// Takes what was told; whether the file is gone, so that no more will be.
    fn read_all(watch: &OwnedFd) -> bool {
        let mut room = [MaybeUninit::uninit(); EVENTS];
        let mut events = inotify::Reader::new(watch, &mut room);
        loop {
            match events.next() {
                Ok(event) if event.events().contains(ReadFlags::IGNORED) => return true,
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => return false,
                Err(_) => return true,
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod ear {
    use std::io::{Error, ErrorKind, Result};
    use std::path::Path;

    use super::Listening;

    pub(super) fn listen(_: &Path, _: impl FnMut() + Send + 'static) -> Result<Listening> {
        Err(Error::new(ErrorKind::Unsupported, "this system tells nobody of it"))
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// A file of this test's own.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let name = format!("gristmill-bell-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::write(&path, "").unwrap();
            Place(path)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_ring_is_heard_and_changes_nothing() {
        let place = Place::new("rung");
        let bell = Bell::on(&place.0);
        let (hears, heard) = channel();
        let listening = bell.listen(move || hears.send(()).unwrap()).expect("it listens");
        let before = std::fs::metadata(&place.0).unwrap();
        bell.ring();
        heard.recv_timeout(PATIENCE).expect("it was rung");
        let after = std::fs::metadata(&place.0).unwrap();
        assert_eq!(before.modified().unwrap(), after.modified().unwrap());
        assert_eq!(before.accessed().unwrap(), after.accessed().unwrap());
        // The thread lets go of what it calls, so it has ended.
        drop(listening);
        assert!(heard.recv_timeout(PATIENCE).is_err());
        bell.ring();
    }

    #[test]
    fn a_bell_that_is_gone_is_rung_in_vain() {
        let place = Place::new("gone");
        let bell = Bell::on(&place.0);
        let (hears, heard) = channel();
        let _listening = bell.listen(move || hears.send(()).unwrap()).expect("it listens");
        std::fs::remove_file(&place.0).unwrap();
        // Told once, and then there is nothing to listen to.
        heard.recv_timeout(PATIENCE).expect("it was told");
        assert!(heard.recv_timeout(PATIENCE).is_err());
        bell.ring();
        assert!(bell.listen(|| {}).is_none());
    }
}
