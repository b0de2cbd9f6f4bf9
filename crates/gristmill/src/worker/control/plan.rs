//! What a worker was told to be, and how it starts.

use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{Clock, QueueName, SystemClock, WorkerId};
use tokio::sync::watch;

use crate::manager::Manager;
use crate::timer::Timer;
use crate::worker::claim::served::{Kind, Served};
use crate::worker::control::crew;
use crate::worker::control::handle::WorkerHandle;
use crate::worker::control::shared::{OnLate, Shared, Terms, Told, Wish};
use crate::worker::control::stop::{Force, Stop};
use crate::worker::handler::layer::Layer;
use crate::worker::heartbeat::{self, Heartbeat};
use crate::worker::settle::settler::{OnFailed, OnSettled};
use crate::worker::{SLOW_CYCLE, STOP_WITHIN, WORD_HOLDS, layer};
use crate::{Error, Mill};

/// A queue with its handler, and what the handler is for, in words.
pub(crate) struct Serves {
    pub(crate) queue: String,
    pub(crate) kind: Kind,
    pub(crate) handles: &'static str,
}

/// A worker without the type of its handlers' state.
pub(crate) struct Plan {
    mill: Mill,
    pub(crate) serves: Vec<Serves>,
    /// Around all of them, the outermost first.
    pub(crate) layers: Vec<Arc<dyn Layer>>,
    pub(crate) processors: usize,
    pub(crate) batch: Option<usize>,
    pub(crate) terms: Terms,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stop_within: Duration,
    pub(crate) force: Force,
    pub(crate) on_failed: Option<OnFailed>,
    pub(crate) on_late: Option<OnLate>,
    pub(crate) on_settled: Option<OnSettled>,
    pub(crate) manager: Option<Manager>,
}

impl Plan {
    pub(crate) fn new(mill: &Mill) -> Self {
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

    pub(crate) async fn start(mut self) -> Result<WorkerHandle, Error> {
        let served = self.served().await?;
        let stop = self.stop();
        let heartbeat = Heartbeat::start(&self.mill, self.timer(), stop.clone())?;
        let shared = Arc::new(self.shared(served, heartbeat.handle(), stop)?);
        let (ends, ended) = watch::channel(None);
        let work = crew::run(shared.clone(), heartbeat, self.manager.take());
        tokio::spawn(async move {
            ends.send_replace(Some(work.await));
        });
        Ok(WorkerHandle::new(shared, ended, self.force))
    }

    pub(crate) fn timer(&self) -> Timer {
        Timer::by(self.clock.clone())
    }

    pub(crate) fn stop(&self) -> Arc<Stop> {
        Arc::new(Stop::new(self.stop_within, self.force.clone(), self.timer()))
    }

    pub(crate) fn shared(
        &self,
        served: Vec<Arc<Served>>,
        heartbeat: heartbeat::Handle,
        stop: Arc<Stop>,
    ) -> Result<Shared, Error> {
        let wish = Wish { processors: self.processors, batch: self.batch, ..Wish::default() };
        let told = Told {
            on_failed: self.on_failed.clone(),
            on_late: self.on_late.clone(),
            on_settled: self.on_settled.clone(),
        };
        let (mill, worker) = (self.mill.clone(), WorkerId::random()?);
        Ok(Shared::new(mill, worker, served, wish, self.terms.clone(), stop, heartbeat, told))
    }

    /// The queues; asks the store once at the start so that a misspelt name is
    /// an error and not a silent wait.
    pub(crate) async fn served(&self) -> Result<Vec<Arc<Served>>, Error> {
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
