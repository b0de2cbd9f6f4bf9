//! Doing to the files what the intent says.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::PathBuf;

use bytes::Bytes;
use gristmill_core::{Result, State, TaskId};

use crate::errors::At;
use crate::frame::Entry;
use crate::spares::{Spares, Staged};
use crate::spool::Spool;

/// Where a task's file was before, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    Nowhere,
    In(State),
    /// A process may have ended halfway: look everywhere.
    Unknown,
}

impl Before {
    /// The folders in which it may lie, `now` left out.
    fn others(self, now: Option<State>) -> impl Iterator<Item = State> {
        let meant = move |state: &State| match self {
            Before::Nowhere => false,
            Before::In(before) => before == *state,
            Before::Unknown => true,
        };
        State::ALL.into_iter().filter(meant).filter(move |state| Some(*state) != now)
    }
}

/// Writes the files aside, over spare ones while there are some. Nothing is changed
/// yet: a full disk is noticed here, before anything is decided.
pub(crate) fn stage(
    spool: &Spool,
    entries: &[Entry],
    spares: &mut Spares,
    staged: &mut Staged,
) -> Result<()> {
    for entry in entries {
        if let Entry::File { id, header, payload, .. } = entry {
            let spare = match whole(header, payload) {
                Some(bytes) => spares.write(&bytes).at(&spool.aside(*id))?,
                None => None,
            };
            match spare {
                Some(path) => {
                    staged.insert(*id, path);
                }
                None => {
                    write_aside(spool, *id, header, payload)?;
                }
            }
        }
    }
    Ok(())
}

/// Takes back what was staged.
pub(crate) fn unstage(spool: &Spool, entries: &[Entry], staged: &Staged) {
    for entry in entries {
        if let Entry::File { id, .. } = entry {
            // What stays is deleted at the next opening.
            let _ = spool.unlink(&spool.aside(*id));
        }
    }
    for spare in staged.values() {
        let _ = spool.unlink(spare);
    }
}

/// A small file's bytes, which are written in one step.
fn whole(header: &str, payload: &Bytes) -> Option<Vec<u8>> {
    (payload.len() < 1 << 16).then(|| {
        let mut whole = Vec::with_capacity(header.len() + payload.len());
        whole.extend_from_slice(header.as_bytes());
        whole.extend_from_slice(payload);
        whole
    })
}

pub(crate) fn write_aside(
    spool: &Spool,
    id: TaskId,
    header: &str,
    payload: &Bytes,
) -> Result<PathBuf> {
    let path = spool.aside(id);
    if let Some(whole) = whole(header, payload) {
        spool.write_new(&path, &whole).at(&path)?;
    } else {
        let file = spool.write_new(&path, header.as_bytes()).at(&path)?;
        spool.write_at(&path, &file, header.len() as u64, payload).at(&path)?;
    }
    Ok(path)
}

/// Gives staged files their places, moves and deletes others, or keeps them as spare
/// ones where that is allowed.
pub(crate) fn settle(
    spool: &Spool,
    entries: &[Entry],
    before: &HashMap<TaskId, Before>,
    staged: &Staged,
    mut spares: Option<&mut Spares>,
) -> Result<()> {
    for entry in entries {
        let (now, id, queue) = match entry {
            Entry::File { state, id, queue, .. } | Entry::Move { state, id, queue } => {
                (Some(*state), *id, queue)
            }
            Entry::Remove { id, queue } => (None, *id, queue),
            Entry::Fact(_) | Entry::Next(_) => continue,
        };
        let before = before.get(&id).copied().unwrap_or(Before::Unknown);
        match (entry, now) {
            (Entry::File { .. }, Some(now)) => {
                let target = spool.task(now, id, queue);
                match staged.get(&id) {
                    Some(spare) => spool.rename(spare, &target).at(&target)?,
                    None => spool.rename(&spool.aside(id), &target).at(&target)?,
                }
            }
            (Entry::Move { .. }, Some(now)) => {
                bring(spool, before, now, id, queue)?;
                continue;
            }
            _ => {}
        }
        for other in before.others(now) {
            let path = spool.task(other, id, queue);
            match &mut spares {
                Some(spares) => spares.take(&path).at(&path)?,
                None => spool.unlink(&path).at(&path)?,
            }
        }
    }
    Ok(())
}

/// Brings a file from wherever it is.
fn bring(spool: &Spool, before: Before, now: State, id: TaskId, queue: &str) -> Result<()> {
    let target = spool.task(now, id, queue);
    for other in before.others(Some(now)) {
        match spool.rename(&spool.task(other, id, queue), &target) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).at(&target),
        }
    }
    if !target.exists() {
        // Deleted by hand: noticed and told when its payload is wanted.
        tracing::warn!(file = %target.display(), "a task's file is missing");
    }
    Ok(())
}

/// Does what a frame says once more, whatever was done of it before.
pub(crate) fn redo(spool: &Spool, entries: &[Entry]) -> Result<()> {
    let (mut none, mut staged) = (Spares::new(spool), Staged::new());
    stage(spool, entries, &mut none, &mut staged)?;
    settle(spool, entries, &HashMap::new(), &staged, None)
}
