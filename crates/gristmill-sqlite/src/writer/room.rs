//! What the writer does on a full disk.

use gristmill_core::{Result, StoreError};

use super::Writer;
use crate::errors::fault;
use crate::reserve::ROOM;

impl Writer<'_> {
    /// Gives workers the room that was kept for them; returns whether there was
    /// any. The log is written back at once: it takes most of what it needs from
    /// there, and gives all of its own back.
    pub(super) fn make_room(&mut self) -> bool {
        let made = self.reserve.give_back();
        if made && let Err(error) = self.start_new_log() {
            tracing::warn!(error = %error.whole(), "the log could not be written back yet");
        }
        made
    }

    /// Why no put is taken now, if so: what is left is for workers, unless
    /// enough is free within the file.
    pub(super) fn no_room(&self) -> Result<Option<StoreError>> {
        if !self.reserve.is_short() {
            return Ok(None);
        }
        let conn = self.db.conn();
        let pragma = |name: &str| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let free = pragma("freelist_count")
            .and_then(|pages| Ok(pages.saturating_mul(pragma("page_size")?)))
            .map_err(fault)?;
        Ok((free < i64::try_from(ROOM).unwrap_or(i64::MAX))
            .then(|| StoreError::disk_full("what is left is for the tasks that stand".to_owned())))
    }
}
