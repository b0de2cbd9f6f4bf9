//! What clocks and leases say, as `doctor` tells it, looked up at most once a minute: it
//! reads a page of tasks.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gristmill::port::Diagnosis;

use crate::service::Service;

/// How long a look is good for.
const FRESH: Duration = Duration::from_secs(60);
/// A page does not wait longer for it.
const LOOKS: Duration = Duration::from_secs(1);

/// When it was looked, and what was found.
type Look = (Instant, Arc<Vec<Diagnosis>>);

/// The last look.
#[derive(Debug, Default)]
pub(crate) struct Checked(Mutex<Option<Look>>);

impl Checked {
    /// What was found lately. A store that does not answer is told by what else the page
    /// asks of it.
    pub(crate) async fn of(&self, service: &Service) -> Arc<Vec<Diagnosis>> {
        if let Some((at, found)) = &*self.last()
            && at.elapsed() < FRESH
        {
            return found.clone();
        }
        let found = match tokio::time::timeout(LOOKS, service.mill.clocks_and_leases()).await {
            Ok(Ok(found)) => Arc::new(found),
            Ok(Err(_)) | Err(_) => Arc::default(),
        };
        *self.last() = Some((Instant::now(), found.clone()));
        found
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<Look>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
