//! Opening the folder: the state file, the intent since then, and the files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use bytes::Bytes;
use gristmill_core::memory::{State as Ledger, TaskRecord};
use gristmill_core::{Limits, Result, State, TaskId, Timestamp, Token};

use crate::apply;
use crate::errors::{At, fault};
use crate::fact::Fact;
use crate::frame::Entry;
use crate::held::{Held, Known, remembered, set_file_aside};
use crate::ids;
use crate::intent::{Intent, Position};
use crate::scan::{self, Unusable};
use crate::snapshot;
use crate::spares::Spares;
use crate::spool::Spool;
use crate::task_file;
use crate::touched::Touched;

/// Who opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opener {
    /// Nobody else has the folder open: the power may have been cut, so the
    /// files may be anything between the checkpoint and the intent's end.
    First,
    /// Others work with it, and the files are as the intent says.
    Another,
}

/// What the intent says of one task, all frames taken together.
#[derive(Debug, Default)]
struct Wanted {
    queue: String,
    /// Its bytes, if they were written since the checkpoint.
    file: Option<(String, Bytes)>,
    /// Where it stands; nowhere when it is gone.
    state: Option<State>,
}

/// Where tasks' files were found.
type Places = HashMap<TaskId, Vec<(State, PathBuf)>>;

/// Reads the folder. The lock is held.
pub(crate) fn load(spool: &Spool, limits: &Limits, opener: Opener, now: Timestamp) -> Result<Held> {
    let mut ledger = Ledger::unbounded(limits.clone());
    let segment = snapshot::read(spool, &mut ledger)?;
    ids::read(spool, &mut ledger, segment)?;
    let mut new_ids = BTreeSet::new();
    let mut intent = Intent::open(spool, segment)?;
    let mut running: HashMap<TaskId, Token> = HashMap::new();
    for token in ledger.tokens().collect::<Vec<_>>() {
        // No task is known yet, so the ids are those of the record itself.
        let ids = ledger.lease_ids(token);
        running.extend(ids.into_iter().map(|id| (id, token)));
    }
    let mut wanted: BTreeMap<TaskId, Wanted> = BTreeMap::new();
    intent.read_on(|entries| {
        new_ids.extend(remembered(&entries));
        for entry in entries {
            fold(entry, &mut ledger, &mut running, &mut wanted)?;
        }
        Ok(())
    })?;
    let mut held = Held {
        spool: spool.clone(),
        ledger,
        known: HashMap::new(),
        intent,
        touched: Touched::default(),
        spares: Spares::new(spool),
        next_id: 0,
        checkpoint: segment,
        unapplied: false,
        suspect: false,
        synced: std::time::Duration::ZERO,
        seen: None,
        new_ids,
    };
    for id in wanted.keys() {
        held.touched.insert(*id);
    }
    match opener {
        Opener::First => {
            spool.clear_aside()?;
            held.suspect = held.intent.position() != Position { segment, offset: 0 }
                && !held.intent.is_finished();
            enforce(spool, &wanted, held.suspect)?;
            if !held.suspect {
                held.intent.set_applied()?;
            }
        }
        Opener::Another => {
            held.suspect = !held.intent.is_finished();
            held.roll_forward()?;
        }
    }
    read_files(&mut held, &running, opener, now)?;
    held.ledger.drop_empty_leases();
    held.ledger.take_changes();
    held.ledger.take_woken();
    held.ledger.take_ended();
    held.next_id = held.ledger.next_id();
    Ok(held)
}

/// Takes one entry of the intent into what is wanted.
fn fold(
    entry: Entry,
    ledger: &mut Ledger,
    running: &mut HashMap<TaskId, Token>,
    wanted: &mut BTreeMap<TaskId, Wanted>,
) -> Result<()> {
    match entry {
        Entry::Fact(fact) => {
            if let Fact::Lease(lease) = fact.as_ref() {
                let (token, ids) = lease.tasks()?;
                running.extend(ids.iter().map(|id| (TaskId(*id), token)));
            }
            return fact.restore(ledger);
        }
        Entry::File { state, id, queue, header, payload } => {
            if state != State::Processing {
                running.remove(&id);
            }
            wanted.insert(id, Wanted { queue, file: Some((header, payload)), state: Some(state) });
        }
        Entry::Move { state, id, queue } => {
            let known = wanted.entry(id).or_default();
            known.queue = queue;
            known.state = Some(state);
        }
        Entry::Remove { id, queue } => {
            running.remove(&id);
            wanted.insert(id, Wanted { queue, file: None, state: None });
        }
        Entry::Next(_) => {}
    }
    Ok(())
}

/// Makes the files what the intent says, whatever a power cut left of them. When
/// it is `suspect`, one that looks right is written all the same: it may look so
/// only in memory, and no sync would bring it to the disk.
fn enforce(spool: &Spool, wanted: &BTreeMap<TaskId, Wanted>, suspect: bool) -> Result<()> {
    if wanted.is_empty() {
        return Ok(());
    }
    let mut places: Places = HashMap::new();
    for (state, id, path) in scan::list(spool)?.files {
        if wanted.contains_key(&id) {
            places.entry(id).or_default().push((state, path));
        }
    }
    for (id, wanted) in wanted {
        let found = places.remove(id).unwrap_or_default();
        let target = wanted.state.map(|state| spool.task(state, *id, &wanted.queue));
        let right = |path: &PathBuf| match &wanted.file {
            None => true,
            Some(_) if suspect => false,
            Some((header, payload)) => std::fs::read(path)
                .is_ok_and(|bytes| bytes.strip_prefix(header.as_bytes()) == Some(payload.as_ref())),
        };
        let in_place = found.iter().any(|(_, path)| Some(path) == target.as_ref() && right(path));
        if let (Some(target), false) = (&target, in_place) {
            match &wanted.file {
                Some((header, payload)) => {
                    let aside = apply::write_aside(spool, *id, header, payload)?;
                    spool.rename(&aside, target).at(target)?;
                }
                None => {
                    if let Some((_, path)) = found.first() {
                        spool.rename(path, target).at(target)?;
                    }
                }
            }
        }
        for (_, path) in found.iter().filter(|(_, path)| Some(path) != target.as_ref()) {
            spool.unlink(path).at(path)?;
        }
    }
    Ok(())
}

/// The folder is right, whatever the lines say: a file that was moved from
/// `failed/` to `pending/` by hand is a task to run again.
pub(crate) fn by_folder(record: &mut TaskRecord) {
    if matches!(record.task.state, State::Pending | State::Processing) {
        record.task.failed_at = None;
    }
}

/// Reads every task's file; what cannot be used goes to `corrupt/`.
fn read_files(
    held: &mut Held,
    running: &HashMap<TaskId, Token>,
    opener: Opener,
    now: Timestamp,
) -> Result<()> {
    let found = scan::list(&held.spool)?;
    for path in found.foreign {
        tracing::warn!(path = %path.display(), "not a task's file: it is set aside");
        set_file_aside(&held.spool, &path)?;
    }
    for (state, id, mut path) in found.files {
        held.spool.disk.answers();
        let parsed = match scan::read(&path, state, id) {
            Ok(parsed) => parsed,
            Err(Unusable::Fault(error)) => return Err(fault(&path, error)),
            Err(Unusable::Damaged(why)) => {
                tracing::error!(file = %path.display(), why, "a task's file is set aside");
                set_file_aside(&held.spool, &path)?;
                continue;
            }
        };
        let mut record = parsed.record;
        let token = running.get(&id).copied().filter(|_| state == State::Processing);
        if state == State::Processing && token.is_none() && opener == Opener::First {
            // Its claim did not reach the disk, or somebody moved the file:
            // nobody holds it.
            record.task.state = State::Pending;
            let back = held.spool.task(State::Pending, id, record.task.queue.as_str());
            held.spool.rename(&path, &back).at(&back)?;
            path = back;
            held.touched.insert(id);
        }
        let digest = task_file::digest(&record);
        by_folder(&mut record);
        let (state, queue) = (record.task.state, record.task.queue.clone());
        if let Err(error) = held.ledger.restore_task(record, token, now) {
            tracing::error!(file = %path.display(), error = %error.whole(), "a task's file is set aside");
            set_file_aside(&held.spool, &path)?;
            continue;
        }
        held.known.insert(id, Known { state, queue, digest });
    }
    Ok(())
}
