//! Checkpoints: the files are synced, the state is written anew, and the intent
//! before is not needed any more.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;

use gristmill_core::{Result, State, TaskId, Timestamp};

use crate::errors::{At, fault};
use crate::held::Held;
use crate::ids::{self, Id};
use crate::intent::Keep;
use crate::segment::Next;
use crate::spool::{STATE, Spool};
use crate::{disk, snapshot, spool};

/// A state that is true from this segment on, once the files are synced.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) segment: u64,
    texts: Arc<Texts>,
    /// Callers' ids since the one before.
    new_ids: BTreeSet<Id>,
    now: Timestamp,
}

/// What is to be written.
#[derive(Debug)]
pub(crate) struct Texts {
    segment: u64,
    state: String,
    ids: ids::Text,
}

impl Texts {
    /// Writes them where nobody looks, durably. No two processes prepare the same
    /// segment, so no turn is needed.
    pub(crate) fn write_aside(&self, spool: &Spool) -> Result<()> {
        let ids = self.ids.as_str().map(|ids| (ids_aside(spool, self.segment), ids));
        let state = (state_aside(spool, self.segment), self.state.as_str());
        for (path, text) in ids.into_iter().chain([state]) {
            let file = spool.write_new(&path, text.as_bytes()).at(&path)?;
            spool.sync_file(&path, &file).at(&path)?;
        }
        Ok(())
    }
}

fn state_aside(spool: &Spool, segment: u64) -> std::path::PathBuf {
    spool.on_its_way(&format!("{STATE}-{segment:08}"))
}

fn ids_aside(spool: &Spool, segment: u64) -> std::path::PathBuf {
    spool.on_its_way(&format!("ids-{segment:08}"))
}

impl Prepared {
    pub(crate) fn texts(&self) -> Arc<Texts> {
        self.texts.clone()
    }

    pub(crate) fn has_ids(&self) -> bool {
        self.texts.ids.as_str().is_some()
    }

    pub(crate) fn name_ids(&self, spool: &Spool) -> Result<()> {
        let path = spool.at(&ids::name(self.segment));
        spool.rename(&ids_aside(spool, self.segment), &path).at(&path)
    }

    pub(crate) fn name_state(&self, spool: &Spool) -> Result<()> {
        let path = spool.at(STATE);
        spool.rename(&state_aside(spool, self.segment), &path).at(&path)
    }

    /// What was written aside is not needed.
    pub(crate) fn drop_asides(&self, spool: &Spool) {
        for path in [ids_aside(spool, self.segment), state_aside(spool, self.segment)] {
            // What stays is deleted at the next opening.
            let _ = spool.unlink(&path);
        }
    }
}

impl Held {
    /// Makes a checkpoint in one go.
    pub(crate) fn checkpoint(&mut self, now: Timestamp, keep: Keep) -> Result<()> {
        if keep == Keep::None {
            self.spares.give_back();
            self.intent.drop_old(self.checkpoint, keep)?;
        }
        if self.suspect {
            return self.heal(now);
        }
        if self.unapplied {
            self.catch_up(now)?;
        }
        self.make_files_durable()?;
        let prepared = self.begin_checkpoint(now, Next::Missing)?;
        self.finish_checkpoint(prepared, keep)
    }

    /// Makes durable what nobody may have synced, in a segment of its own: after
    /// a failed sync the next one says that all is well, and is wrong. Nothing
    /// may be answered before this has succeeded; until then every process that
    /// has a turn tries it.
    pub(crate) fn heal(&mut self, now: Timestamp) -> Result<()> {
        if !self.suspect {
            return Ok(());
        }
        tracing::warn!("what a process left unfinished is made durable in a new segment");
        self.intent.drop_old(snapshot::segment(&self.spool)?, Keep::None)?;
        self.make_files_durable()?;
        self.intent.abandon()?;
        let segment = self.intent.position().segment;
        let text = snapshot::text(&self.ledger, segment, now)?;
        let ids = ids::text(&self.spool, &self.ledger, &self.new_ids)?;
        ids::write(&self.spool, segment, &ids)?;
        self.spool.replace(STATE, text.as_bytes())?;
        self.intent.set_applied()?;
        self.touched = crate::touched::Touched::default();
        self.new_ids.clear();
        self.checkpoint = segment;
        self.suspect = false;
        Ok(())
    }

    /// Begins a new segment. The state as of now may be written once all files
    /// are synced, however far the intent has gone by then: what comes is in
    /// the new segment, and rolling forward from there leads to the same end.
    pub(crate) fn begin_checkpoint(&mut self, now: Timestamp, next: Next) -> Result<Prepared> {
        if self.unapplied {
            self.catch_up(now)?;
        }
        self.intent.rotate(next)?;
        let segment = self.intent.position().segment;
        let state = snapshot::text(&self.ledger, segment, now)?;
        let ids = ids::text(&self.spool, &self.ledger, &self.new_ids)?;
        self.touched = crate::touched::Touched::default();
        let new_ids = std::mem::take(&mut self.new_ids);
        Ok(Prepared { segment, texts: Arc::new(Texts { segment, state, ids }), new_ids, now })
    }

    /// Writes the state, unless another process has written a later one.
    fn finish_checkpoint(&mut self, prepared: Prepared, keep: Keep) -> Result<()> {
        let replaced = if snapshot::segment(&self.spool)? < prepared.segment {
            let Texts { segment, state, ids } = prepared.texts.as_ref();
            ids::write(&self.spool, *segment, ids)
                .and_then(|()| self.spool.replace(STATE, state.as_bytes()))
        } else {
            self.spool.sync_folder(self.spool.root())
        };
        match replaced {
            Ok(()) => self.end_checkpoint(&prepared, keep),
            Err(error) => {
                self.not_finished(prepared)?;
                Err(error)
            }
        }
    }

    /// A state could not be written, or not durably.
    pub(crate) fn not_finished(&mut self, prepared: Prepared) -> Result<()> {
        // The new one may stand in memory only, and then the old one's
        // segments are still needed.
        if snapshot::segment(&self.spool)? >= prepared.segment {
            self.intent.set_unfinished()?;
        }
        self.take_back(prepared);
        Ok(())
    }

    /// The state is durable: what was needed before it goes.
    pub(crate) fn end_checkpoint(&mut self, prepared: &Prepared, keep: Keep) -> Result<()> {
        self.checkpoint = snapshot::segment(&self.spool)?.max(prepared.segment);
        let dropped = self.intent.drop_old(self.checkpoint, keep);
        let tidied = ids::tidy(&self.spool, self.checkpoint, prepared.now);
        if let Err(error) = dropped.and(tidied) {
            tracing::warn!(error = %error.whole(), "old segments or ids stay");
        }
        Ok(())
    }

    /// A checkpoint that is not to be: its ids are still to be written.
    pub(crate) fn take_back(&mut self, prepared: Prepared) {
        self.new_ids.extend(prepared.new_ids);
    }

    fn make_files_durable(&mut self) -> Result<()> {
        let synced = self.sync_files();
        if synced.is_err() {
            // They look right in memory: they are to be written again.
            self.intent.set_unfinished()?;
        }
        synced
    }

    fn sync_files(&self) -> Result<()> {
        if let Some(few) = self.touched.few() {
            return self.sync_tasks(few);
        }
        #[cfg(target_os = "linux")]
        return self.spool.sync_everything();
        #[cfg(not(target_os = "linux"))]
        self.sync_tasks(&self.known.keys().copied().collect())
    }

    fn sync_tasks(&self, tasks: &BTreeSet<TaskId>) -> Result<()> {
        let mut folders = BTreeSet::new();
        for id in tasks {
            if let Some(known) = self.known.get(id) {
                let path = self.spool.task(known.state, *id, known.queue.as_str());
                match disk::open(&path).and_then(|file| self.spool.sync_file(&path, &file)) {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        return Err(fault(&path, error));
                    }
                    _ => {}
                }
            }
            for state in State::ALL {
                let folder = self.spool.folder(state);
                folders.insert(folder.join(spool::shard(*id)));
                folders.insert(folder);
            }
        }
        for folder in folders.iter().filter(|folder| folder.exists()) {
            self.spool.sync_folder(folder)?;
        }
        Ok(())
    }
}
