//! A worker that runs inline: on the caller's task, without threads, timers or
//! heartbeat, until nothing is due. For tests of handlers.

use std::sync::Arc;

use crate::Error;
use crate::worker::control::plan::Plan;
use crate::worker::control::report::WorkReport;
use crate::worker::heartbeat;
use crate::worker::run::runner;

/// Runs everything that is due, follow-ups included, one claim after the
/// other. Time does not move meanwhile unless the caller's handlers move it.
pub(crate) async fn run_until_idle(plan: &Plan) -> Result<WorkReport, Error> {
    let served = plan.served().await?;
    let mut shared = plan.shared(served, heartbeat::Handle::idle(plan.timer()), plan.stop())?;
    shared.terms.timed = false;
    let shared = Arc::new(shared);
    let store = shared.mill.store();
    shared.heartbeat.note_failed(&store.sweep().await?.failed);
    loop {
        let mut found = false;
        for served in &shared.served {
            let Some(claim) = shared.claim(served, false).await?.found else { continue };
            found = true;
            runner::run(shared.clone(), claim.hand.clone(), 0).await;
            shared.settler.flush(&*store, &shared.stop).await;
            shared.settler.settle_aside(&*store, &shared.stop).await;
        }
        shared.settler.tell_expired(&*store, shared.heartbeat.take_failed()).await;
        if !found {
            return Ok(shared.settler.report());
        }
    }
}
