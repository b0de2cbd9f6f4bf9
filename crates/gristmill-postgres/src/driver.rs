//! The thread that drives the store's connections, with a runtime of its own.
//!
//! On the callers' runtime a connection stands still while handlers compute on
//! every thread, or on the one thread that happens to hold its turn. A claim
//! would be on record and its answer not be read, and its lease run out; a
//! heartbeat would not be sent.

use std::future::Future;

use gristmill_core::{Result, StoreError};
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The near end of the thread.
#[derive(Debug, Clone)]
pub(crate) struct Driver {
    runtime: Handle,
    /// The thread ends when this and all that it was given are gone, so that
    /// what is under way comes to its end.
    alive: mpsc::Sender<()>,
}

impl Driver {
    pub(crate) fn start() -> Result<Self> {
        let none = |what: &str, why: std::io::Error| {
            StoreError::unavailable(format!("no {what} for the connections to PostgreSQL"))
                .caused_by(why)
        };
        let made = Builder::new_current_thread().enable_all().build();
        let runtime = made.map_err(|e| none("runtime", e))?;
        let handle = runtime.handle().clone();
        let (alive, mut gone) = mpsc::channel(1);
        std::thread::Builder::new()
            .name("gristmill-postgres".to_owned())
            .spawn(move || runtime.block_on(gone.recv()))
            .map_err(|e| none("thread", e))?;
        Ok(Driver { runtime: handle, alive })
    }

    /// Runs this on the thread, to its end.
    pub(crate) fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let alive = self.alive.clone();
        self.runtime.spawn(async move {
            let _alive = alive;
            future.await
        })
    }
}
