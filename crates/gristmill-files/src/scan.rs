//! Reading the folder: every task's file, and what is no task's file.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use gristmill_core::{Result, State, TaskId};

use crate::disk;
use crate::errors::At;
use crate::spool::{self, Spool};
use crate::task_file::{self, Parsed};

/// How much of a file is read at first: nearly every header fits.
const BEGINNING: usize = 2048;

/// What was found in the folders.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Files with a task's name: where, and which.
    pub(crate) files: Vec<(State, TaskId, PathBuf)>,
    /// Everything else.
    pub(crate) foreign: Vec<PathBuf>,
}

/// Lists the folders, without reading a file.
pub(crate) fn list(spool: &Spool) -> Result<Found> {
    let mut found = Found::default();
    for state in State::ALL {
        let folder = spool.folder(state);
        for shard in std::fs::read_dir(&folder).at(&folder)? {
            let shard = shard.at(&folder)?;
            let is_shard = shard.file_type().at(&folder)?.is_dir()
                && shard
                    .file_name()
                    .to_str()
                    .is_some_and(|name| name.len() == 2 && u8::from_str_radix(name, 16).is_ok());
            if !is_shard {
                found.foreign.push(shard.path());
                continue;
            }
            let within = shard.path();
            spool.disk.answers();
            for entry in std::fs::read_dir(&within).at(&within)? {
                let entry = entry.at(&within)?;
                let name = entry.file_name();
                let id = name.to_str().and_then(spool::id_of);
                match id.filter(|id| shard.file_name().to_str() == Some(&spool::shard(*id))) {
                    Some(id) if entry.file_type().at(&within)?.is_file() => {
                        found.files.push((state, id, entry.path()));
                    }
                    _ => found.foreign.push(entry.path()),
                }
            }
        }
    }
    found.files.sort_unstable_by_key(|(_, id, _)| *id);
    Ok(found)
}

/// Why a file is no task's file that can be used.
pub(crate) enum Unusable {
    /// It is damaged; in words.
    Damaged(String),
    /// It cannot be read now.
    Fault(std::io::Error),
}

impl From<std::io::Error> for Unusable {
    fn from(error: std::io::Error) -> Self {
        Unusable::Fault(error)
    }
}

impl From<String> for Unusable {
    fn from(why: String) -> Self {
        Unusable::Damaged(why)
    }
}

/// Reads a file's header and looks whether as many bytes follow as it says.
/// The payload's own checksum is looked at when the payload is wanted.
pub(crate) fn read(path: &Path, state: State, id: TaskId) -> Result<Parsed, Unusable> {
    let mut file = disk::open(path)?;
    let (bytes, length) = beginning(&mut file)?;
    let parsed = task_file::parse(&bytes, state)?;
    let expected = (parsed.header_len + parsed.body_len()) as u64;
    if length != expected {
        return Err(format!("it has {length} bytes and {expected} were written").into());
    }
    let task = &parsed.record.task;
    if task.id != id || path.file_name() != Some(spool::file_name(id, task.queue.as_str()).as_ref())
    {
        return Err("its name is another task's".to_owned().into());
    }
    Ok(parsed)
}

fn beginning(file: &mut File) -> std::io::Result<(Vec<u8>, u64)> {
    let mut bytes = vec![0u8; BEGINNING];
    let mut filled = 0;
    while let Some(free) = bytes.get_mut(filled..).filter(|free| !free.is_empty()) {
        match file.read(free)? {
            0 => break,
            read => filled += read,
        }
    }
    bytes.truncate(filled);
    if filled < BEGINNING {
        // The whole file: its length is known.
        return Ok((bytes, filled as u64));
    }
    let length = file.metadata()?.len();
    while task_file::header_end(&bytes).is_none() {
        let before = bytes.len();
        file.by_ref().take(1 << 16).read_to_end(&mut bytes)?;
        if bytes.len() == before {
            break;
        }
    }
    Ok((bytes, length))
}
