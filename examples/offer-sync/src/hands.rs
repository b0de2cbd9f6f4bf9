//! What a batch has in hand stays with its task, so that the task's next run finds it
//! there. A task that failed for good or was cancelled has no next run: what it had is
//! anybody's again.

use gristmill::port::State;
use gristmill::{Context, Mill, TaskId};

use crate::error::Result;
use crate::market::Market;

/// Frees what tasks have in hand that no longer stand, but `own`.
pub(crate) async fn free_of_gone(mill: &Mill, market: &Market, own: TaskId) -> Result<()> {
    for held in market.held(own.0)? {
        let task = mill.inspect().task(TaskId(held)).await?;
        let stands = |state| matches!(state, State::Pending | State::Processing);
        if !task.is_some_and(|task| stands(task.state)) {
            market.free(held)?;
        }
    }
    Ok(())
}

/// Ends a run that was cancelled. What it has in hand is free if an operator cancelled its
/// task; a run that is cancelled for another reason leaves it to the task's next.
pub(crate) async fn let_go(run: &Context, market: &Market) -> Result<()> {
    let task = run.mill().inspect().task(run.id).await?;
    if task.is_some_and(|task| task.cancel_requested && task.claims == run.claims) {
        market.free(run.id.0)?;
    }
    Err("it was cancelled".into())
}
