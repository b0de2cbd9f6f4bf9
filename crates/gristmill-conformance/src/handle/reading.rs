//! Reading a store under test, and operating on its tasks by hand.

use gristmill_core::{
    Action, ListRequest, Operation, OperationAnswer, QueueName, Selection, StandingPlace, State,
    Task, TaskFilter, TaskId,
};

use super::Handle;

impl Handle {
    // ---- reading ---------------------------------------------------------

    pub(crate) async fn get(&self, id: TaskId) -> Option<Task> {
        self.store.get(id).await.expect("a read")
    }

    pub(crate) async fn the(&self, id: TaskId) -> Task {
        let found = self.get(id).await;
        found.unwrap_or_else(|| panic!("task {id} is gone"))
    }

    /// All tasks that match, page by page.
    pub(crate) async fn list(&self, filter: TaskFilter) -> Vec<Task> {
        let mut request =
            ListRequest { filter, limit: self.store.limits().page, ..ListRequest::default() };
        let mut found = Vec::new();
        loop {
            let page = self.store.list(request.clone()).await.expect("a page");
            found.extend(page.tasks);
            assert!(page.next.is_none() || page.next > request.after, "onwards");
            match page.next {
                Some(next) => request.after = Some(next),
                None => return found,
            }
        }
    }

    /// Every task there is, whatever its state: kept done tasks are listed
    /// apart, since they are shown only when asked for.
    pub(crate) async fn all(&self) -> Vec<Task> {
        let mut found = self.list(TaskFilter::default()).await;
        assert!(found.iter().all(|task| task.state != State::Done), "done is not asked for");
        let done = TaskFilter { state: Some(State::Done), ..TaskFilter::default() };
        found.extend(self.list(done).await);
        found.sort_by_key(|task| task.id);
        found
    }

    /// Which places a key's tasks hold.
    pub(crate) async fn places(
        &self,
        queue: &QueueName,
        key: &str,
    ) -> Vec<(TaskId, StandingPlace)> {
        let found = self.store.find(queue, &[key.to_owned()]).await;
        let found = found.expect("a find");
        assert!(found.iter().all(|s| s.key == key), "of that key: {found:?}");
        found.into_iter().map(|s| (s.id, s.place)).collect()
    }

    // ---- operating -------------------------------------------------------

    /// An operator's action on some tasks, by id.
    pub(crate) async fn operate(
        &self,
        action: Action,
        ids: &[TaskId],
    ) -> Vec<(TaskId, OperationAnswer)> {
        let operation = Operation {
            action,
            selection: Selection::Ids(ids.to_vec()),
            limit: 1_000,
            by: "operator".to_owned(),
            note: Some("because".to_owned()),
            start: gristmill_core::Start::Now,
        };
        let report = self.store.operate(operation).await;
        report.expect("an operation").answers
    }

    /// An operator's action on one task.
    pub(crate) async fn operate_one(&self, action: Action, id: TaskId) -> OperationAnswer {
        let answers = self.operate(action, &[id]).await;
        assert_eq!(answers.len(), 1, "one answer: {answers:?}");
        assert_eq!(answers[0].0, id, "about the task that was meant");
        answers[0].1
    }
}
