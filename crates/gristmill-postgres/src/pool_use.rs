//! How many connections are at work, for who watches the process.

use crate::PostgresStore;

/// How many connections are at work. Those of heartbeats are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolUse {
    /// With a call.
    pub busy: usize,
    /// Without one.
    pub idle: usize,
    /// Most there may be.
    pub most: usize,
}

impl PostgresStore {
    /// How many of its connections are at work now.
    #[must_use]
    pub fn pool_use(&self) -> PoolUse {
        let (busy, idle, most) = self.inner.pool.in_use();
        PoolUse { busy, idle, most }
    }
}
