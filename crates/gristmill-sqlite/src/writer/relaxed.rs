//! Syncing what relaxed queues wrote, within its second.

use super::{Latecomers, RELAXED, Writer};
use crate::ask::{Asked, Weight};
use crate::sql::{Sql, bind};
use crate::write::Write;

impl Writer<'_> {
    /// Syncs what relaxed queues wrote once its second is nearly over.
    pub(super) fn sync_relaxed(&mut self) {
        if self.unsynced.is_some_and(|since| since.elapsed() >= RELAXED) {
            self.sync_now();
        }
    }

    /// Syncs it now.
    pub(super) fn sync_now(&mut self) {
        if self.unsynced.is_none() {
            return;
        }
        // A commit syncs the whole log, so the smallest one will do.
        let (asked, _) = Asked::new(Weight::Full, |write: &mut Write<'_, '_>| {
            let now = write.now.as_micros();
            write.db.run(Sql::MetaSet, bind!(MetaSet { key: "synced_at", value: now }))
        });
        self.run(vec![Box::new(asked)], Latecomers::Wait);
        // If it failed, the next commit tries again; not in a busy loop.
        self.unsynced = None;
    }
}
