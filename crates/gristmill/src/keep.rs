//! How long the store keeps what it tells of the past.

use std::time::Duration;

use gristmill_core::DocumentAnswer;
use gristmill_core::policy::keeping::{self, KIND, MINUTES};

use crate::{Error, Mill};

impl Mill {
    /// Keeps the minutes of all queues for so long from now on, from a day to 90; they are
    /// kept for 7 days until somebody says. It is said to the store: all its processes keep
    /// to it. Whether that is a change.
    ///
    /// # Errors
    /// When the store cannot be asked.
    pub async fn keep_minutes(&self, kept: Duration) -> Result<bool, Error> {
        let store = self.store();
        loop {
            let standing = store.document(KIND, MINUTES).await?;
            let Some(change) = keeping::change(standing.as_ref(), kept) else { return Ok(false) };
            // Who says it at the same time is looked at again.
            if !matches!(store.save_document(change).await?, DocumentAnswer::Changed { .. }) {
                return Ok(true);
            }
        }
    }
}
