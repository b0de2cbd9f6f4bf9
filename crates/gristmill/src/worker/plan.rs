//! What a worker was told to be, and how it starts.

use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{Clock, QueueName, SystemClock, WorkerId};
use tokio::sync::watch;

use super::handle::WorkerHandle;
use super::heartbeat::{self, Heartbeat};
use super::layer::Layer;
use super::served::{Kind, Served};
use super::settler::{OnFailed, OnSettled};
use super::site::{OnLate, Site, Terms, Told, Wish};
use super::stop::{Force, Stop};
use super::{SLOW_CYCLE, STOP_WITHIN, WORD_HOLDS, crew, layer};
use crate::manager::Manager;
use crate::timer::Timer;
use crate::{Error, Mill};

/// A queue with its handler, and what the handler is for, in words.
pub(crate) struct Serves {
    pub(super) queue: String,
    pub(super) kind: Kind,
    pub(super) handles: &'static str,
}

/// A worker without the type of its handlers' state.
pub(crate) struct Plan {
    mill: Mill,
    pub(super) serves: Vec<Serves>,
    /// Around all of them, the outermost first.
    pub(super) layers: Vec<Arc<dyn Layer>>,
    pub(super) processors: usize,
    pub(super) batch: Option<usize>,
    pub(super) terms: Terms,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) stop_within: Duration,
    pub(super) force: Force,
    pub(super) on_failed: Option<OnFailed>,
    pub(super) on_late: Option<OnLate>,
    pub(super) on_settled: Option<OnSettled>,
    pub(super) manager: Option<Manager>,
}

impl Plan {
    pub(super) fn new(mill: &Mill) -> Self {
        Plan {
            mill: mill.clone(),
            serves: Vec::new(),
            layers: Vec::new(),
            processors: 1,
            batch: None,
            terms: Terms {
                lease: None,
                source: None,
                drain: false,
                word_holds: WORD_HOLDS,
                slow_cycle: SLOW_CYCLE,
                timed: true,
            },
            clock: Arc::new(SystemClock::default()),
            stop_within: STOP_WITHIN,
            force: Force::default(),
            on_failed: None,
            on_late: None,
            on_settled: None,
            manager: None,
        }
    }

    pub(super) async fn start(mut self) -> Result<WorkerHandle, Error> {
        let served = self.served().await?;
        let stop = self.stop();
        let heartbeat = Heartbeat::start(&self.mill, self.timer(), stop.clone())?;
        let site = Arc::new(self.site(served, heartbeat.handle(), stop)?);
        let (ends, ended) = watch::channel(None);
        let work = crew::run(site.clone(), heartbeat, self.manager.take());
        tokio::spawn(async move {
            ends.send_replace(Some(work.await));
        });
        Ok(WorkerHandle::new(site, ended, self.force))
    }

    pub(super) fn timer(&self) -> Timer {
        Timer::by(self.clock.clone())
    }

    pub(super) fn stop(&self) -> Arc<Stop> {
        Arc::new(Stop::new(self.stop_within, self.force.clone(), self.timer()))
    }

    pub(super) fn site(
        &self,
        served: Vec<Arc<Served>>,
        heartbeat: heartbeat::Handle,
        stop: Arc<Stop>,
    ) -> Result<Site, Error> {
        let wish = Wish { processors: self.processors, batch: self.batch, ..Wish::default() };
        let told = Told {
            on_failed: self.on_failed.clone(),
            on_late: self.on_late.clone(),
            on_settled: self.on_settled.clone(),
        };
        let (mill, worker) = (self.mill.clone(), WorkerId::random()?);
        Ok(Site::new(mill, worker, served, wish, self.terms.clone(), stop, heartbeat, told))
    }

    /// The queues; asks the store once at the start so that a misspelt name is
    /// an error and not a silent wait.
    pub(super) async fn served(&self) -> Result<Vec<Arc<Served>>, Error> {
        // Both would run without a word, and nothing would ever be done.
        if self.serves.is_empty() {
            return Err(Error::NoHandlers);
        }
        if self.processors == 0 {
            return Err(Error::NoProcessors);
        }
        let queues = self.mill.inspect().queues().await?;
        let mut served = Vec::new();
        for (at, Serves { queue, kind, handles }) in self.serves.iter().enumerate() {
            // Each of the two would take the other's tasks, and end them.
            if let Some(first) = self.serves.iter().take(at).find(|first| first.queue == *queue) {
                return Err(Error::TwoHandlers {
                    queue: queue.clone(),
                    first: first.handles,
                    second: handles,
                });
            }
            let name = QueueName::new(queue)?;
            if !queues.iter().any(|queue| queue.name == name) {
                // The store's own error carries the suggestion.
                self.mill.inspect().queue(name.as_str()).await?;
            }
            let numbers = self.mill.metrics().queue(&name);
            let kind = layer::around(&self.layers, kind);
            served.push(Arc::new(Served::new(name, kind, numbers)));
        }
        Ok(served)
    }
}
