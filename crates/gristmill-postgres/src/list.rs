//! A page of tasks: which ones the database says (`function/list.sql`), then those are read.

use gristmill_core::{Action, ListRequest, Order, Page, Result, State, Task, TaskFilter, TaskId};
use tokio_postgres::Row;

use crate::answer::{column, readable};
use crate::row;
use crate::sql::{Sql, at};
use crate::store::Inner;
use crate::wire::At;

/// Most entries of the claim order that are read for a page because no index has a queue's
/// tasks by their ids: half a million take 40 ms. A queue with more is walked to. An index
/// of queues and ids would lead to it at once, and cost every put 0.7 microseconds (2.8 of
/// bare inserts) and a fifth more of the log.
const READ: i64 = 1_000_000;
/// The same for a step of an operation, of which there are many.
const READ_ACTING: i64 = 200_000;

/// What a look found.
#[derive(Default)]
struct Found {
    rows: Vec<Row>,
    next: Option<TaskId>,
    looked: u64,
}

impl Inner {
    /// A page of tasks by id.
    pub(crate) async fn list(&self, request: &ListRequest) -> Result<Page> {
        let limit = request.limit.clamp(1, self.limits.page);
        let states = match request.filter.state {
            Some(state) => vec![state],
            None => vec![State::Pending, State::Processing, State::Failed],
        };
        let (filter, order) = (&request.filter, request.order);
        let found = self.looked(filter, &states, order, request.after, limit, READ).await?;
        let mut tasks: Vec<Task> = readable(&found.rows, "a task", row::task);
        tasks.retain(|task| request.filter.matches(task));
        Ok(Page { tasks, next: found.next, looked: found.looked })
    }

    /// The tasks an operator's action on a filter means, and where to go on.
    pub(crate) async fn meant(
        &self,
        action: Action,
        filter: &TaskFilter,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<(Vec<TaskId>, Option<TaskId>)> {
        let meant = |state: &State| {
            action.applies_to(*state) && filter.state.is_none_or(|asked| asked == *state)
        };
        let states: Vec<State> = State::ALL.into_iter().filter(meant).collect();
        if states.is_empty() {
            return Ok((Vec::new(), None));
        }
        let found = self.looked(filter, &states, Order::Oldest, after, limit, READ_ACTING).await?;
        // One that cannot be read is meant: it is to be acted on, too.
        let fits = found.rows.iter().filter(|row| {
            row::task(row).map_or(true, |task| task.damaged.is_some() || filter.matches(&task))
        });
        Ok((fits.map(row::id).collect::<Result<_>>()?, found.next))
    }

    async fn looked(
        &self,
        filter: &TaskFilter,
        states: &[State],
        order: Order,
        after: Option<TaskId>,
        limit: usize,
        read: i64,
    ) -> Result<Found> {
        let queue = match &filter.queue {
            None => None,
            Some(name) => match self.find_queue(name).await? {
                Some(queue) => Some(i32::try_from(queue.number).unwrap_or(i32::MAX)),
                None => return Ok(Found::default()),
            },
        };
        let newest = order == Order::Newest;
        let edge = if newest { i64::MAX } else { i64::MIN };
        let states: Vec<&str> = states.iter().map(|state| state.as_str()).collect();
        let int = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
        let looked = self
            .pool
            .read(
                Sql::Look,
                &[
                    &after.map_or(edge, |id| id.0),
                    &newest,
                    &int(limit),
                    &int(self.limits.looks),
                    &states,
                    &queue,
                    &filter.key,
                    &filter.group,
                    &filter.source,
                    &filter.error_contains,
                    &filter.claims_over.map(|n| i32::try_from(n).unwrap_or(i32::MAX)),
                    &filter.stood_at.map(At),
                    &filter.blocked,
                    &filter.runs_by.map(At),
                    &filter.runs_after.map(At),
                    &read,
                ],
            )
            .await?;
        let Some(answer) = looked.first() else { return Ok(Found::default()) };
        let ids: Vec<i64> = column(answer, at!(Look.ids))?;
        let next: Option<i64> = column(answer, at!(Look.next))?;
        let looked: i64 = column(answer, at!(Look.looked))?;
        let mut rows = match ids.is_empty() {
            true => Vec::new(),
            false => self.pool.read(Sql::List, &[&ids, &states]).await?,
        };
        // One whose number cannot be read comes first.
        rows.sort_by_key(|row| row::id(row).map_or(i64::MIN, |id| id.0));
        if newest {
            rows.reverse();
        }
        let looked = u64::try_from(looked).unwrap_or_default();
        Ok(Found { rows, next: next.map(TaskId), looked })
    }
}
