//! Reading what stands: the one reading API that observers use.

use std::time::Duration;

use gristmill_core::{
    Assignment, KeyStanding, ListRequest, Minute, Order, Page, Queue, QueueName, QueueStats, State,
    StoreError, Task, TaskFilter, TaskId, WorkerView,
};
use gristmill_text::ControlPlane;

use crate::{Error, Mill};

/// Reads of a mill's store.
#[derive(Debug, Clone, Copy)]
pub struct Inspect<'a> {
    mill: &'a Mill,
}

impl<'a> Inspect<'a> {
    pub(crate) fn new(mill: &'a Mill) -> Self {
        Inspect { mill }
    }

    /// All queues' numbers.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn stats(&self) -> Result<Vec<QueueStats>, Error> {
        Ok(self.mill.store().stats().await?)
    }

    /// One queue's numbers.
    ///
    /// # Errors
    /// When there is no such queue or the store cannot answer.
    pub async fn queue(&self, name: &str) -> Result<QueueStats, Error> {
        let stats = self.stats().await?;
        let names: Vec<String> = stats.iter().map(|q| q.queue.to_string()).collect();
        stats.into_iter().find(|q| q.queue.as_str() == name).ok_or_else(|| {
            let known = names.iter().map(String::as_str);
            let suggestion = gristmill_core::name::did_you_mean(name, known).map(str::to_owned);
            StoreError::UnknownQueue { name: name.to_owned(), suggestion }.into()
        })
    }

    /// All queues with their settings.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn queues(&self) -> Result<Vec<Queue>, Error> {
        Ok(self.mill.store().queues().await?)
    }

    /// One task.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn task(&self, id: TaskId) -> Result<Option<Task>, Error> {
        Ok(self.mill.store().get(id).await?)
    }

    /// A page of tasks.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn list(&self, request: ListRequest) -> Result<Page, Error> {
        Ok(self.mill.store().list(request).await?)
    }

    /// The newest failed tasks of a queue, or of all.
    ///
    /// # Errors
    /// When the queue's name cannot be used or the store cannot answer.
    pub async fn failed(&self, queue: Option<&str>, limit: usize) -> Result<Vec<Task>, Error> {
        let queue = queue.map(QueueName::new).transpose()?;
        let filter = TaskFilter { queue, state: Some(State::Failed), ..TaskFilter::default() };
        let mut request = ListRequest { filter, order: Order::Newest, after: None, limit };
        let mut tasks = Vec::new();
        loop {
            let page = self.list(request.clone()).await?;
            tasks.extend(page.tasks);
            request.after = page.next;
            request.limit = limit.saturating_sub(tasks.len());
            if request.after.is_none() || request.limit == 0 {
                return Ok(tasks);
            }
        }
    }

    /// Which of these keys stand, and where.
    ///
    /// # Errors
    /// When there is no such queue or the store cannot answer.
    pub async fn find(&self, queue: &str, keys: &[String]) -> Result<Vec<KeyStanding>, Error> {
        Ok(self.mill.store().find(&QueueName::new(queue)?, keys).await?)
    }

    /// A queue's last minutes.
    ///
    /// # Errors
    /// When there is no such queue or the store cannot answer.
    pub async fn minutes(&self, queue: &str, back: Duration) -> Result<Vec<Minute>, Error> {
        Ok(self.mill.store().minutes(&QueueName::new(queue)?, back).await?)
    }

    /// The manager's last word on who serves which queue.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn assignment(&self) -> Result<Option<Assignment>, Error> {
        Ok(self.mill.store().assignment().await?)
    }

    /// Workers heard of lately.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn workers(&self) -> Result<Vec<WorkerView>, Error> {
        Ok(self.mill.store().workers().await?)
    }
}
