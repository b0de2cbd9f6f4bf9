//! A segment of the intent: a file with room before it has frames.
//!
//! Syncing a file that does not become longer takes half the time, and does not wait
//! for what the file system has to do for others. The room is zeros.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gristmill_core::Result;

use crate::errors::{At, fault};
use crate::spool::{INTENT, Spool};

/// The least and the most room that is made behind a frame that needs some: as much
/// as the segment has frames already, so that it is made seldom.
const LEAST_ROOM: u64 = 64 << 10;
const MOST_ROOM: u64 = 2 << 20;
const ZEROS: [u8; 4096] = [0; 4096];

pub(crate) fn path(spool: &Spool, segment: u64) -> PathBuf {
    spool.at(INTENT).join(format!("{segment:08}.log"))
}

/// Makes an empty segment.
pub(crate) fn make(spool: &Spool, segment: u64) -> Result<()> {
    let path = path(spool, segment);
    spool.create(&path).and_then(|file| spool.sync_file(&path, &file)).at(&path)?;
    spool.sync_folder(&spool.at(INTENT))
}

/// Whether there is a segment to go on in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It is to be made.
    Missing,
    /// It was made, and its name is durable.
    Ready,
}

/// Makes a segment aside, with all the room it will need: half as much again as a
/// checkpoint comes after, because that takes its time. Room that is made later makes
/// a put wait.
pub(crate) fn make_spare(spool: &Spool, aside: &Path, intent_bytes: u64) -> Result<()> {
    let zeros = vec![0u8; usize::try_from(LEAST_ROOM).unwrap_or_default()];
    let file = spool.create(aside).at(aside)?;
    let mut end = 0;
    while end < intent_bytes.saturating_add(intent_bytes / 2) {
        spool.write_at(aside, &file, end, &zeros).at(aside)?;
        end += LEAST_ROOM;
    }
    spool.sync_file(aside, &file).at(aside)
}

/// Gives a spare segment its name, in a turn before it is needed. One that stands
/// there with nothing in it is another process's, whose name may be durable
/// already: it stays.
pub(crate) fn place_spare(spool: &Spool, segment: u64, aside: &Path) -> Result<()> {
    let path = path(spool, segment);
    match std::fs::read(&path) {
        Ok(bytes) if used(&bytes) == 0 => return spool.unlink(aside).at(aside),
        Ok(_) => spool.unlink(&path).at(&path)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(fault(&path, error)),
    }
    spool.rename(aside, &path).at(&path)
}

/// Makes room behind the last frame, if there is any on the disk.
pub(crate) fn make_room(spool: &Spool, path: &Path, file: &File, end: u64) {
    let room = end.clamp(LEAST_ROOM, MOST_ROOM);
    let zeros = vec![0u8; usize::try_from(room).unwrap_or_default()];
    if spool.write_at(path, file, end, &zeros).is_err() {
        // It goes on without; a part of it does no harm.
        let _ = spool.shorten(file, end);
    }
}

/// How many bytes there are up to where only zeros follow.
pub(crate) fn used(bytes: &[u8]) -> usize {
    // By pages: there may be megabytes of room.
    let mut end = bytes.len();
    for page in bytes.rchunks(ZEROS.len()) {
        if ZEROS.get(..page.len()) != Some(page) {
            let last = page.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            return end - page.len() + last;
        }
        end -= page.len();
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_what_only_zeros_follow() {
        for (size, last) in [(0, None), (9, None), (9, Some(8)), (9_000, None), (9_000, Some(0))] {
            let mut bytes = vec![0u8; size];
            if let Some(byte) = last.and_then(|last: usize| bytes.get_mut(last)) {
                *byte = 1;
            }
            assert_eq!(used(&bytes), last.map_or(0, |last| last + 1), "{size} {last:?}");
        }
        for last in [4_095, 4_096, 4_097, 4_807, 4_808, 4_809, 8_999] {
            let mut bytes = vec![0u8; 9_000];
            bytes[last] = 7;
            bytes[last / 2] = 7;
            assert_eq!(used(&bytes), last + 1);
        }
    }
}
