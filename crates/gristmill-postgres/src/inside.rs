//! Putting and completing inside the caller's own transaction.

use std::future::Future;
use std::sync::Arc;

use gristmill_core::{
    PutAnswer, PutReport, PutRequest, QueueName, Result, SettleAnswer, Settlement, StoreError,
};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Transaction};

use crate::PostgresStore;
use crate::answer::Answer;
use crate::connection::{Texts, query_in};
use crate::errors::{Intent, fault};
use crate::put::{self, Columns, Sifted};
use crate::settle::{Asked, Settling, not_done, settled};
use crate::sql::Sql;
use crate::store::Inner;

/// Wakes workers, here and in other processes, once the caller's transaction
/// is committed.
///
/// Say [`WakeGuard::committed`] right after the commit. A guard that is dropped
/// wakes as well: a worker that looks in vain costs less than one that sleeps.
#[derive(Debug)]
#[must_use = "say `committed()` after the commit, so that workers hear of it at once"]
pub struct WakeGuard {
    inner: Arc<Inner>,
    queues: Vec<QueueName>,
}

impl WakeGuard {
    /// The transaction was committed.
    pub fn committed(self) {
        drop(self);
    }
}

impl Drop for WakeGuard {
    fn drop(&mut self) {
        self.inner.woken(&self.queues);
    }
}

/// The caller's transaction, of whichever driver it is.
pub(crate) trait Theirs: Send {
    type Row: Answer + Send + Sync;

    /// Runs one statement in it. Until the caller's commit nothing is written.
    fn ask(
        &mut self,
        texts: &Texts,
        sql: Sql,
        values: &[&(dyn ToSql + Sync)],
    ) -> impl Future<Output = Result<Vec<Self::Row>>> + Send;
}

impl Theirs for &Transaction<'_> {
    type Row = Row;

    async fn ask(
        &mut self,
        texts: &Texts,
        sql: Sql,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>> {
        query_in(self, texts, sql, values).await.map_err(|e| fault(e, Intent::Read))
    }
}

impl PostgresStore {
    /// Puts tasks in the caller's transaction: they stand when, and only when,
    /// it is committed. Nobody waits for that commit but a put of an equal key.
    /// What is answered as a duplicate is followed by a run after the commit, also
    /// when the task that stood for it ran before.
    ///
    /// # Errors
    /// As `put`, and when the transaction is on another database. PostgreSQL
    /// then lets the transaction do nothing but roll back, unless the caller
    /// set a savepoint before.
    pub async fn put_in(
        &self,
        transaction: &Transaction<'_>,
        request: &PutRequest,
    ) -> Result<(PutReport, WakeGuard)> {
        self.put_inside(&mut &*transaction, request).await
    }

    /// Settles in the caller's transaction: the handler's effect and its
    /// settlement come true together. The worker's own `done` then answers
    /// *gone*, which is success.
    ///
    /// The settlement is carried out as the transaction commits and holds nothing
    /// before: the claim's other tasks are settled and its lease is prolonged
    /// meanwhile. A lease that is lost before the commit makes the commit fail.
    ///
    /// # Errors
    /// As `settle`, when the transaction is on another database, and when a
    /// follow-up of a *done* is refused: the effect beside it would stand without
    /// what follows from it. Nothing is settled then, and the transaction is
    /// usable still.
    pub async fn complete_in(
        &self,
        transaction: &Transaction<'_>,
        settlements: &[Settlement],
    ) -> Result<(Vec<SettleAnswer>, WakeGuard)> {
        self.complete_inside(&mut &*transaction, settlements).await
    }

    pub(crate) async fn put_inside(
        &self,
        theirs: &mut impl Theirs,
        request: &PutRequest,
    ) -> Result<(PutReport, WakeGuard)> {
        put::check(request, &self.inner.limits)?;
        let PutRequest { queue, tasks, atomic } = request;
        let sifted = Sifted::new(tasks, &self.inner.limits);
        let columns = Columns::of(&sifted.fit)?;
        let values = self.inner.put_values(queue, *atomic, sifted.refused());
        let mut values = values.as_refs(&columns);
        values.push(&self.inner.id);
        let rows = theirs.ask(&self.inner.pool.texts, Sql::PutIn, &values).await?;
        let row = rows.first().ok_or_else(another_store)?;
        let report = match put::answers(row, &sifted.fit)? {
            Some(answers) => sifted.whole(answers)?,
            None => {
                let refusal = put::unknown(queue, &self.inner.queue_names().await?);
                PutReport { answers: vec![PutAnswer::Refused(refusal); tasks.len()] }
            }
        };
        let guard = WakeGuard { inner: self.inner.clone(), queues: vec![queue.clone()] };
        Ok((report, guard))
    }

    pub(crate) async fn complete_inside(
        &self,
        theirs: &mut impl Theirs,
        settlements: &[Settlement],
    ) -> Result<(Vec<SettleAnswer>, WakeGuard)> {
        let inner = &self.inner;
        let settlements: Vec<Settlement> =
            settlements.iter().map(|one| one.clone().admitted(&inner.limits)).collect();
        let settlements = settlements.as_slice();
        let mut asked = Asked::all(settlements);
        let done = loop {
            let now = inner.now();
            let settling = Settling::new(settlements, &asked, &inner.limits, false, now)?;
            let mut values = settling.values();
            values.push(&inner.id);
            let rows = theirs.ask(&inner.pool.texts, Sql::SettleIn, &values).await?;
            let row = rows.first().ok_or_else(another_store)?;
            if let Some(done) = settled(row, &asked)? {
                break done;
            }
            inner.amend(row, &mut asked).await?;
            if let Some(refused) = not_done(&asked) {
                return Err(refused);
            }
        };
        let guard = WakeGuard { inner: inner.clone(), queues: done.woken };
        Ok((done.answers, guard))
    }
}

/// Nothing was asked of it: the statement has the store's id.
fn another_store() -> StoreError {
    StoreError::invalid("the transaction is on another database's store".to_owned())
}
