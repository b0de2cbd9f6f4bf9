//! Puts inside the caller's own transaction.

use gristmill_core::{PutReport, PutRequest, QueueName, Refusal, StoreError};

use crate::{Error, Mill, RawTask, TaskType};

impl Mill {
    /// Puts tasks inside your own transaction on the same SQLite file: they
    /// stand if and only if it commits. Call `committed()` on the guard after
    /// the commit to wake workers at once.
    ///
    /// # Errors
    /// When this mill's store is not SQLite, a task is refused, or the put
    /// itself fails. Roll the transaction back then: tasks that were not refused
    /// are in it. The store's own `put_in` ([`Mill::sqlite`]) answers for each.
    pub fn put_in<T: TaskType>(
        &self,
        transaction: &gristmill_sqlite::rusqlite::Transaction<'_>,
        tasks: impl IntoIterator<Item = T>,
    ) -> Result<(PutReport, gristmill_sqlite::WakeGuard), Error> {
        let sqlite = self.sqlite().ok_or(Error::NotSqlite("a put in your transaction"))?;
        let (report, guard) = sqlite.put_in(transaction, &request_of(tasks)?)?;
        Ok((told::<T>(report)?, guard))
    }

    /// Puts tasks inside your own transaction on the same PostgreSQL database:
    /// they stand if and only if it commits. Call `committed()` on the guard
    /// after the commit to wake workers at once.
    ///
    /// # Errors
    /// When this mill's store is not PostgreSQL, a task is refused, or the put
    /// itself fails. Roll the transaction back then: tasks that were not refused
    /// are in it. The store's own `put_in` ([`Mill::postgres`]) answers for each.
    pub async fn put_in_postgres<T: TaskType>(
        &self,
        transaction: &gristmill_postgres::tokio_postgres::Transaction<'_>,
        tasks: impl IntoIterator<Item = T>,
    ) -> Result<(PutReport, gristmill_postgres::WakeGuard), Error> {
        let needs = "a put in your transaction on PostgreSQL";
        let postgres = self.postgres().ok_or(Error::NotPostgres(needs))?;
        // Encoded before the first wait: the tasks need not outlive it.
        let request = request_of(tasks)?;
        let (report, guard) = postgres.put_in(transaction, &request).await?;
        Ok((told::<T>(report)?, guard))
    }

    /// As [`Mill::put_in_postgres`], inside your own transaction of sqlx 0.9.
    ///
    /// ```no_run
    /// # use gristmill::{Mill, TaskType};
    /// # use gristmill::postgres::sqlx_core as sqlx;
    /// # use gristmill::postgres::sqlx_postgres::Postgres;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct PriceChanged { item: i64 }
    /// # impl TaskType for PriceChanged { const QUEUE: &'static str = "prices"; }
    /// async fn change(
    ///     mill: &Mill,
    ///     pool: &sqlx::pool::Pool<Postgres>, // sqlx::PgPool
    ///     item: i64,
    /// ) -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut transaction = pool.begin().await?;
    ///     // your own statements on `&mut *transaction`
    ///     let changed = [PriceChanged { item }];
    ///     let (_report, wake) = mill.put_in_sqlx(&mut transaction, changed).await?;
    ///     transaction.commit().await?;
    ///     wake.committed();
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Mill::put_in_postgres`].
    #[cfg(feature = "sqlx")]
    pub async fn put_in_sqlx<T: TaskType>(
        &self,
        transaction: &mut gristmill_postgres::sqlx::Transaction<'_>,
        tasks: impl IntoIterator<Item = T>,
    ) -> Result<(PutReport, gristmill_postgres::WakeGuard), Error> {
        let needs = "a put in your transaction on PostgreSQL";
        let postgres = self.postgres().ok_or(Error::NotPostgres(needs))?;
        let request = request_of(tasks)?;
        let (report, guard) = postgres.put_in_sqlx(transaction, &request).await?;
        Ok((told::<T>(report)?, guard))
    }
}

/// Typed tasks as the store takes them.
fn request_of<T: TaskType>(tasks: impl IntoIterator<Item = T>) -> Result<PutRequest, Error> {
    let tasks = tasks
        .into_iter()
        .map(|task| RawTask::typed(&task)?.into_new_task())
        .collect::<Result<Vec<_>, Error>>()?;
    Ok(PutRequest { queue: QueueName::new(T::QUEUE)?, tasks, atomic: false })
}

/// Tells of what was skipped; a task that was refused is an error.
fn told<T: TaskType>(report: PutReport) -> Result<PutReport, Error> {
    match report.first_refusal().cloned() {
        Some(Refusal::UnknownQueue { name, suggestion }) => {
            return Err(StoreError::UnknownQueue { name, suggestion }.into());
        }
        Some(why) => return Err(why.into()),
        None => {}
    }
    let (skipped, enqueued) = (report.duplicates() as u64, report.enqueued() as u64);
    crate::bulk::tell_skipped(T::QUEUE, skipped, enqueued);
    Ok(report)
}
