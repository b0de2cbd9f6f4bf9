//! The thread that drives the connections, with a runtime of its own.
//!
//! On the callers' runtime a connection would stand still while handlers compute on every
//! thread: a claim would be on record and its answer not be read, and a heartbeat not be
//! sent.

use gristmill_core::{Result, StoreError};
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};

/// The near end of the thread.
#[derive(Debug, Clone)]
pub(super) struct Driver {
    runtime: Handle,
    /// The thread ends when this and all that it was given are gone, so that what is
    /// under way comes to its end.
    alive: mpsc::Sender<()>,
}

/// Something that runs on the thread.
#[derive(Debug)]
pub(super) struct Running<T> {
    pub(super) running: JoinHandle<T>,
    /// Whether it ends when nobody waits for it.
    pub(super) ends: bool,
}

impl<T> Running<T> {
    /// Waits for it.
    pub(super) async fn ended(mut self) -> Result<T, JoinError> {
        (&mut self.running).await
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        if self.ends {
            self.running.abort();
        }
    }
}

impl Driver {
    pub(super) fn start() -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            StoreError::unavailable("no runtime for the connections to the service")
                .caused_by(error)
        })?;
        let handle = runtime.handle().clone();
        let (alive, mut gone) = mpsc::channel(1);
        let thread = std::thread::Builder::new().name("gristmill-remote".to_owned());
        thread.spawn(move || runtime.block_on(gone.recv())).map_err(|error| {
            StoreError::unavailable("no thread for the connections to the service").caused_by(error)
        })?;
        Ok(Driver { runtime: handle, alive })
    }

    /// Runs this on the thread, to its end.
    pub(super) fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
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
