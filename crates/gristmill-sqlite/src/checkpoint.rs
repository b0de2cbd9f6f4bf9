//! What handlers keep for their tasks' next attempts: in the task's row, behind a
//! checksum of its own.

use gristmill_core::{Checkpoint, CheckpointAnswer, Encoding, Kept, Result};

use crate::checksum;
use crate::lease::Lease;
use crate::sql::{Sql, bind};
use crate::write::Write;

/// What is kept as it is stored; nothing where nothing is kept.
pub(crate) fn blob(kept: Option<&Kept>) -> Option<Vec<u8>> {
    let kept = kept?;
    Some([&checksum::of(Encoding::Raw, kept).to_be_bytes()[..], kept].concat())
}

/// What is kept as it is read back, or what is wrong with it.
pub(crate) fn read(stored: Option<Vec<u8>>) -> (Option<Kept>, Option<String>) {
    let Some(stored) = stored else { return (None, None) };
    match stored.split_first_chunk::<8>() {
        Some((sum, kept)) if i64::from_be_bytes(*sum) == checksum::of(Encoding::Raw, kept) => {
            (Some(Kept::from(kept.to_vec())), None)
        }
        _ => (None, Some("its checkpoint does not fit its checksum".to_owned())),
    }
}

impl Write<'_, '_> {
    /// Keeps checkpoints; one answer each.
    pub(crate) fn checkpoint(&self, all: &[Checkpoint]) -> Result<Vec<CheckpointAnswer>> {
        all.iter().map(|checkpoint| self.checkpoint_one(checkpoint)).collect()
    }

    fn checkpoint_one(&self, checkpoint: &Checkpoint) -> Result<CheckpointAnswer> {
        if let Some(refusal) = self.limits.refuse_checkpoint(&checkpoint.state) {
            return Ok(CheckpointAnswer::Refused(refusal));
        }
        let id = checkpoint.id.0;
        // One that failed is there as well: it is not gone, its lease is.
        if !self.db.any(Sql::TaskIsThere, bind!(TaskIsThere { id }))? {
            let kept = self.db.one(Sql::DoneById, bind!(DoneById { id }), |_| Ok(()))?;
            return Ok(kept.map_or(CheckpointAnswer::Gone, |()| CheckpointAnswer::LeaseLost));
        }
        let lease = Lease::load(self.db, checkpoint.token)?;
        if !lease.is_some_and(|lease| lease.ids.contains(&id)) {
            return Ok(CheckpointAnswer::LeaseLost);
        }
        let checkpoint = blob(checkpoint.kept().as_ref());
        self.db.run(Sql::TaskCheckpoint, bind!(TaskCheckpoint { checkpoint, id }))?;
        Ok(CheckpointAnswer::Kept)
    }
}
