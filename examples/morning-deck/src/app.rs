//! The application: the deck, its queues, and both running until it is told to
//! stop.

use std::sync::Arc;

use gristmill::port::Clock;
use gristmill::schedule::Scheduler;
use gristmill::worker::{WorkReport, Worker};
use gristmill::{Error, Mill};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::briefing::RunBriefing;
use crate::config::{Config, QueuePlace};
use crate::deck::{Deck, Services};
use crate::error::Result;
use crate::item::EnrichItem;
use crate::page::StatusPage;
use crate::source::FetchSource;
use crate::{db, queue, stuck};

/// The application, opened.
#[derive(Debug, Clone)]
pub struct App {
    /// The queues.
    pub mill: Mill,
    /// The rows.
    pub deck: Arc<Deck>,
    /// How it is set up.
    pub config: Config,
}

impl App {
    /// Opens the file, and the queues where they are to live.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub async fn open(config: Config, clock: Arc<dyn Clock>, services: Services) -> Result<Self> {
        let url = match config.queue {
            QueuePlace::Database => format!("sqlite://{}", config.database.display()),
            QueuePlace::Memory => "memory:".to_owned(),
        };
        Self::over(Mill::open(&url).await?, config, clock, services).await
    }

    /// As [`App::open`], over queues that are open already.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub async fn over(
        mill: Mill,
        config: Config,
        clock: Arc<dyn Clock>,
        services: Services,
    ) -> Result<Self> {
        let deck = Deck::new(db::open(&config.database)?, clock, services);
        queue::declare::<FetchSource>(&mill, &config.fetching).await?;
        queue::declare::<EnrichItem>(&mill, &config.processing).await?;
        queue::declare::<RunBriefing>(&mill, &config.briefings).await?;
        Ok(App { mill, deck, config })
    }

    /// Finds what is due and recovers what is stuck, for the queues that are
    /// served here.
    pub fn scheduler(&self) -> Scheduler {
        let Config { fetching, processing, briefings, .. } = &self.config;
        let mut schedules = Vec::new();
        if fetching.enabled {
            schedules.extend(queue::schedules::<FetchSource>(self, fetching));
        }
        if processing.enabled {
            schedules.extend(queue::schedules::<EnrichItem>(self, processing));
        }
        if briefings.enabled {
            schedules.extend(queue::schedules::<RunBriefing>(self, briefings));
        }
        let scheduler = Scheduler::new(&self.mill).clock(self.deck.clock());
        schedules.into_iter().fold(scheduler, Scheduler::schedule)
    }

    /// The workers of the queues that are served here.
    pub fn workers(&self) -> Vec<Worker<Arc<Deck>>> {
        let Config { fetching, processing, briefings, .. } = &self.config;
        let mut workers = Vec::new();
        if fetching.enabled {
            workers.push(queue::worker::<FetchSource>(self, fetching));
        }
        if processing.enabled {
            workers.push(queue::worker::<EnrichItem>(self, processing));
        }
        if briefings.enabled {
            workers.push(queue::worker::<RunBriefing>(self, briefings));
        }
        workers
    }

    /// Finds, works and recovers until `stop` ends. Then nothing more is begun,
    /// and what runs may finish within the configured time or until `force`
    /// ends; what does not is cancelled and given back.
    ///
    /// # Errors
    /// When a scheduler or worker cannot start.
    pub async fn run(
        &self,
        stop: impl Future<Output = ()> + Send,
        force: impl Future<Output = ()> + Send + 'static,
    ) -> Result<WorkReport> {
        if self.config.queue == QueuePlace::Memory {
            stuck::reset_all(&self.deck).await?;
        }
        let page = match self.config.status {
            Some(address) => {
                let page = StatusPage::listen(address, self.deck.clone(), self.mill.clone());
                Some(page.await?)
            }
            None => None,
        };
        if let Some(page) = &page {
            tracing::info!(url = %format!("http://{}/", page.address), "the status page");
        }
        tracing::info!(
            database = %self.config.database.display(),
            queues = ?self.config.queue,
            looks_every = ?self.config.fetching.interval,
            "running; Ctrl-C stops"
        );
        let stopping = watch::Sender::new(false);
        let asked = |mut stopping: watch::Receiver<bool>| async move {
            // A sender that is gone says the same.
            let _ = stopping.wait_for(|stopping| *stopping).await;
        };
        let scheduler = self.scheduler().stop_within(self.config.stop_within);
        let mut forces = vec![scheduler.force()];
        let mut scheduling = tokio::spawn(scheduler.run(asked(stopping.subscribe())));
        let mut working = JoinSet::new();
        for worker in self.workers() {
            forces.push(worker.force());
            working.spawn(worker.run(asked(stopping.subscribe())));
        }
        tokio::select! {
            () = stop => {}
            // Only at an error: everything runs until it is stopped. What else
            // runs stops by itself as it is dropped.
            ended = &mut scheduling => {
                ended??;
                return Err("the scheduler ended by itself".into());
            }
            Some(ended) = working.join_next() => {
                ended??;
                return Err("a worker ended by itself".into());
            }
        }
        tracing::info!(
            within = ?self.config.stop_within,
            "stopping: nothing more is begun, what runs may finish"
        );
        stopping.send_replace(true);
        let forcing = tokio::spawn(async move {
            force.await;
            forces.iter().for_each(gristmill::worker::Force::now);
        });
        let mut total = WorkReport::default();
        while let Some(ended) = working.join_next().await {
            total.add(&ended??);
        }
        forcing.abort();
        scheduling.await??;
        // With the queue in the file a task completed in its own transaction is
        // gone when the worker comes to settle it.
        total.done += std::mem::take(&mut total.gone);
        Ok(total)
    }

    /// Ends the queue's own threads.
    ///
    /// # Errors
    /// When the store cannot end cleanly.
    pub async fn close(&self) -> Result<(), Error> {
        self.mill.close().await
    }
}
