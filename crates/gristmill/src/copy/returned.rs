//! A target that was a copy's source itself: the way back.
//!
//! It kept its tasks when they went away. They run elsewhere or ran there, so
//! they are taken out before anything comes back; else they would run twice.

use gristmill_core::{
    Action, CopyPause, ListRequest, Operation, Order, Queue, QueueName, Selection, State, Store,
    StoreError, TaskFilter, TaskId, WentAway,
};

use super::{COPIER, CopyError};

/// A queue of the target whose tasks went away, and what went.
pub(super) struct Returned {
    queue: QueueName,
    whole: Option<WentAway>,
}

/// The target's queues that were copied from and shall be copied to. Nothing is
/// changed yet.
///
/// # Errors
/// When it is not certain that all their tasks went away: then the ones that
/// did and the ones that did not cannot be told apart.
pub(super) async fn look(to: &dyn Store, sources: &[Queue]) -> Result<Vec<Returned>, CopyError> {
    let mut returned = Vec::new();
    for target in to.queues().await? {
        let Some(CopyPause::Away { whole, .. }) = CopyPause::of(&target) else { continue };
        if !sources.iter().any(|source| source.name == target.name) {
            continue;
        }
        let queue = Returned { queue: target.name, whole };
        let standing = queue.standing(to).await?;
        // A put whose transaction was open while its neighbours were copied
        // has a low number and never went.
        if standing != whole.map_or(0, |whole| whole.tasks) {
            return Err(CopyError::NotAllAway(queue.queue));
        }
        returned.push(queue);
    }
    Ok(returned)
}

impl Returned {
    /// Takes out what went away, and nothing else.
    pub(super) async fn empty(&self, to: &dyn Store) -> Result<(), StoreError> {
        let mut after = None;
        while let Some((ids, next)) = self.page(to, after).await? {
            // One of the two applies to each.
            for action in [Action::Cancel, Action::Discard] {
                let selection = Selection::Ids(ids.clone());
                let note = Some("copied to another store".to_owned());
                let by = COPIER.to_owned();
                to.operate(Operation {
                    action,
                    selection,
                    limit: ids.len(),
                    by,
                    note,
                    start: gristmill_core::Start::Now,
                })
                .await?;
            }
            after = next;
            if after.is_none() {
                break;
            }
        }
        Ok(())
    }

    async fn standing(&self, to: &dyn Store) -> Result<u64, StoreError> {
        let (mut standing, mut after) = (0, None);
        while let Some((ids, next)) = self.page(to, after).await? {
            standing += ids.len() as u64;
            after = next;
            if after.is_none() {
                break;
            }
        }
        Ok(standing)
    }

    /// A page of the tasks that are meant, and where to go on.
    async fn page(
        &self,
        to: &dyn Store,
        after: Option<TaskId>,
    ) -> Result<Option<(Vec<TaskId>, Option<TaskId>)>, StoreError> {
        // Without a word of what went, all that stands is in question.
        let last = self.whole.map(|whole| whole.last);
        if last.is_some_and(|last| after >= Some(last)) {
            return Ok(None);
        }
        let filter = TaskFilter { queue: Some(self.queue.clone()), ..TaskFilter::default() };
        let limit = to.limits().page;
        let page = to.list(ListRequest { filter, order: Order::Oldest, after, limit }).await?;
        let meant = page.tasks.iter().filter(|task| {
            matches!(task.state, State::Pending | State::Failed)
                && last.is_none_or(|last| task.id <= last)
        });
        Ok(Some((meant.map(|task| task.id).collect(), page.next)))
    }
}
