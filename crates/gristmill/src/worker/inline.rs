//! A worker that runs inline: on the caller's task, without threads, timers or
//! heartbeat, until nothing is due. For tests of handlers.

use std::sync::Arc;

use super::heartbeat;
use super::plan::Plan;
use super::report::WorkReport;
use super::runner;
use crate::Error;

/// Runs everything that is due, follow-ups included, one claim after the
/// other. Time does not move meanwhile unless the caller's handlers move it.
pub(crate) async fn run_until_idle(plan: &Plan) -> Result<WorkReport, Error> {
    let served = plan.served().await?;
    let mut site = plan.site(served, heartbeat::Handle::idle(plan.timer()), plan.stop())?;
    site.terms.timed = false;
    let site = Arc::new(site);
    let store = site.mill.store();
    site.heartbeat.note_failed(&store.sweep().await?.failed);
    loop {
        let mut found = false;
        for served in &site.served {
            let Some(claim) = site.claim(served, false).await?.found else { continue };
            found = true;
            runner::run(site.clone(), claim.hand.clone(), 0).await;
            site.settler.flush(&*store, &site.stop).await;
            site.settler.settle_aside(&*store, &site.stop).await;
        }
        site.settler.tell_expired(&*store, site.heartbeat.take_failed()).await;
        if !found {
            return Ok(site.settler.report());
        }
    }
}
