//! The intent: what was decided, in order, before it is done to the files.
//!
//! A frame is synced before its calls are answered, so that is when they come
//! true; the files follow. Whoever opens the folder first after a crash rolls
//! forward from the last checkpoint. Other processes read on here to know what
//! became of the tasks. It goes on in a new segment after each checkpoint.
//!
//! A segment has room before it has frames: zeros, and the intent ends where they
//! begin.

use std::fs::File;
use std::io::{BufReader, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use gristmill_core::{Result, StoreError};

use crate::disk::{Appending, open_known, open_own};
use crate::errors::{At, corrupt, fault};
use crate::frame::{self, Entry, Found, Seal};
use crate::segment::{self, Next};
use crate::spool::{CORRUPT, INTENT, Spool, which};

/// Segments kept behind the checkpoint, for processes that are behind.
const KEPT: u64 = 4;

/// A place in the intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

/// The intent as one process knows it.
#[derive(Debug)]
pub(crate) struct Intent {
    spool: Spool,
    path: PathBuf,
    file: File,
    applied: File,
    /// Everything before it is known here; the next frame begins there.
    at: Position,
    /// Something was passed over.
    damaged: bool,
    /// There is nothing but room behind the last frame: so it is once a segment was
    /// read to its end, also in those that follow, because frames are written in
    /// order and looking at all the room takes long. Before, a power cut may have left
    /// the second of two without the first.
    known_end: bool,
    /// Up to here this process has synced it.
    synced: Option<Position>,
}

/// How far the frames have come, as the last who wrote one said.
#[derive(Debug, Clone, Copy)]
struct Progress {
    /// Every frame before it is done to the files.
    applied: Position,
    /// Every frame before it is on the disk.
    synced: Option<Position>,
}

fn applied_path(spool: &Spool) -> PathBuf {
    spool.at(INTENT).join("applied")
}

impl Intent {
    /// Opens the intent at the beginning of a segment.
    pub(crate) fn open(spool: &Spool, segment: u64) -> Result<Self> {
        let path = segment::path(spool, segment);
        let file = open_known(&path).at(&path)?;
        let applied = open_own(&applied_path(spool)).at(&applied_path(spool))?;
        let at = Position { segment, offset: 0 };
        let spool = spool.clone();
        Ok(Intent {
            spool,
            path,
            file,
            applied,
            at,
            damaged: false,
            known_end: false,
            synced: None,
        })
    }

    pub(crate) fn position(&self) -> Position {
        self.at
    }

    /// That what is written here is found by others.
    ///
    /// # Errors
    /// When the folder or the segment was moved, deleted or replaced.
    pub(crate) fn in_place(&self) -> Result<()> {
        self.spool.in_place()?;
        let found = std::fs::metadata(&self.path).ok().map(|found| which(&found));
        let own = self.file.metadata().ok().map(|own| which(&own));
        if found == own { Ok(()) } else { Err(self.spool.moved()) }
    }

    /// Whether another process wrote since.
    pub(crate) fn is_behind(&self) -> Result<bool> {
        let mut first = [0u8];
        let read = self.file.read_at(&mut first, self.at.offset).at(&self.path)?;
        Ok(read == 1 && first != [0])
    }

    fn seal(&self) -> Seal {
        let Position { segment, offset } = self.at;
        Seal { secret: self.spool.secret, segment, offset }
    }

    /// Reads on to the end, following new segments. The lock is held: what is
    /// no whole frame at the end was left by a process that was killed before
    /// anyone was answered, and is cut off. What is damaged is kept in
    /// `corrupt/`, and the whole frames behind it are read: each says how things
    /// are, whatever came before.
    pub(crate) fn read_on(&mut self, mut each: impl FnMut(Vec<Entry>) -> Result<()>) -> Result<()> {
        loop {
            let length = self.file.metadata().at(&self.path)?.len();
            self.file.seek(SeekFrom::Start(self.at.offset)).at(&self.path)?;
            let mut reader = BufReader::with_capacity(1 << 16, &self.file);
            let mut next = None;
            let mut found = Found::Nothing;
            while self.at.offset < length {
                let left = length.saturating_sub(self.at.offset);
                found = frame::read(&mut reader, left, self.seal()).at(&self.path)?;
                let Found::Whole(entries, size) = found else { break };
                found = Found::Nothing;
                self.at.offset += size;
                if let [Entry::Next(segment)] = entries.as_slice() {
                    next = Some(*segment);
                    break;
                }
                each(entries)?;
            }
            if let Some(segment) = next {
                let damaged = self.damaged;
                self.go_to(segment)?;
                self.damaged = damaged;
            } else if matches!(found, Found::Nothing) && (self.known_end || self.is_room(length)?) {
                self.known_end = true;
                return Ok(());
            } else {
                self.pass_over(length, &found)?;
            }
        }
    }

    /// Whether nothing but room follows.
    fn is_room(&self, length: u64) -> Result<bool> {
        Ok(segment::used(&self.tail(length)?) == 0)
    }

    fn tail(&self, length: u64) -> Result<Vec<u8>> {
        let left = usize::try_from(length.saturating_sub(self.at.offset)).unwrap_or_default();
        let mut tail = vec![0u8; left];
        self.file.read_exact_at(&mut tail, self.at.offset).at(&self.path)?;
        Ok(tail)
    }

    /// Goes to the next whole frame behind something that is none, or cuts it
    /// off.
    fn pass_over(&mut self, length: u64, found: &Found) -> Result<()> {
        let offset = self.at.offset;
        let tail = self.tail(length)?;
        let tail = tail.get(..segment::used(&tail)).unwrap_or_default();
        let next = frame::next_whole(tail, self.seal());
        let left_so = next.is_none() && matches!(found, Found::Torn);
        self.damaged |= !left_so;
        // What was never synced may be anything after a power cut, and is no damage.
        let synced = self.progress().and_then(|progress| progress.synced);
        if !left_so && synced.is_none_or(|synced| synced > self.at) {
            let damage = tail.get(..next.unwrap_or(tail.len())).unwrap_or_default();
            let name = format!("intent-{:08}-{offset}", self.at.segment);
            let path = self.spool.at(CORRUPT).join(name);
            tracing::error!(
                segment = %self.path.display(), offset, bytes = damage.len(), kept = %path.display(),
                "the intent is damaged; a copy is kept"
            );
            let file = self.spool.write_new(&path, damage).at(&path)?;
            self.spool.sync_file(&path, &file).at(&path)?;
        }
        match next {
            Some(next) => self.at.offset += next as u64,
            None => {
                tracing::warn!(
                    segment = %self.path.display(), offset, bytes = tail.len(),
                    "the intent ends in something that is no whole frame; it is cut off"
                );
                self.spool.shorten(&self.file, offset).at(&self.path)?;
            }
        }
        Ok(())
    }

    /// Appends a frame. On an error nothing of it stays.
    pub(crate) fn append(&mut self, entries: &[Entry]) -> Result<()> {
        let written = self.write(entries);
        match written {
            Ok(size) => {
                self.at.offset += size;
                Ok(())
            }
            Err(error) => {
                // A partial frame is no frame, so this may fail as well.
                let _ = self.spool.shorten(&self.file, self.at.offset);
                Err(fault(&self.path, error))
            }
        }
    }

    fn write(&mut self, entries: &[Entry]) -> std::io::Result<u64> {
        let (spool, path, file, at) = (&self.spool, &self.path, &self.file, self.at.offset);
        let appending = Appending { spool, path, file, at };
        let mut writer = BufWriter::with_capacity(1 << 16, appending);
        let size = frame::append(&mut writer, entries, self.seal())?;
        writer.flush()?;
        drop(writer);
        if self.file.metadata()?.len() <= at + size {
            segment::make_room(spool, path, file, at + size);
        }
        Ok(size)
    }

    /// Makes everything up to here durable.
    ///
    /// # Errors
    /// The outcome is unknown then: the disk may or may not have it.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.spool
            .sync_file(&self.path, &self.file)
            .map_err(|error| StoreError::unknown(self.path.to_string_lossy()).caused_by(error))?;
        self.synced = Some(self.at);
        Ok(())
    }

    /// Whether every frame up to here was finished by whoever wrote it: synced,
    /// as far as it had to be, and done to the files. If not, a process ended
    /// early or its disk failed, and nobody knows what is durable.
    pub(crate) fn is_finished(&self) -> bool {
        !self.damaged && self.applied() == Some(self.at)
    }

    /// Up to where the frames were finished.
    pub(crate) fn applied(&self) -> Option<Position> {
        self.progress().map(|progress| progress.applied)
    }

    fn progress(&self) -> Option<Progress> {
        let mut text = [0u8; 64];
        let read = self.applied.read_at(&mut text, 0).ok()?;
        let mut numbers = std::str::from_utf8(text.get(..read)?).ok()?.split_whitespace();
        let mut next = || numbers.next()?.parse().ok();
        let applied = Position { segment: next()?, offset: next()? };
        let synced = next().zip(next()).map(|(segment, offset)| Position { segment, offset });
        Some(Progress { applied, synced })
    }

    /// Says that every frame up to here is finished.
    pub(crate) fn set_applied(&self) -> Result<()> {
        let others = self.progress().and_then(|progress| progress.synced);
        let synced = self.synced.max(others).unwrap_or(Position { segment: 0, offset: 0 });
        let write = |at: Position| format!("{:08} {:020}", at.segment, at.offset);
        self.write_applied(&format!("{} {}\n", write(self.at), write(synced)))
    }

    /// Says that nothing since the last checkpoint is known to be durable, to
    /// this process and to every other.
    pub(crate) fn set_unfinished(&self) -> Result<()> {
        self.write_applied(&format!("{:59}\n", "nothing"))
    }

    fn write_applied(&self, text: &str) -> Result<()> {
        let path = applied_path(&self.spool);
        self.spool.write_at(&path, &self.applied, 0, text.as_bytes()).at(&path)
    }

    /// Goes on in a new segment.
    pub(crate) fn rotate(&mut self, next: Next) -> Result<()> {
        let segment = self.at.segment + 1;
        if next == Next::Missing {
            segment::make(&self.spool, segment)?;
        }
        // Durable before anything stands in the new one: whoever reads must
        // find the way there.
        self.append(&[Entry::Next(segment)])?;
        self.sync()?;
        self.go_to(segment)?;
        self.set_applied()
    }

    /// Goes on in a new segment, because this one cannot be trusted. Until the
    /// state that leads there is durable nothing may be answered: the way from
    /// here is for those who have it open, and need not be.
    pub(crate) fn abandon(&mut self) -> Result<()> {
        let segment = self.at.segment + 1;
        segment::make(&self.spool, segment)?;
        self.append(&[Entry::Next(segment)])?;
        self.go_to(segment)
    }

    fn go_to(&mut self, segment: u64) -> Result<()> {
        let applied = self.applied.try_clone().at(&self.path)?;
        let (synced, known_end) = (self.synced, self.known_end);
        *self = Intent { applied, synced, known_end, ..Intent::open(&self.spool, segment)? };
        Ok(())
    }

    /// Deletes segments that no checkpoint needs any more: those before the
    /// last one's.
    pub(crate) fn drop_old(&self, checkpoint: u64, keep: Keep) -> Result<()> {
        let kept = if keep == Keep::Few { KEPT } else { 0 };
        let folder = self.spool.at(INTENT);
        for entry in std::fs::read_dir(&folder).at(&folder)? {
            let entry = entry.at(&folder)?;
            let name = entry.file_name();
            let segment = name.to_str().and_then(|name| name.strip_suffix(".log"));
            let Some(segment) = segment.and_then(|number| number.parse::<u64>().ok()) else {
                continue;
            };
            if segment + kept < checkpoint {
                self.spool.unlink(&entry.path()).at(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// How many old segments stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Some, so that other processes need not read the whole folder again.
    Few,
    /// None: there is no room.
    None,
}

/// Reads the frames between two places, for rolling forward.
pub(crate) fn frames_from(
    spool: &Spool,
    from: Position,
    mut each: impl FnMut(Vec<Entry>) -> Result<()>,
) -> Result<()> {
    let mut intent = Intent::open(spool, from.segment)?;
    if from.offset > intent.file.metadata().at(&intent.path)?.len() {
        return Err(corrupt("the intent", "it is shorter than what was done of it"));
    }
    intent.at.offset = from.offset;
    intent.read_on(&mut each)
}
