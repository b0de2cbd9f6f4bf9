//! Reading tasks: one, a page, or those of some keys.

use gristmill_core::{
    Action, KeyStanding, ListRequest, Order, Page, QueueName, Result, StandingPlace, State, Task,
    TaskFilter, TaskId, Token,
};
use tokio_postgres::Row;

use crate::answer::{column, readable};
use crate::errors::corrupt;
use crate::row;
use crate::sql::{Sql, at};
use crate::store::Inner;
use crate::wire::{At, Uuid};

impl Inner {
    /// One task, whatever its state.
    pub(crate) async fn get(&self, id: TaskId) -> Result<Option<Task>> {
        let rows = self.pool.read(Sql::Get, &[&id.0]).await?;
        rows.first().map(row::task).transpose()
    }

    /// The tasks that are open under a token, by id.
    pub(crate) async fn open_under(&self, token: Token) -> Result<Vec<TaskId>> {
        let rows = self.pool.read(Sql::OpenUnder, &[&Uuid(token)]).await?;
        let Some(row) = rows.first() else { return Ok(Vec::new()) };
        let mut ids: Vec<i64> = column(row, at!(OpenUnder.open))?;
        ids.sort_unstable();
        Ok(ids.into_iter().map(TaskId).collect())
    }

    /// A page of tasks by id.
    pub(crate) async fn list(&self, request: &ListRequest) -> Result<Page> {
        let limit = request.limit.clamp(1, self.limits.page);
        let states = match request.filter.state {
            Some(State::Done) => vec![State::Done],
            _ => vec![State::Pending, State::Processing, State::Failed],
        };
        let rows =
            self.matching(&request.filter, &states, request.order, request.after, limit).await?;
        let next = rows.last().map(row::id).transpose()?.filter(|_| rows.len() == limit);
        Ok(Page { tasks: readable(&rows, "a task", row::task), next })
    }

    /// The tasks an operator's action on a filter means, and where to go on.
    pub(crate) async fn meant(
        &self,
        action: Action,
        filter: &TaskFilter,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<(Vec<TaskId>, Option<TaskId>)> {
        let states: Vec<State> =
            State::ALL.into_iter().filter(|state| action.applies_to(*state)).collect();
        let rows = self.matching(filter, &states, Order::Oldest, after, limit).await?;
        let ids: Vec<TaskId> = rows.iter().map(row::id).collect::<Result<_>>()?;
        let next = ids.last().copied().filter(|_| ids.len() == limit);
        Ok((ids, next))
    }

    async fn matching(
        &self,
        filter: &TaskFilter,
        states: &[State],
        order: Order,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<Vec<Row>> {
        let queue = match &filter.queue {
            None => None,
            Some(name) => match self.find_queue(name).await? {
                Some(queue) => Some(i32::try_from(queue.number).unwrap_or(i32::MAX)),
                None => return Ok(Vec::new()),
            },
        };
        let (sql, edge) = match order {
            Order::Oldest => (Sql::ListOldest, i64::MIN),
            Order::Newest => (Sql::ListNewest, i64::MAX),
        };
        let states: Vec<&str> = states.iter().map(|state| state.as_str()).collect();
        self.pool
            .read(
                sql,
                &[
                    &after.map_or(edge, |id| id.0),
                    &i64::try_from(limit).unwrap_or(i64::MAX),
                    &filter.state.map(State::as_str),
                    &queue,
                    &filter.key,
                    &filter.group,
                    &filter.source,
                    &filter.error_contains,
                    &filter.claims_over.map(|n| i32::try_from(n).unwrap_or(i32::MAX)),
                    &states,
                    &filter.stood_at.map(At),
                ],
            )
            .await
    }

    /// The tasks that stand for these keys, by key and id.
    pub(crate) async fn find(
        &self,
        queue: &QueueName,
        keys: &[String],
    ) -> Result<Vec<KeyStanding>> {
        let number = self.number(queue).await?;
        let rows = self.pool.read(Sql::Find, &[&number, &keys]).await?;
        rows.iter()
            .map(|row| {
                let place = match column::<i32>(row, at!(Find.place))? {
                    0 => StandingPlace::Waiting,
                    1 => StandingPlace::InFlight,
                    _ => StandingPlace::Failed,
                };
                let state: &str = column(row, at!(Find.state))?;
                Ok(KeyStanding {
                    key: column(row, at!(Find.key))?,
                    id: TaskId(column(row, at!(Find.id))?),
                    place,
                    state: state.parse().map_err(|e| corrupt("a task's state", e))?,
                })
            })
            .collect()
    }
}
