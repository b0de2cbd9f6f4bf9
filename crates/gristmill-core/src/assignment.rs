//! Leadership, and the manager's word on who serves which queue.

use std::time::Duration;

use crate::{QueueName, Timestamp, WorkerId};

/// Who holds a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leadership {
    /// The holder.
    pub leader: WorkerId,
    /// Grows each time the role changes hands; an order of an older term is
    /// refused.
    pub term: u64,
    /// How long it holds from now unless renewed.
    pub remaining: Duration,
    /// Whether the one who asked is the holder.
    pub mine: bool,
}

/// How many processors of a worker serve a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The worker.
    pub worker: WorkerId,
    /// The queue.
    pub queue: QueueName,
    /// The number of processors.
    pub processors: u32,
}

/// The manager's word. Processors it does not name rotate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The manager's term.
    pub term: u64,
    /// The shares.
    pub shares: Vec<Share>,
    /// When it was published, by the store's clock; ignored in a put.
    pub published_at: Timestamp,
}

/// What the store says to an assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// It is the word now.
    Accepted,
    /// Its term is not the role's current one: a newer manager speaks.
    StaleTerm {
        /// The current term.
        current: u64,
    },
}

/// The role whose holder may publish an assignment.
pub const MANAGER: &str = "manager";
