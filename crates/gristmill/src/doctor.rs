//! A look at everything that may be wrong, for `gristmill doctor`.

use gristmill_core::Diagnosis;
use gristmill_core::policy::diagnose;

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
        found.sort_by_key(|diagnosis| !diagnosis.grave);
        Ok(found)
    }
}
