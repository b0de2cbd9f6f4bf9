//! Keeping what handlers want their tasks' next attempts to have.

use super::state::State;
use crate::{Checkpoint, CheckpointAnswer, CheckpointMark, Refusal};

impl State {
    /// Keeps checkpoints; one answer each.
    pub fn checkpoint(&mut self, checkpoints: &[Checkpoint]) -> Vec<CheckpointAnswer> {
        checkpoints.iter().map(|checkpoint| self.checkpoint_one(checkpoint)).collect()
    }

    fn checkpoint_one(&mut self, checkpoint: &Checkpoint) -> CheckpointAnswer {
        if let Some(refusal) = self.limits.refuse_checkpoint(&checkpoint.state) {
            return CheckpointAnswer::Refused(refusal);
        }
        let Some(row) = self.rows.get(&checkpoint.id.0) else {
            let kept = self.done.contains_key(&checkpoint.id.0);
            return if kept { CheckpointAnswer::LeaseLost } else { CheckpointAnswer::Gone };
        };
        if row.lease != Some(checkpoint.token) {
            return CheckpointAnswer::LeaseLost;
        }
        let before = row.checkpoint.map_or(0, |mark| mark.bytes);
        let bytes = self.bytes - before + checkpoint.state.len();
        if bytes > self.max_bytes {
            let tasks = (self.rows.len() + self.done.len()) as u64;
            let full = Refusal::StoreFull { tasks, bytes: self.bytes };
            return CheckpointAnswer::Refused(full);
        }
        self.bytes = bytes;
        if let Some(row) = self.rows.get_mut(&checkpoint.id.0) {
            row.task.checkpoint = checkpoint.kept();
            row.checkpoint = row.task.checkpoint.as_deref().map(CheckpointMark::of);
        }
        CheckpointAnswer::Kept
    }
}
