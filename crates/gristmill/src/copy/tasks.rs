//! A copy's tasks: read in pages by number, imported page by page.

use std::collections::BTreeSet;

use gristmill_core::{
    Import, ImportAnswer, ImportTask, ListRequest, Order, StandingPlace, State, Store, StoreError,
    Task, TaskFilter, TaskId, WentAway, WorkerId,
};

use super::CopiedQueue;

/// Payload bytes a page should hold: what a copy keeps in memory.
const PAGE_BYTES: usize = 16 << 20;
/// The first page, before anything is known of the payloads' size.
const FIRST_PAGE: usize = 16;

/// The tasks of one queue on their way.
pub(super) struct Tasks<'a> {
    from: &'a dyn Store,
    to: &'a dyn Store,
    /// Names the source in its tasks' marks.
    origin: &'a WorkerId,
    copied: &'a mut CopiedQueue,
    next: Option<ListRequest>,
    went: WentAway,
}

impl<'a> Tasks<'a> {
    pub(super) fn new(
        from: &'a dyn Store,
        to: &'a dyn Store,
        origin: &'a WorkerId,
        copied: &'a mut CopiedQueue,
    ) -> Self {
        let filter = TaskFilter { queue: Some(copied.queue.clone()), ..TaskFilter::default() };
        let order = Order::Oldest;
        let next = Some(ListRequest { filter, order, after: None, limit: FIRST_PAGE });
        let went = WentAway { tasks: 0, last: TaskId(0) };
        Tasks { from, to, origin, copied, next, went }
    }

    /// All that stands in the target now, or nothing when some could not go.
    pub(super) fn went(&self) -> Option<WentAway> {
        let left = self.copied.duplicates.len() + self.copied.refused.len();
        (left == 0).then_some(self.went)
    }

    /// Copies one page; returns how many tasks it had, or nothing at the end.
    pub(super) async fn step(&mut self) -> Result<Option<u64>, StoreError> {
        let Some(mut request) = self.next.take() else {
            return Ok(None);
        };
        let page = self.from.list(request.clone()).await?;
        let seen = page.tasks.len();
        request.limit = self.next_limit(&page.tasks).unwrap_or(request.limit);
        let standing = |task: &Task| matches!(task.state, State::Pending | State::Failed);
        let tasks: Vec<Task> = page.tasks.into_iter().filter(standing).collect();
        self.import(tasks).await?;
        if page.next.is_some() {
            request.after = page.next;
            self.next = Some(request);
        }
        Ok(Some(seen as u64))
    }

    /// As many as fit in memory, by the size of the last ones.
    fn next_limit(&self, tasks: &[Task]) -> Option<usize> {
        let bytes: usize = tasks.iter().map(|task| task.payload.bytes.len()).sum();
        let most = self.from.limits().page.min(self.to.limits().put_tasks);
        (!tasks.is_empty()).then(|| (PAGE_BYTES / (bytes / tasks.len()).max(1)).clamp(1, most))
    }

    async fn import(&mut self, tasks: Vec<Task>) -> Result<(), StoreError> {
        if tasks.is_empty() {
            return Ok(());
        }
        let in_flight = self.in_flight(&tasks).await?;
        let ids: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
        self.went.tasks += ids.len() as u64;
        self.went.last = ids.last().copied().unwrap_or(self.went.last);
        let tasks = tasks.into_iter().map(|task| ImportTask {
            mark: mark(self.origin, &task),
            in_flight: in_flight.contains(&task.id),
            task,
        });
        let import = Import { queue: self.copied.queue.clone(), tasks: tasks.collect() };
        let answers = self.to.import(import).await?;
        for (id, answer) in ids.into_iter().zip(answers) {
            match answer {
                ImportAnswer::Imported { .. } => self.copied.imported += 1,
                ImportAnswer::Already { .. } => self.copied.already += 1,
                ImportAnswer::Duplicate { .. } => self.copied.duplicates.push(id),
                ImportAnswer::Refused(why) => self.copied.refused.push((id, why)),
            }
        }
        Ok(())
    }

    /// Which of these hold their key's in-flight place. Only a task that was
    /// claimed can, so others are not asked about.
    async fn in_flight(&self, tasks: &[Task]) -> Result<BTreeSet<TaskId>, StoreError> {
        let claimed = tasks.iter().filter(|task| task.state == State::Pending && task.claims > 0);
        let keys: BTreeSet<String> = claimed.filter_map(|task| task.key.clone()).collect();
        if keys.is_empty() {
            return Ok(BTreeSet::new());
        }
        let keys: Vec<String> = keys.into_iter().collect();
        let standing = self.from.find(&self.copied.queue, &keys).await?;
        let in_flight = standing.into_iter().filter(|s| s.place == StandingPlace::InFlight);
        Ok(in_flight.map(|standing| standing.id).collect())
    }
}

/// Names a task over all stores. Its number and birth alone would not: a task
/// that comes back keeps its birth and may have the same number in two stores.
fn mark(origin: &WorkerId, task: &Task) -> String {
    format!("copy:{origin}:{}:{}", task.id, task.created_at.as_micros())
}
