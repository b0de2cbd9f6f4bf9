//! The crew: as many processors as are wished for, the settler and the
//! reporter beside them, from the start to the last settlement.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use gristmill_core::StoreError;
use tokio::task::{Id, JoinSet};

use crate::manager::Manager;
use crate::metrics::Running;
use crate::outage::Part;
use crate::worker::claim::processor::Processor;
use crate::worker::control::follower;
use crate::worker::control::left::Left;
use crate::worker::control::report::WorkReport;
use crate::worker::control::reporter::Reporter;
use crate::worker::control::shared::Shared;
use crate::worker::control::stop::Phase;
use crate::worker::heartbeat::Heartbeat;

/// How often it is asked whether the store still answers.
const ASK: Duration = Duration::from_millis(200);

/// How long the end waits for the manager to give its role up.
const FAREWELL: Duration = Duration::from_secs(1);

/// Works until it is stopped or drained.
pub(crate) async fn run(
    shared: Arc<Shared>,
    heartbeat: Heartbeat,
    manager: Option<Manager>,
) -> Result<WorkReport, StoreError> {
    let worker = &shared.worker;
    tracing::info!(%worker, processors = shared.wish.borrow().processors, "worker starts");
    let counted: Weak<dyn Running> = Arc::downgrade(&(shared.clone() as Arc<dyn Running>));
    shared.mill.metrics().add_worker(counted.clone());
    let settling = {
        let shared = shared.clone();
        tokio::spawn(async move { shared.settler.run(&*shared.mill.store(), &shared.stop).await })
    };
    let reporter = Reporter::start(shared.clone());
    // A draining worker goes round until nothing is left, whatever was said.
    let following = (!shared.terms.drain).then(|| tokio::spawn(follower::run(shared.clone())));
    let managing = manager.map(|manager| {
        let shared = shared.clone();
        tokio::spawn(manager.run(async move { shared.stop.asked().await }))
    });
    let failed = Crew::new(shared.clone()).work().await;
    tell_failed(&shared).await;
    shared.settler.finish();
    if let Err(error) = settling.await {
        tracing::error!(%error, "the settler ended badly; leases will run out");
    }
    if let Some(following) = following {
        following.abort();
    }
    if let Some(managing) = managing {
        // Drained: nobody has asked for the stop.
        shared.stop.ask();
        let _ = shared.stop.farewell(FAREWELL, managing).await;
    }
    reporter.end().await;
    heartbeat.end().await;
    shared.mill.metrics().remove_worker(&counted);
    let outage = shared.mill.outage();
    outage.tell(&shared.timer);
    outage.leave(&[Part::Claims, Part::Settlements, Part::Leases, Part::Sweeps, Part::Silence]);
    let report = shared.report();
    tell_left(&report.left);
    tracing::info!(%worker, done = report.done, "worker ended");
    failed.map_or(Ok(report), Err)
}

/// Says what was not waited for.
fn tell_left(left: &Left) {
    if left.is_empty() {
        return;
    }
    let named: Vec<String> =
        left.tasks.iter().take(10).map(|task| format!("{} #{}", task.queue, task.id)).collect();
    tracing::warn!(
        running = left.running,
        unsettled = left.unsettled,
        tasks = named.join(", "),
        "the worker ended without waiting for some tasks; they come back when their leases end"
    );
}

/// Tells of tasks that failed without a settlement. A store that is away must
/// not hold the crew up.
async fn tell_failed(shared: &Shared) {
    let ids = shared.heartbeat.take_failed();
    if !ids.is_empty() {
        let store = shared.mill.store();
        let told = shared.settler.tell_expired(&*store, ids);
        if shared.stop.farewell(FAREWELL, told).await.is_none() {
            tracing::warn!("tasks failed for good, and the store does not say which");
        }
    }
}

struct Crew {
    shared: Arc<Shared>,
    processors: JoinSet<Option<StoreError>>,
    numbers: HashMap<Id, usize>,
}

impl Crew {
    fn new(shared: Arc<Shared>) -> Self {
        Crew { shared, processors: JoinSet::new(), numbers: HashMap::new() }
    }

    /// Keeps the processors at their number. Returns what a draining one gave
    /// up for.
    async fn work(mut self) -> Option<StoreError> {
        let shared = self.shared.clone();
        let mut wish = shared.wish.subscribe();
        let mut ask = shared.timer.now();
        let (mut asked, mut aborted, mut failed) = (false, false, None);
        self.fill();
        loop {
            if self.processors.is_empty() && (asked || shared.terms.drain) {
                return failed;
            }
            tokio::select! {
                ended = self.processors.join_next_with_id(), if !self.processors.is_empty() => {
                    match ended {
                        Some(Ok((id, error))) => {
                            self.numbers.remove(&id);
                            failed = failed.or(error);
                        }
                        Some(Err(error)) if error.is_cancelled() => {}
                        Some(Err(error)) => {
                            // Its leases run out and the tasks come back.
                            tracing::error!(%error, "a processor ended badly");
                            if let Some(number) = self.numbers.remove(&error.id()) {
                                shared.cycles.left(number);
                            }
                        }
                        None => {}
                    }
                    if !asked && !shared.terms.drain {
                        self.fill();
                    }
                }
                () = shared.stop.asked(), if !asked => {
                    asked = true;
                    tracing::info!(worker = %shared.worker, "worker stops: no more claims");
                }
                // Handlers were cancelled and left alone by then: who is still
                // here waits for a store that is away.
                () = shared.stop.reached(Phase::GivesUp), if !aborted => {
                    aborted = true;
                    self.processors.abort_all();
                }
                _ = wish.changed(), if !asked => self.fill(),
                () = shared.timer.sleep_until(ask) => {
                    ask = shared.timer.now() + ASK;
                    self.look_at_store();
                    if !aborted {
                        tell_failed(&shared).await;
                    }
                }
            }
        }
    }

    /// Starts the processors that are missing.
    fn fill(&mut self) {
        let wished = self.shared.wish.borrow().running();
        for number in 0..wished {
            if self.numbers.values().any(|running| *running == number) {
                continue;
            }
            let processor = Processor::new(self.shared.clone(), number);
            let started = self.processors.spawn(processor.run());
            self.numbers.insert(started.id(), number);
        }
    }

    /// Says when the store goes away and when it is back.
    fn look_at_store(&self) {
        let (outage, timer) = (self.shared.mill.outage(), &self.shared.timer);
        match self.shared.heartbeat.away() {
            Some(silent) => outage.silent(Part::Silence, silent, timer.now()),
            None => outage.answered(Part::Silence, timer),
        }
        outage.tell(timer);
        self.shared.heartbeat.tell();
    }
}
