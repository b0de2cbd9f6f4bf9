//! A look at everything that may be wrong, for `gristmill doctor`.

use gristmill_core::policy::diagnose;
use gristmill_core::{Clock, Diagnosis, ListRequest, Order, State, SystemClock, TaskFilter};
use gristmill_text::ControlPlane;

use crate::{Error, Mill};

impl Mill {
    /// What is not as it should be: what the store itself finds, then what its
    /// queues' numbers say. Grave things come first. It may take a while, and
    /// changes nothing.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn doctor(&self) -> Result<Vec<Diagnosis>, Error> {
        let store = self.store();
        let mut found = store.diagnose().await?;
        let (queues, stats) = (store.queues().await?, store.stats().await?);
        found.extend(diagnose::queues(&queues, &stats, &store.workers().await?));
        found.extend(self.clocks_and_leases().await?);
        found.sort_by_key(|diagnosis| !diagnosis.grave);
        Ok(found)
    }

    /// The part of it that tells of clocks that were or are wrong, and of leases that
    /// nobody takes back. It reads two pages of tasks.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn clocks_and_leases(&self) -> Result<Vec<Diagnosis>, Error> {
        let store = self.store();
        let mut found = self.ahead_of_the_clock().await?;
        let clock = SystemClock::default();
        // The server's clock is asked between two looks at ours.
        let (before, theirs, after) = (clock.now(), self.now(&clock).await?, clock.now());
        found.extend(diagnose::clocks(before, theirs, after));
        let filter = TaskFilter { state: Some(State::Processing), ..TaskFilter::default() };
        let limit = store.limits().page;
        let held = ListRequest { filter, limit, ..ListRequest::default() };
        found.extend(diagnose::leases(&store.list(held).await?.tasks, theirs));
        Ok(found)
    }

    /// What a clock that was wrong left in the future: it waits until the clock
    /// is there, unless a program that ran meanwhile brought it back. On a
    /// server its own clock decides.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn ahead_of_the_clock(&self) -> Result<Vec<Diagnosis>, Error> {
        let now = self.now(&SystemClock::default()).await?;
        let store = self.store();
        // The newest page: what is put after it hides no task that was put ahead.
        let filter = TaskFilter { state: Some(State::Pending), ..TaskFilter::default() };
        let limit = store.limits().page;
        let pending = ListRequest { filter, order: Order::Newest, limit, ..ListRequest::default() };
        let pending = store.list(pending).await?.tasks;
        Ok(diagnose::ahead(&store.schedules().await?, &pending, now))
    }
}
