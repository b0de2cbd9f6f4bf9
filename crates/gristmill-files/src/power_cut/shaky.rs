//! A disk whose steps fail when a test says so, and that knows what a power cut
//! would leave: what was synced, and nothing else.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::disk::{Disk, Step};

/// How a step fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The device reports an error; what was to be synced never arrives, and
    /// the next sync says that it did.
    Io,
    /// There is no room; half of what was to be written is.
    Full,
    /// The process is killed: it does nothing from here on.
    Kill,
}

/// What a power cut leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Only what was synced.
    Synced,
    /// All that may have arrived without.
    All,
    /// Only what was synced, but for the bytes of a file that has another name by now:
    /// those arrived without.
    Bytes,
}

/// What stands on the disk, seen by all who have it.
#[derive(Debug, Default)]
pub(super) struct World {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    last: u64,
    folders: HashSet<u64>,
    /// Names as everyone sees them.
    now: BTreeMap<PathBuf, u64>,
    /// Names as a power cut leaves them, and the bytes.
    names: BTreeMap<PathBuf, u64>,
    bytes: HashMap<u64, Vec<u8>>,
    /// What the kernel takes for written and is not.
    lost: HashMap<u64, Vec<Range<u64>>>,
    /// Whose step fails, how many are left until then, and how.
    plan: Option<(usize, usize, Fault)>,
    steps: usize,
    dead: HashSet<usize>,
    /// What failed.
    failed: Option<String>,
}

impl World {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no test panicked here")
    }

    /// From now on: the `nth` step of this handle fails.
    pub(super) fn arm(&self, handle: usize, nth: usize, fault: Fault) {
        let mut inner = self.lock();
        inner.steps = 0;
        inner.plan = Some((handle, nth, fault));
    }

    /// How many steps were taken since.
    pub(super) fn steps(&self) -> usize {
        self.lock().steps
    }

    /// What failed, if anything did.
    pub(super) fn failed(&self) -> Option<String> {
        self.lock().failed.clone()
    }

    /// Writes what a power cut leaves of a folder to another one.
    pub(super) fn cut(&self, from: &Path, to: &Path, left: Left) {
        let inner = self.lock();
        std::fs::create_dir(to).expect("a folder");
        let names = if left == Left::All { &inner.now } else { &inner.names };
        for (path, file) in names {
            let Ok(name) = path.strip_prefix(from) else { continue };
            if name.as_os_str().is_empty() {
                continue;
            }
            let target = to.join(name);
            if inner.folders.contains(file) {
                std::fs::create_dir(target).expect("a folder");
            } else if target.parent().is_some_and(Path::exists) {
                let now = match left {
                    Left::Synced => None,
                    Left::All => Some(path),
                    Left::Bytes => {
                        let mut others = inner.now.iter().filter(|(now, _)| *now != path);
                        others.find(|(_, other)| *other == file).map(|(now, _)| now)
                    }
                };
                let bytes = match now {
                    Some(path) => inner.seen(path, *file),
                    None => inner.bytes.get(file).cloned().unwrap_or_default(),
                };
                std::fs::write(target, bytes).expect("a file");
            }
        }
    }
}

impl Inner {
    fn new_file(&mut self, path: &Path) -> u64 {
        if let Some(known) = self.now.get(path) {
            return *known;
        }
        self.last += 1;
        self.now.insert(path.to_owned(), self.last);
        self.last
    }

    /// A file's bytes without what was lost.
    fn seen(&self, path: &Path, file: u64) -> Vec<u8> {
        let mut bytes = std::fs::read(path).unwrap_or_default();
        for range in self.lost.get(&file).into_iter().flatten() {
            for at in range.clone() {
                if let Some(byte) = bytes.get_mut(usize::try_from(at).expect("small")) {
                    *byte = 0;
                }
            }
        }
        bytes
    }

    fn done(&mut self, step: Step<'_>) {
        match step {
            Step::MakeFolder(path) => {
                let folder = self.new_file(path);
                self.folders.insert(folder);
            }
            Step::Make(path) => {
                let file = self.new_file(path);
                self.lost.remove(&file);
            }
            Step::Write { path, at, bytes, .. } => {
                let file = self.new_file(path);
                let written = at..at + bytes.len() as u64;
                if let Some(lost) = self.lost.remove(&file) {
                    let left = lost.into_iter().flat_map(|range| {
                        [
                            range.start..range.end.min(written.start),
                            range.start.max(written.end)..range.end,
                        ]
                    });
                    self.lost.insert(file, left.filter(|range| !range.is_empty()).collect());
                }
            }
            Step::Shorten => {}
            Step::Rename(from, to) => {
                if let Some(file) = self.now.remove(from) {
                    self.now.insert(to.to_owned(), file);
                }
            }
            Step::Unlink(path) => {
                self.now.remove(path);
            }
            Step::SyncFile(path) => {
                let file = self.new_file(path);
                let bytes = self.seen(path, file);
                self.bytes.insert(file, bytes);
            }
            Step::SyncFolder(folder) => {
                self.names.retain(|path, _| path.parent() != Some(folder));
                let within = self.now.iter().filter(|(path, _)| path.parent() == Some(folder));
                self.names.extend(within.map(|(path, file)| (path.clone(), *file)));
            }
            Step::SyncAll => {
                for (path, file) in self.now.clone() {
                    let bytes = self.seen(&path, file);
                    self.bytes.insert(file, bytes);
                }
                self.names = self.now.clone();
            }
        }
    }

    /// What a failed sync was about never arrives.
    fn lose(&mut self, step: Step<'_>) {
        let files: Vec<(PathBuf, u64)> = match step {
            Step::SyncFile(path) => vec![(path.to_owned(), self.new_file(path))],
            Step::SyncAll => self.now.clone().into_iter().collect(),
            _ => return,
        };
        for (path, file) in files {
            let bytes = std::fs::read(path).unwrap_or_default();
            // What is the same on the disk is safe; behind it there may be room.
            let safe = self.bytes.get(&file).map(Vec::as_slice).unwrap_or_default();
            let from =
                safe.iter().zip(&bytes).take_while(|(safe, byte)| safe == byte).count() as u64;
            self.lost.entry(file).or_default().push(from..bytes.len() as u64);
        }
    }
}

/// The disk as one handle has it.
#[derive(Debug)]
pub(super) struct Shaky {
    pub(super) world: Arc<World>,
    pub(super) handle: usize,
}

impl Disk for Shaky {
    fn step(&self, step: Step<'_>, act: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        let mut inner = self.world.lock();
        if inner.dead.contains(&self.handle) {
            return Err(io::Error::other("this process was killed"));
        }
        let planned = inner.plan.filter(|(handle, ..)| *handle == self.handle);
        if let Some((_, nth, fault)) = planned {
            inner.steps += 1;
            if inner.steps == nth + 1 {
                inner.failed = Some(format!("{fault:?} at step {nth}: {step:?}"));
                let partial = matches!(fault, Fault::Full | Fault::Kill);
                if let (Step::Write { file, at, bytes, .. }, true) = (step, partial) {
                    let half = bytes.get(..bytes.len() / 2).unwrap_or_default();
                    file.write_all_at(half, at)?;
                    inner.done(step);
                }
                return Err(match fault {
                    Fault::Io => {
                        inner.lose(step);
                        io::Error::from_raw_os_error(5)
                    }
                    Fault::Full => {
                        inner.lose(step);
                        io::Error::from_raw_os_error(28)
                    }
                    Fault::Kill => {
                        inner.dead.insert(self.handle);
                        io::Error::other("killed")
                    }
                });
            }
        }
        act()?;
        inner.done(step);
        Ok(())
    }
}
