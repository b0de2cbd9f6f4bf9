//! What the writer sees of the time, and what it keeps of it for who starts next.

use std::time::Duration;

use gristmill_core::Result;
use gristmill_text::LastSeenText;

use super::Writer;
use crate::sql::{Sql, at, bind};

/// What is seen of the time is written down this often.
const SEEN: Duration = Duration::from_secs(1);

impl Writer<'_> {
    /// Compares the clocks, and takes up what the last writer saw of them.
    pub(super) fn look_at_clock(&mut self, waited: Duration) -> Result<()> {
        let clock = &self.setup.clock;
        let (now, monotonic) = (clock.now(), clock.monotonic());
        let guard = &mut self.known.guard;
        if !guard.has_looked() {
            let stored: Option<String> =
                self.db.one(Sql::MetaGet, bind!(MetaGet { key: "clock" }), |row| {
                    row.get(at!(MetaGet.value))
                })?;
            if let Some(stored) = stored {
                let last: LastSeenText = gristmill_text::parse("the clock", &stored)?;
                guard.resume(&last.into_last_seen(), now, clock.boot().as_ref(), monotonic);
            }
        }
        guard.observe(now, monotonic, waited);
        self.known.clamp |= guard.take_went_back();
        Ok(())
    }

    /// Writes down what is seen of the time, beside what is written anyway and
    /// not too often.
    pub(super) fn see_clock(&mut self) -> Result<()> {
        let clock = &self.setup.clock;
        let monotonic = clock.monotonic();
        let lately = self.seen.is_some_and(|at| monotonic.saturating_sub(at) < SEEN);
        if lately || self.db.conn().total_changes() == self.changes {
            return Ok(());
        }
        let seen = self.known.guard.last_seen(clock.now(), clock.boot(), monotonic);
        let text = gristmill_text::text(&LastSeenText::new(&seen))?;
        self.db.run(Sql::MetaSet, bind!(MetaSet { key: "clock", value: text }))?;
        self.seen = Some(monotonic);
        Ok(())
    }
}
