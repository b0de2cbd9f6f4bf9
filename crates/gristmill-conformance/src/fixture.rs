//! What a behaviour stands on: a fresh store, its clock, and the way to open
//! it again.

use std::ops::Deref;
use std::sync::Arc;

use gristmill_core::{Capabilities, Limits, ManualClock};

use crate::handle::Handle;
use crate::{Harness, audit};

/// A store and the handle in use, which it dereferences to.
pub(crate) struct Fixture {
    harness: Arc<dyn Harness>,
    limits: Limits,
    handle: Handle,
}

impl Fixture {
    /// Opens a fresh store with the usual limits.
    pub(crate) async fn new(harness: Arc<dyn Harness>) -> Self {
        Self::with_limits(harness, Limits::default()).await
    }

    async fn with_limits(harness: Arc<dyn Harness>, limits: Limits) -> Self {
        let clock = Arc::new(ManualClock::default());
        let store = harness.open(clock.clone(), limits.clone()).await;
        Fixture { harness, limits, handle: Handle::new(store, clock) }
    }

    /// Goes on with another fresh store, whose limits a test can reach.
    pub(crate) async fn limit(&mut self, change: impl FnOnce(&mut Limits)) {
        let mut limits = Limits::default();
        change(&mut limits);
        *self = Self::with_limits(self.harness.clone(), limits).await;
    }

    /// Goes on with another fresh store, for behaviours that try many cases.
    pub(crate) async fn renew(&mut self) {
        self.limit(|_| {}).await;
    }

    /// What the store says it can do.
    pub(crate) fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    /// Whether the store says that it takes in tasks of another store.
    pub(crate) fn imports(&self) -> bool {
        self.harness.imports()
    }

    /// A handle of its own, to be moved into another task.
    pub(crate) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// A second handle on the same data, as another process has one. There is
    /// one exactly where the store claims so.
    pub(crate) async fn another(&self) -> Option<Handle> {
        let (clock, limits) = (self.clock.clone(), self.limits.clone());
        let store = self.harness.reopen(clock, limits).await;
        assert_eq!(
            store.is_some(),
            self.capabilities().several_processes,
            "several processes: as claimed"
        );
        store.map(|store| self.handle.on(store))
    }

    /// All handles there can be: two where several processes may use the
    /// store, else one.
    pub(crate) async fn handles(&self) -> Vec<Handle> {
        let mut handles = vec![self.handle()];
        handles.extend(self.another().await);
        handles
    }

    /// Kills the process and goes on as the next one. `false` where the store
    /// does not claim to survive it: then there is nothing to go on with.
    pub(crate) async fn kill(&mut self) -> bool {
        // Leaked on purpose: dropping the last handle may end the store in
        // good order, which a killed process does not.
        std::mem::forget(self.store.clone());
        let (clock, limits) = (self.clock.clone(), self.limits.clone());
        let store = self.harness.after_kill(clock, limits).await;
        assert_eq!(
            store.is_some(),
            self.capabilities().survives_kill,
            "survives a kill: as claimed"
        );
        let survived = store.is_some();
        if let Some(store) = store {
            self.handle = self.handle.on(store);
        }
        survived
    }

    /// Compares the store's counts with its tasks, and its tasks with what
    /// must always be true.
    pub(crate) async fn audit(&self) {
        audit::audit(&self.handle).await;
    }
}

impl Deref for Fixture {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}
