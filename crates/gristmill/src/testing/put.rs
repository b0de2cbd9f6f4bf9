//! What was put and stands: typed tasks, and assertions on them.

use gristmill_core::{ListRequest, QueueName, State, StoreError, Task, TaskFilter};

use super::TestMill;
use crate::{Error, TaskType};

impl TestMill {
    /// The tasks of a type that wait, as they were put: the payload with
    /// everything else about it, oldest first.
    ///
    /// # Errors
    /// When there is no such queue.
    pub async fn pending<T: TaskType>(&self) -> Result<Vec<Task>, Error> {
        let filter = TaskFilter {
            queue: Some(QueueName::new(T::QUEUE)?),
            state: Some(State::Pending),
            ..TaskFilter::default()
        };
        let mut tasks = Vec::new();
        let mut request = ListRequest { filter, limit: 1_000, ..ListRequest::default() };
        loop {
            let page = self.inspect().list(request.clone()).await?;
            tasks.extend(page.tasks);
            let Some(next) = page.next else { return Ok(tasks) };
            request.after = Some(next);
        }
    }

    /// The tasks of a type that wait, oldest first.
    ///
    /// # Errors
    /// When there is no such queue or a payload is not of the type.
    pub async fn put_tasks<T: TaskType>(&self) -> Result<Vec<T>, Error> {
        let tasks = self.pending::<T>().await?;
        tasks.iter().map(read).collect()
    }

    /// Asserts that so many tasks of a type wait, and returns them, oldest
    /// first.
    ///
    /// # Panics
    /// When there are more or fewer, or when they cannot be read.
    pub async fn assert_put<T: TaskType>(&self, count: usize) -> Vec<T> {
        let tasks = self.put_tasks::<T>().await;
        assert!(tasks.is_ok(), "the tasks of {} cannot be read: {:?}", T::QUEUE, tasks.err());
        let tasks = tasks.unwrap_or_default();
        let found = tasks.len();
        assert!(found == count, "{count} tasks were expected on {}, {found} wait", T::QUEUE);
        tasks
    }
}

fn read<T: TaskType>(task: &Task) -> Result<T, Error> {
    T::from_payload(&task.payload).map_err(|e| {
        StoreError::invalid(format!("task {} is of another type: {e}", task.id)).into()
    })
}
