//! What time it is, by the clock that decides: the server's. Tests bring their own.
//! On the way it is compared with our own pace, so that a jump takes nobody's lease.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_core::policy::reclaim_guard::ReclaimGuard;
use gristmill_core::{Clock, Result, Timestamp};

use crate::answer::column;
use crate::codec;
use crate::errors::corrupt;
use crate::pool::Taken;
use crate::sql::{Sql, at};
use crate::store::{Inner, PostgresStore};
use crate::wire::At;

/// After an answer that took longer the server's clock is not compared with ours.
const LONG_ANSWER: Duration = Duration::from_secs(1);

impl PostgresStore {
    /// What time it is by the clock that decides: the server's.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn time(&self) -> Result<Timestamp> {
        let rows = self.inner.pool.read(Sql::Now, &[&self.inner.now()]).await?;
        let row = rows.first().ok_or_else(|| corrupt("the time", "it has no answer"))?;
        Ok(column::<At>(row, at!(Now.now))?.0)
    }
}

impl Inner {
    /// Now by the tests' clock; the server's own when there is none.
    pub(crate) fn now(&self) -> Option<At> {
        self.clock.as_ref().map(|clock| At(clock.now()))
    }

    pub(crate) fn monotonic(&self) -> Duration {
        self.clock.as_ref().map_or_else(|| self.steady.monotonic(), |clock| clock.monotonic())
    }

    /// Now within a transaction; a jump is noticed on the way.
    pub(crate) async fn time(&self, connection: &mut Taken<'_>) -> Result<Timestamp> {
        if let Some(now) = self.now() {
            self.held();
            return Ok(now.0);
        }
        let begun = self.steady.monotonic();
        let rows = connection.run(Sql::Now, &[&None::<At>]).await?;
        let row = rows.first().ok_or_else(|| corrupt("the time", "it has no answer"))?;
        let now = column::<At>(row, at!(Now.now))?.0;
        self.observe(now, begun);
        Ok(now)
    }

    /// A first look at the clock: a jump is a difference between two.
    pub(crate) async fn look_first(&self) -> Result<()> {
        self.held();
        if self.clock.is_none() {
            let begun = self.steady.monotonic();
            let rows = self.pool.read(Sql::Now, &[&None::<At>]).await?;
            if let Some(row) = rows.first() {
                self.observe(column::<At>(row, at!(Now.now))?.0, begun);
            }
        }
        Ok(())
    }

    /// Takes note of the time, and says how long ago it was last distrusted.
    pub(crate) fn held(&self) -> Option<i64> {
        let monotonic = self.monotonic();
        if let Some(now) = self.now() {
            self.look(now.0, monotonic);
        }
        self.guard().held_for(monotonic).map(codec::span)
    }

    /// How long holders that say so often that they are alive are waited for.
    pub(crate) fn held_back(&self, heartbeat: Duration) -> Option<Duration> {
        self.guard().held_back(self.monotonic(), heartbeat)
    }

    /// Whether the clock is believed where something would be thrown away by it.
    pub(crate) fn may_forget(&self) -> bool {
        self.guard().may_forget(self.monotonic())
    }

    /// Compares the server's clock with our own pace: a jump, or an answer
    /// that took long, means that heartbeats may be late.
    pub(crate) fn observe(&self, now: Timestamp, begun: Duration) {
        if self.clock.is_none() {
            let ended = self.steady.monotonic();
            self.guard().wait(ended, ended.saturating_sub(begun));
            self.compare(now, begun);
        }
    }

    /// The same without a word on how long it took: a statement with work of its
    /// own says nothing of heartbeats.
    pub(crate) fn compare(&self, now: Timestamp, begun: Duration) {
        let took = self.steady.monotonic().saturating_sub(begun);
        // The server read its clock somewhere in between. After a long answer
        // nobody knows where, and that would look like a jump.
        if self.clock.is_none() && took <= LONG_ANSWER {
            self.look(now, begun + took / 2);
        }
    }

    fn look(&self, now: Timestamp, monotonic: Duration) {
        let went_back = {
            let mut guard = self.guard();
            guard.observe(now, monotonic, Duration::ZERO);
            guard.take_went_back()
        };
        if went_back {
            self.note_went_back();
        }
    }

    fn guard(&self) -> MutexGuard<'_, ReclaimGuard> {
        // Plain numbers are valid whatever a panicking holder did.
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
