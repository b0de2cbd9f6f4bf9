//! Reading tasks: one, or those of some keys. Pages of them are in `list.rs`.

use gristmill_core::{KeyStanding, QueueName, Result, StandingPlace, Task, TaskId, Token};

use crate::answer::column;
use crate::errors::corrupt;
use crate::row;
use crate::sql::{Sql, at};
use crate::store::Inner;
use crate::wire::Uuid;

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
