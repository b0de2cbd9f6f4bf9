//! The operator: retries, resolves, discards and cancels what it finds, stops
//! queues for a moment and lets them go on.

use std::time::Duration;

use gristmill_core::{Action, ListRequest, State, TaskFilter, TaskId};

use super::super::plan;
use super::{AGAIN, Client};

impl Client {
    pub(super) async fn operate(&mut self) {
        let queues = plan::put_to();
        while !self.has_to_leave() {
            let Some(queue) = self.dice.pick(&queues) else { return };
            let tried = match self.dice.below(8) {
                0 | 1 => self.on_failed(Action::Retry).await,
                2 => self.on_failed(Action::Discard).await,
                3 => self.on_failed(Action::Resolve).await,
                4 | 5 => self.cancel_one().await,
                6 => self.noted.operate(Action::Retry, Vec::new(), Some(queue), 5).await,
                _ => self.stop_for_a_moment(queue).await,
            };
            if tried.is_err() {
                tokio::time::sleep(AGAIN).await;
            }
            // A person's work: it stays slow however fast the others are.
            let nap = 1 + self.dice.throw() % 60;
            tokio::time::sleep(Duration::from_millis(nap)).await;
        }
    }

    /// Some tasks in this state, by number.
    async fn some(&mut self, state: Option<State>) -> gristmill_core::Result<Vec<TaskId>> {
        let filter = TaskFilter { state, ..TaskFilter::default() };
        let request = ListRequest { filter, limit: 40, ..ListRequest::default() };
        let page = self.noted.store.list(request).await?;
        Ok(page.tasks.iter().map(|task| task.id).collect())
    }

    async fn on_failed(&mut self, action: Action) -> gristmill_core::Result<()> {
        let failed = self.some(Some(State::Failed)).await?;
        match self.dice.pick(&failed) {
            Some(task) => self.noted.operate(action, vec![task], None, 1).await,
            None => Ok(()),
        }
    }

    async fn cancel_one(&mut self) -> gristmill_core::Result<()> {
        let state = [State::Pending, State::Processing][self.dice.below(2)];
        let found = self.some(Some(state)).await?;
        match self.dice.pick(&found) {
            Some(task) => self.noted.operate(Action::Cancel, vec![task], None, 1).await,
            None => Ok(()),
        }
    }

    async fn stop_for_a_moment(&mut self, queue: &str) -> gristmill_core::Result<()> {
        self.noted.pause(queue, true).await?;
        self.pause(Duration::from_millis(80)).await;
        // Whatever becomes of it: at the end every queue is resumed.
        self.noted.pause(queue, false).await
    }
}
