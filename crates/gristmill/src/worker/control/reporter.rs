//! The reporter: tells the store how the worker stands, hears there what somebody wants of
//! it, and alerts when a queue's tasks wait too long.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{DocumentChange, Expects, QueueName, StoreError, WorkerReport};
use gristmill_text::ControlPlane;
use tokio::task::JoinHandle;

use crate::worker::control::orders::{KIND as ORDERS, Orders};
use crate::worker::control::report::LateQueue;
use crate::worker::control::shared::Shared;

/// How often a worker reports.
const EVERY: Duration = Duration::from_secs(3);
/// ... when it has nothing new to tell and follows no manager. It hears then whether
/// somebody wants something of it,
const SELDOM: Duration = Duration::from_secs(8);
/// ... and says only so often that it is still there, where it would say word for word
/// what it said before: each report is a commit, and a version of its row that is dead.
const STILL_THERE: Duration = Duration::from_secs(24);
/// How long the last words to a store may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// The running reporter.
pub(crate) struct Reporter {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Reporter {
    pub(crate) fn start(shared: Arc<Shared>) -> Self {
        let task = tokio::spawn(run(shared.clone()));
        Reporter { shared, task }
    }

    /// The worker ends: the store forgets it.
    pub(crate) async fn end(self) {
        self.task.abort();
        let _ = self.task.await;
        let store = self.shared.mill.store();
        let forgotten = async {
            forget_orders(&self.shared).await;
            store.forget_worker(&self.shared.worker).await
        };
        match self.shared.stop.farewell(FAREWELL, forgotten).await {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(error = %error.whole(), "the store did not forget the worker")
            }
            None => tracing::debug!("the store did not answer the worker's farewell"),
        }
    }
}

async fn run(shared: Arc<Shared>) {
    let mut late = HashSet::new();
    let mut stopping = false;
    let mut deaf = false;
    let mut wish = shared.wish.subscribe();
    let mut said: Option<(WorkerReport, Instant)> = None;
    loop {
        // What changes from here on is told of soon.
        wish.borrow_and_update();
        let report = report(&shared);
        let is_idle = report.handled.is_empty() && report.follows_term.is_none();
        let stands = said.as_ref().is_some_and(|(before, at)| {
            is_idle && *before == report && shared.timer.since(*at) < STILL_THERE
        });
        if !stands {
            said = tell(&shared, report).await;
        }
        if !deaf {
            deaf = follow_orders(&shared).await;
        }
        look_for_late(&shared, &mut late).await;
        tokio::select! {
            () = shared.timer.sleep(if is_idle { SELDOM } else { EVERY }) => {}
            // A manager spoke, which counts only on those it has heard of lately.
            Ok(()) = wish.changed() => {}
            () = shared.stop.asked(), if !stopping => stopping = true,
        }
    }
}

/// Tells the store. Returns what it took, and when it was said.
async fn tell(shared: &Shared, report: WorkerReport) -> Option<(WorkerReport, Instant)> {
    let at = shared.timer.now();
    let Err(error) = shared.mill.store().report_worker(report.clone()).await else {
        return Some((report, at));
    };
    tracing::debug!(error = %error.whole(), "the worker's report was not taken");
    // The next one tells of it. One that was taken after all, without
    // an answer, is told of twice: better than never.
    for (queue, stats) in &report.handled {
        let served = shared.served.iter().find(|served| served.name == *queue);
        served.inspect(|served| served.not_reported(stats));
    }
    None
}

fn report(shared: &Shared) -> WorkerReport {
    let queues = shared.served.iter().map(|served| served.name.clone()).collect();
    let handled = shared.served.iter().map(|s| (s.name.clone(), s.take_unreported()));
    WorkerReport {
        id: shared.worker.clone(),
        host: host(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        queues,
        processors: shared.cycles.processors(),
        handled: handled.filter(|(_, stats)| stats.processed > 0).collect(),
        follows_term: shared.wish.borrow().follows,
        stopping: shared.stop.is_asked(),
    }
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok());
    name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).unwrap_or_default()
}

/// Does what somebody elsewhere wants of this worker. Returns whether it may not even hear
/// of it: then nothing is asked again.
async fn follow_orders(shared: &Shared) -> bool {
    let orders = match shared.mill.store().document(ORDERS, shared.worker.as_str()).await {
        Ok(said) => said.map(|said| Orders::read(&said.body)).unwrap_or_default(),
        Err(StoreError::Permission(_)) => return true,
        Err(error) => {
            tracing::debug!(error = %error.whole(), "nobody's orders were heard");
            return false;
        }
    };
    let stop = orders.stop;
    let changed = shared.wish.send_if_modified(|wish| {
        let changed = wish.orders != orders;
        wish.orders = orders;
        changed
    });
    if changed {
        let orders = shared.wish.borrow().orders.clone();
        tracing::info!(worker = %shared.worker, ?orders, "somebody elsewhere gave orders");
    }
    if stop {
        shared.stop.ask();
    }
    false
}

/// Nobody has this worker's id again.
async fn forget_orders(shared: &Shared) {
    let store = shared.mill.store();
    let name = shared.worker.to_string();
    if let Ok(Some(said)) = store.document(ORDERS, &name).await {
        let expects = Expects::Version(said.version);
        let change = DocumentChange::new(ORDERS, &name, expects, None);
        // What stays is cleared away by whoever gives orders next.
        let _ = store.save_document(change).await;
    }
}

/// Alerts once for each time a queue's oldest ready task passes `max_wait`.
async fn look_for_late(shared: &Shared, late: &mut HashSet<QueueName>) {
    let limit = |name: &QueueName| shared.queues.last(name).and_then(|q| q.settings.max_wait);
    if !shared.served.iter().any(|served| limit(&served.name).is_some()) {
        return;
    }
    let stats = match shared.mill.store().stats().await {
        Ok(stats) => stats,
        Err(error) => {
            tracing::debug!(error = %error.whole(), "waits were not looked at");
            return;
        }
    };
    for served in &shared.served {
        let Some(max_wait) = limit(&served.name) else { continue };
        let stats = stats.iter().find(|stats| stats.queue == served.name);
        let waited = stats.and_then(|stats| stats.oldest_ready).unwrap_or_default();
        if waited <= max_wait {
            late.remove(&served.name);
        } else if late.insert(served.name.clone()) {
            let queue = &served.name;
            tracing::warn!(%queue, ?waited, ?max_wait, "tasks wait too long");
            if let Some(on_late) = &shared.on_late {
                let late = LateQueue { queue, waited, max_wait };
                let told = std::panic::AssertUnwindSafe(|| on_late(late));
                if std::panic::catch_unwind(told).is_err() {
                    tracing::error!(%queue, "on_late panicked");
                }
            }
        }
    }
}
