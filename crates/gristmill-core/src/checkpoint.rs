//! Checkpoints: what a handler keeps for the next attempt of its task, under the
//! lease.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::{Limits, Payload, Refusal, TaskId, Token};

/// What a task keeps. Shared, because it is handed around and never changed.
#[derive(Clone, PartialEq, Eq)]
pub struct Kept(Arc<[u8]>);

impl From<Vec<u8>> for Kept {
    fn from(bytes: Vec<u8>) -> Self {
        Kept(bytes.into())
    }
}

impl Deref for Kept {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Its size: what an application keeps is its own affair, and no log's.
impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept({} bytes)", self.0.len())
    }
}

/// Keeps something for a task's next attempt, in place of what was kept before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The task.
    pub id: TaskId,
    /// The token of the claim that took it.
    pub token: Token,
    /// What is kept; nothing at all forgets what was kept before.
    pub state: Kept,
}

impl Checkpoint {
    /// What is kept from now on: nothing where it is empty.
    #[must_use]
    pub fn kept(&self) -> Option<Kept> {
        (!self.state.is_empty()).then(|| self.state.clone())
    }
}

/// What the store says to a checkpoint. None of these is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckpointAnswer {
    /// It is on record, and given to the next attempt.
    Kept,
    /// It was not taken: too large, or the store is full. What was kept before
    /// stays.
    Refused(Refusal),
    /// The token is not the task's current one; nothing changed.
    LeaseLost,
    /// There is no such task any more; nothing changed.
    Gone,
}

impl Limits {
    /// Why this cannot be kept of any task, if so.
    #[must_use]
    pub fn refuse_checkpoint(&self, state: &[u8]) -> Option<Refusal> {
        (state.len() > self.checkpoint_bytes).then(|| {
            Refusal::Invalid(format!(
                "the checkpoint has {} bytes and {} are allowed",
                state.len(),
                self.checkpoint_bytes
            ))
        })
    }
}

/// What a store that keeps the bytes elsewhere knows of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointMark {
    /// How many.
    pub bytes: usize,
    /// What tells them from others.
    pub digest: [u8; 16],
}

impl CheckpointMark {
    /// The mark of these bytes.
    #[must_use]
    pub fn of(state: &[u8]) -> Self {
        let digest = Payload::raw(bytes::Bytes::copy_from_slice(state)).digest();
        CheckpointMark { bytes: state.len(), digest }
    }
}
