//! The store that asks a service: every verb is a request, and its answer is what the
//! service's store said.
//!
//! Connections are driven by a thread of their own (`driver.rs`), so that handlers that
//! compute on every thread of the runtime lose no lease. What an answer that did not come
//! means is decided in one place (`ask.rs`): what was never sent is *unavailable*, a write
//! that was sent is *unknown*, and what is as good twice is asked again.

mod answer;
mod ask;
mod driver;
mod line;
mod marks;
mod pieces;
mod store;
#[cfg(feature = "tls")]
mod tls;

use std::sync::Mutex;
use std::time::Duration;

use gristmill_core::{Result, StoreError, Timestamp};
use tokio::sync::watch;

use crate::Address;
use crate::wire::{About, OLDEST, VERSION};
use ask::Asker;
use marks::Marks;

/// How a service is asked.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long making a connection may take, with all that encrypts it.
    pub connect: Duration,
    /// How long a verb may take, its connection included.
    pub deadline: Duration,
    /// How long a heartbeat may take: it is of no use to who lost the lease meanwhile.
    pub heartbeat: Duration,
    /// Most requests at once, beside heartbeats and waits.
    pub at_once: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            connect: Duration::from_secs(5),
            deadline: Duration::from_secs(30),
            heartbeat: Duration::from_secs(10),
            at_once: 64,
        }
    }
}

/// A store elsewhere, asked over HTTP.
#[derive(Debug)]
pub struct Remote {
    asker: Asker,
    about: About,
    marks: Mutex<Marks>,
    closed: watch::Sender<bool>,
}

impl Remote {
    /// Opens the store of the service at this address.
    ///
    /// # Errors
    /// Unavailable, when nobody answers there; no permission, when it does not take the
    /// token; not supported, when it speaks another form of the port.
    pub async fn open(address: Address, options: Options) -> Result<Self> {
        if address.token().is_some() && address.is_open_to_others() {
            tracing::warn!(
                target: "gristmill::remote", %address,
                "the token is sent to another machine without encryption: use https"
            );
        }
        let asker = Asker::new(address, options)?;
        let (about, mark) = asker.about().await?;
        check(&about)?;
        let mut marks = Marks::default();
        marks.hear(mark.as_deref());
        Ok(Remote { asker, about, marks: Mutex::new(marks), closed: watch::Sender::new(false) })
    }

    /// Now, by the clock of the service's store.
    ///
    /// # Errors
    /// When the service does not answer.
    pub async fn time(&self) -> Result<Timestamp> {
        Ok(self.asker.about().await?.0.now)
    }
}

/// Refuses a service that would not understand this client, in words that say which of
/// the two to update.
fn check(about: &About) -> Result<()> {
    let version = &about.version;
    if about.port < VERSION {
        return Err(StoreError::not_supported(format!(
            "speak with this service: it is gristmill {version}, and older than this program: \
             update the service first"
        )));
    }
    if about.oldest > VERSION {
        return Err(StoreError::not_supported(format!(
            "speak with this service: it is gristmill {version}, and this program is too old \
             for it: update this program"
        )));
    }
    const { assert!(OLDEST <= VERSION) };
    Ok(())
}
