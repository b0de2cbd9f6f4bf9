//! How a store is opened for a behaviour: all that a store's test file writes.

use std::sync::Arc;

use async_trait::async_trait;
use gristmill_core::{Limits, ManualClock, Store};

/// Opens stores of one kind.
///
/// A behaviour gets a harness of its own, calls [`Harness::open`] and then, for
/// the same data, the other two as often as it likes. Histories call `open`
/// once for each case. So a harness that keeps files has a temporary directory
/// which `open` replaces.
#[async_trait]
pub trait Harness: Send + Sync {
    /// Opens a new, empty store on this clock.
    async fn open(&self, clock: Arc<ManualClock>, limits: Limits) -> Arc<dyn Store>;

    /// Opens the data of the last `open` once more, as another process would,
    /// while the first handle is in use. `None` where the store does not claim
    /// `several_processes`.
    async fn reopen(&self, clock: Arc<ManualClock>, limits: Limits) -> Option<Arc<dyn Store>> {
        let _ = (clock, limits);
        None
    }

    /// Whether the store takes in tasks of another store. Say so once its
    /// `import` does; until then it must answer that it cannot.
    fn imports(&self) -> bool {
        false
    }

    /// Opens the data of the last `open` again after its handle was left
    /// without being closed, as a killed process leaves it. `None` where the
    /// store does not claim `survives_kill`.
    async fn after_kill(&self, clock: Arc<ManualClock>, limits: Limits) -> Option<Arc<dyn Store>> {
        self.reopen(clock, limits).await
    }
}
