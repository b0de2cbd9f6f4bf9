//! A copy's schedules: paused in the source, declared in the target.

use gristmill_core::policy::next_fire::FireTimes;
use gristmill_core::{Schedule, Store, StoreError, Timestamp};

use super::COPIER;

/// Pauses the source's schedules.
pub(super) async fn pause(from: &dyn Store) -> Result<(), StoreError> {
    for schedule in from.schedules().await? {
        if !schedule.paused {
            from.pause_schedule(&schedule.declared.name, true, COPIER).await?;
        }
    }
    Ok(())
}

/// Declares the source's schedules in the target. Returns how many there are,
/// and which had fires that nobody decided.
pub(super) async fn copy(
    from: &dyn Store,
    to: &dyn Store,
) -> Result<(u64, Vec<String>), StoreError> {
    let mut undecided = Vec::new();
    let schedules = from.schedules().await?;
    for schedule in &schedules {
        let standing = to.declare_schedule(schedule.declared.clone()).await?;
        let name = &schedule.declared.name;
        let by_hand = schedule.paused && !paused_by_copy(schedule);
        // Where the target was a copy's source, its schedules rest since then.
        let rests = paused_by_copy(&standing);
        if by_hand && (rests || !standing.paused) {
            let by = schedule.paused_by.as_deref().unwrap_or(COPIER);
            to.pause_schedule(name, true, by).await?;
        } else if rests {
            to.pause_schedule(name, false, COPIER).await?;
        }
        // The target decides what comes after its own first sight of it, or
        // after its rest.
        if !by_hand && (rests || !standing.paused) {
            let now = to.schedules().await?.into_iter().find(|s| s.declared.name == *name);
            if now.is_some_and(|standing| is_due(schedule, standing.decided_until)) {
                undecided.push(name.to_string());
            }
        }
    }
    Ok((schedules.len() as u64, undecided))
}

fn paused_by_copy(schedule: &Schedule) -> bool {
    schedule.paused && schedule.paused_by.as_deref() == Some(COPIER)
}

/// Whether a fire lies between what is decided and that instant.
fn is_due(schedule: &Schedule, until: Timestamp) -> bool {
    let declared = &schedule.declared;
    // One that cannot be read never fires; the target has refused it by now.
    FireTimes::new(&declared.rule, &declared.zone)
        .ok()
        .and_then(|times| times.after(schedule.decided_until))
        .is_some_and(|next| next <= until)
}
