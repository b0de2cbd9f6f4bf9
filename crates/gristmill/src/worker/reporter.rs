//! The reporter: tells the store how the worker stands, and alerts when a
//! queue's tasks wait too long.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{QueueName, WorkerReport};
use tokio::task::JoinHandle;

use super::report::LateQueue;
use super::site::Site;

/// How often a worker reports.
const EVERY: Duration = Duration::from_secs(3);
/// ... when it has nothing new to tell and follows no manager.
const SELDOM: Duration = Duration::from_secs(8);
/// How long the last words to a store may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// The running reporter.
pub(super) struct Reporter {
    site: Arc<Site>,
    task: JoinHandle<()>,
}

impl Reporter {
    pub(super) fn start(site: Arc<Site>) -> Self {
        let task = tokio::spawn(run(site.clone()));
        Reporter { site, task }
    }

    /// The worker ends: the store forgets it.
    pub(super) async fn end(self) {
        self.task.abort();
        let _ = self.task.await;
        let store = self.site.mill.store();
        let forgotten = store.forget_worker(&self.site.worker);
        match self.site.stop.farewell(FAREWELL, forgotten).await {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(error = %error.whole(), "the store did not forget the worker")
            }
            None => tracing::debug!("the store did not answer the worker's farewell"),
        }
    }
}

async fn run(site: Arc<Site>) {
    let mut late = HashSet::new();
    let mut stopping = false;
    loop {
        let report = report(&site);
        let handled = report.handled.clone();
        let is_idle = handled.is_empty() && report.follows_term.is_none();
        if let Err(error) = site.mill.store().report_worker(report).await {
            tracing::debug!(error = %error.whole(), "the worker's report was not taken");
            // The next one tells of it. One that was taken after all, without
            // an answer, is told of twice: better than never.
            for (queue, stats) in &handled {
                let served = site.served.iter().find(|served| served.name == *queue);
                served.inspect(|served| served.not_reported(stats));
            }
        }
        look_for_late(&site, &mut late).await;
        tokio::select! {
            () = site.timer.sleep(if is_idle { SELDOM } else { EVERY }) => {}
            () = site.stop.asked(), if !stopping => stopping = true,
        }
    }
}

fn report(site: &Site) -> WorkerReport {
    let queues = site.served.iter().map(|served| served.name.clone()).collect();
    let handled = site.served.iter().map(|s| (s.name.clone(), s.take_unreported()));
    WorkerReport {
        id: site.worker.clone(),
        host: host(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        queues,
        processors: site.processors(),
        handled: handled.filter(|(_, stats)| stats.processed > 0).collect(),
        follows_term: site.wish.borrow().follows,
        stopping: site.stop.is_asked(),
    }
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok());
    name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).unwrap_or_default()
}

/// Alerts once for each time a queue's oldest ready task passes `max_wait`.
async fn look_for_late(site: &Site, late: &mut HashSet<QueueName>) {
    let limit = |name: &QueueName| site.last_known(name).and_then(|q| q.settings.max_wait);
    if !site.served.iter().any(|served| limit(&served.name).is_some()) {
        return;
    }
    let stats = match site.mill.store().stats().await {
        Ok(stats) => stats,
        Err(error) => {
            tracing::debug!(error = %error.whole(), "waits were not looked at");
            return;
        }
    };
    for served in &site.served {
        let Some(max_wait) = limit(&served.name) else { continue };
        let stats = stats.iter().find(|stats| stats.queue == served.name);
        let waited = stats.and_then(|stats| stats.oldest_ready).unwrap_or_default();
        if waited <= max_wait {
            late.remove(&served.name);
        } else if late.insert(served.name.clone()) {
            let queue = &served.name;
            tracing::warn!(%queue, ?waited, ?max_wait, "tasks wait too long");
            if let Some(on_late) = &site.on_late {
                let late = LateQueue { queue, waited, max_wait };
                let told = std::panic::AssertUnwindSafe(|| on_late(late));
                if std::panic::catch_unwind(told).is_err() {
                    tracing::error!(%queue, "on_late panicked");
                }
            }
        }
    }
}
