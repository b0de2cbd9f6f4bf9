//! The scheduler: fires every instant of one schedule, as others do at the same
//! time.

use std::time::Duration;

use gristmill_core::{ScheduleName, Timestamp};

use super::super::plan::{EVERY, SCHEDULE, TICKS};
use super::{AGAIN, Client};

impl Client {
    pub(super) async fn schedule(&mut self) {
        let Ok(name) = ScheduleName::new(SCHEDULE) else { return };
        while !self.has_to_leave() {
            let schedules = self.noted.store.schedules().await.unwrap_or_default();
            let decided = schedules.iter().find(|one| one.declared.name == name);
            if let Some(decided) = decided {
                // Now and then one that was decided before: it must not fire again.
                let from = decided.decided_until;
                let from = if self.dice.once_in(4) { from.before(EVERY) } else { from };
                let next = next_instant(from);
                // An instant that is ahead of the store's clock is refused by it.
                let _ = self.noted.fire(&name, TICKS, next).await;
            }
            tokio::time::sleep(AGAIN).await;
            let nap = u64::try_from(EVERY.as_millis()).unwrap_or(1_000) / 4;
            tokio::time::sleep(Duration::from_millis(self.dice.throw() % nap)).await;
        }
    }
}

/// The first instant after this one, counted from the epoch as the store does.
pub(crate) fn next_instant(after: Timestamp) -> Timestamp {
    let every = i64::try_from(EVERY.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros((after.as_micros().div_euclid(every) + 1) * every)
}
