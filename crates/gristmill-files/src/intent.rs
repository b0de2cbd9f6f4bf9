//! The intent: what was decided, in order, before it is done to the files.
//!
//! A frame is synced before its calls are answered, so that is when they come
//! true; the files follow. Whoever opens the folder first after a crash rolls
//! forward from the last checkpoint. Other processes read on here to know what
//! became of the tasks. It goes on in a new segment after each checkpoint.

use std::fs::File;
use std::io::{BufReader, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use gristmill_core::{Result, StoreError};

use crate::errors::{At, corrupt, fault};
use crate::frame::{self, Entry};
use crate::spool::{CORRUPT, INTENT, Spool, create, open_known, open_own, sync_folder};

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
}

fn segment_path(spool: &Spool, segment: u64) -> PathBuf {
    spool.at(INTENT).join(format!("{segment:08}.log"))
}

fn applied_path(spool: &Spool) -> PathBuf {
    spool.at(INTENT).join("applied")
}

/// Makes an empty segment.
pub(crate) fn make_segment(spool: &Spool, segment: u64) -> Result<()> {
    let path = segment_path(spool, segment);
    create(&path).and_then(|file| file.sync_all()).at(&path)?;
    sync_folder(&spool.at(INTENT))
}

impl Intent {
    /// Opens the intent at the beginning of a segment.
    pub(crate) fn open(spool: &Spool, segment: u64) -> Result<Self> {
        let path = segment_path(spool, segment);
        let file = open_known(&path).at(&path)?;
        let applied = open_own(&applied_path(spool)).at(&applied_path(spool))?;
        let at = Position { segment, offset: 0 };
        Ok(Intent { spool: spool.clone(), path, file, applied, at })
    }

    pub(crate) fn position(&self) -> Position {
        self.at
    }

    /// Whether another process wrote since.
    pub(crate) fn is_behind(&self) -> Result<bool> {
        Ok(self.file.metadata().at(&self.path)?.len() != self.at.offset)
    }

    /// Reads on to the end, following new segments. The lock is held: what is
    /// no whole frame at the end was left by a process that was killed before
    /// anyone was answered, and is cut off.
    pub(crate) fn read_on(&mut self, mut each: impl FnMut(Vec<Entry>) -> Result<()>) -> Result<()> {
        loop {
            let length = self.file.metadata().at(&self.path)?.len();
            if length == self.at.offset {
                return Ok(());
            }
            self.file.seek(SeekFrom::Start(self.at.offset)).at(&self.path)?;
            let mut reader = BufReader::with_capacity(1 << 16, &self.file);
            let mut next = None;
            while self.at.offset < length {
                let left = length.saturating_sub(self.at.offset);
                let Some((entries, size)) = frame::read(&mut reader, left).at(&self.path)? else {
                    break;
                };
                self.at.offset += size;
                if let [Entry::Next(segment)] = entries.as_slice() {
                    next = Some(*segment);
                    break;
                }
                each(entries)?;
            }
            match next {
                Some(segment) => {
                    let applied = self.applied.try_clone().at(&self.path)?;
                    *self = Intent { applied, ..Intent::open(&self.spool, segment)? };
                }
                None if self.at.offset == length => return Ok(()),
                None => return self.cut_off(length),
            }
        }
    }

    fn cut_off(&mut self, length: u64) -> Result<()> {
        let offset = self.at.offset;
        let mut tail = vec![0u8; usize::try_from(length - offset).unwrap_or_default()];
        self.file.read_exact_at(&mut tail, offset).at(&self.path)?;
        tracing::warn!(
            segment = %self.path.display(), offset, bytes = tail.len(),
            "the intent ends in something that is no whole frame; it is cut off"
        );
        if holds_a_frame(&tail) {
            // Not what a killed process leaves: keep it for whoever looks.
            let name = format!("intent-{:08}-{offset}", self.at.segment);
            let path = self.spool.at(CORRUPT).join(name);
            create(&path).and_then(|mut file| file.write_all(&tail)).at(&path)?;
        }
        self.file.set_len(offset).at(&self.path)
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
                let _ = self.file.set_len(self.at.offset);
                Err(fault(&self.path, &error))
            }
        }
    }

    fn write(&mut self, entries: &[Entry]) -> std::io::Result<u64> {
        self.file.seek(SeekFrom::Start(self.at.offset))?;
        let mut writer = BufWriter::with_capacity(1 << 16, &self.file);
        let size = frame::append(&mut writer, entries)?;
        writer.flush()?;
        Ok(size)
    }

    /// Makes everything up to here durable.
    ///
    /// # Errors
    /// The outcome is unknown then: the disk may or may not have it.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file
            .sync_data()
            .map_err(|error| StoreError::Unknown(format!("{}: {error}", self.path.display())))
    }

    /// Up to where the files are as the intent says, if a process that ended
    /// early did not leave a gap.
    pub(crate) fn applied(&self) -> Option<Position> {
        let mut text = [0u8; 32];
        let read = self.applied.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..read)?).ok()?;
        let (segment, offset) = text.trim_end().split_once(' ')?;
        Some(Position { segment: segment.parse().ok()?, offset: offset.parse().ok()? })
    }

    /// Says that the files are as the intent says up to here.
    pub(crate) fn set_applied(&self) -> Result<()> {
        let text = format!("{:08} {:020}\n", self.at.segment, self.at.offset);
        self.applied.write_all_at(text.as_bytes(), 0).at(&applied_path(&self.spool))
    }

    /// Goes on in a new segment.
    pub(crate) fn rotate(&mut self) -> Result<()> {
        let segment = self.at.segment + 1;
        make_segment(&self.spool, segment)?;
        // Durable before anything stands in the new one: whoever reads must
        // find the way there.
        self.append(&[Entry::Next(segment)])?;
        self.sync()?;
        let applied = self.applied.try_clone().at(&self.path)?;
        *self = Intent { applied, ..Intent::open(&self.spool, segment)? };
        self.set_applied()
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
                std::fs::remove_file(entry.path()).at(&entry.path())?;
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

fn holds_a_frame(tail: &[u8]) -> bool {
    let mut from = 1;
    while let Some(rest) = tail.get(from..) {
        let Some(at) = rest.windows(4).position(|four| four == b"GMi1") else {
            return false;
        };
        let mut candidate = rest.get(at..).unwrap_or_default();
        let left = candidate.len() as u64;
        if matches!(frame::read(&mut candidate, left), Ok(Some(_))) {
            return true;
        }
        from += at + 1;
    }
    false
}
