//! What every route has at hand: the mill, what is remembered between requests, and
//! whether the service is about to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use gristmill::port::{Clock, SystemClock, Token};
use gristmill::{Mill, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::access::Door;
use crate::connection::Connections;
use crate::dashboard::{Checked, Shapes, Trends};
use crate::guard::Serves;
use crate::held::Held;
use crate::known::Known;
use crate::leased::Leased;
use crate::limits::{BODIES_BYTES, LISTENERS, WAITERS};
use crate::operation::Operations;
use crate::problem::{Answer, OVERLOADED, Problem};
use crate::sampled::Sampled;
use crate::server::Options;

/// The state behind the routes.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) mill: Mill,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) serves: Serves,
    /// Who may come in.
    pub(crate) door: Door,
    /// Queues and their contracts, looked up lately.
    pub(crate) known: Known,
    /// Claims whose token the caller chose.
    pub(crate) held: Held,
    /// Of which queue claims were.
    pub(crate) leased: Leased,
    /// Numbers looked up lately.
    pub(crate) sampled: Sampled,
    /// Queues' last hours, for the pages.
    pub(crate) trends: Trends,
    /// Failed tasks by error, for the pages.
    pub(crate) shapes: Shapes,
    /// What clocks and leases said lately, for the pages.
    pub(crate) checked: Checked,
    /// How long the audit log is kept, if anything was said.
    pub(crate) kept_audit: Option<Duration>,
    /// Whether pages only show.
    pub(crate) read_only: bool,
    pub(crate) connections: Arc<Connections>,
    pub(crate) operations: Operations,
    /// Which service this is: its marks are nobody else's.
    pub(crate) epoch: String,
    /// Where the next claim of several queues begins.
    rotation: AtomicUsize,
    stopping: watch::Receiver<bool>,
    bodies: Arc<Semaphore>,
    waiters: Arc<Semaphore>,
    listeners: Arc<Semaphore>,
    answered: [AtomicU64; 5],
}

impl Service {
    pub(crate) fn new(
        mill: Mill,
        serves: Serves,
        strict: bool,
        options: &Options,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Service {
            store: mill.store(),
            operations: Operations::of(&mill),
            serves,
            door: Door::new(mill.store(), strict),
            leased: Leased::default(),
            mill,
            known: Known::default(),
            held: Held::default(),
            sampled: Sampled::default(),
            trends: Trends::default(),
            shapes: Shapes::default(),
            checked: Checked::default(),
            read_only: options.read_only,
            kept_audit: options.kept_audit,
            connections: Arc::default(),
            epoch: epoch(),
            rotation: AtomicUsize::new(0),
            stopping,
            bodies: Arc::new(Semaphore::new(BODIES_BYTES)),
            waiters: Arc::new(Semaphore::new(WAITERS)),
            listeners: Arc::new(Semaphore::new(LISTENERS)),
            answered: Default::default(),
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Returns when the service is about to stop.
    pub(crate) async fn stops(&self) {
        let mut stopping = self.stopping.clone();
        // The sender is gone when the server is: that is a stop as well.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    }

    /// A number that moves with each call: the turn of who comes first.
    pub(crate) fn turn(&self) -> usize {
        self.rotation.fetch_add(1, Ordering::Relaxed)
    }

    /// Room for a body of this many bytes, or why there is none now.
    pub(crate) async fn room(&self, bytes: usize) -> Answer<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes.min(BODIES_BYTES)).unwrap_or(u32::MAX);
        self.bodies
            .clone()
            .acquire_many_owned(bytes)
            .await
            .map_err(|_| Problem::new(&OVERLOADED, "there is no room for the body"))
    }

    /// More room for a body that has some. It does not wait: two that wait for each
    /// other's room would wait for ever.
    pub(crate) fn more_room(&self, bytes: usize) -> Answer<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes.min(BODIES_BYTES)).unwrap_or(u32::MAX);
        let room = self.bodies.clone().try_acquire_many_owned(bytes);
        room.map_err(|_| Problem::new(&OVERLOADED, "there is no room for the body now"))
    }

    /// A place among those who wait for work.
    pub(crate) fn waiter(&self) -> Answer<OwnedSemaphorePermit> {
        let place = self.waiters.clone().try_acquire_owned();
        place.map_err(|_| Problem::new(&OVERLOADED, format!("{WAITERS} requests wait already")))
    }

    /// A place among those who listen to events.
    pub(crate) fn listener(&self) -> Answer<OwnedSemaphorePermit> {
        let place = self.listeners.clone().try_acquire_owned();
        place.map_err(|_| Problem::new(&OVERLOADED, format!("{LISTENERS} listen already")))
    }

    /// Counts an answer by the class of its status.
    pub(crate) fn count(&self, status: u16) {
        if let Some(count) = self.answered.get(usize::from(status / 100).saturating_sub(1)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Answers so far, by the first digit of their status.
    pub(crate) fn answered(&self) -> impl Iterator<Item = (usize, u64)> {
        self.answered.iter().enumerate().map(|(at, n)| (at + 1, n.load(Ordering::Relaxed)))
    }
}

/// A name that no other service has; where there is no chance, by the time of the start.
fn epoch() -> String {
    let random = Token::random().map(|token| token.to_string());
    random.unwrap_or_else(|_| SystemClock::default().now().as_micros().to_string())
}
