//! Putting, from the port's verb to the statement: what cannot be tried is said at
//! once, callers that come together share a statement, whoever has to wait for
//! somebody's open transaction waits aside, and the answers come back in order.

mod answers;
mod columns;
mod group;
mod held;
mod plain;
mod sifted;

use std::sync::{Arc, PoisonError};

use gristmill_core::{
    Limits, PutAnswer, PutReport, PutRequest, QueueName, Result, Start, StoreError,
};

pub(crate) use self::answers::{About, answer, answers, refusal, unknown};
pub(crate) use self::columns::{Columns, PutValues};
pub(crate) use self::group::Group;
pub(crate) use self::held::{Patience, Turns};
pub(crate) use self::plain::Elaborate;
pub(crate) use self::sifted::Sifted;
use crate::errors::corrupt;
use crate::sql::Sql;
use crate::store::Inner;

/// Changes after which appended counts are folded by this process.
const FOLD_AFTER: u32 = 2_000;

impl Inner {
    /// The port's put.
    pub(crate) async fn put(self: &Arc<Self>, request: PutRequest) -> Result<PutReport> {
        check(&request, &self.limits)?;
        if request.atomic {
            // All or nothing concerns nobody else's tasks.
            return held::put(self, &request).await;
        }
        group::put(self, request).await
    }

    pub(crate) fn put_values<'a>(
        &self,
        queue: &'a QueueName,
        atomic: bool,
        refused: i32,
    ) -> PutValues<'a> {
        let queue = queue.as_str();
        PutValues { queue, atomic, own: false, patience: None, refused, now: self.now() }
    }

    /// Puts in a statement of its own, which may be [`StoreError::Held`].
    pub(crate) async fn put_now(
        self: &Arc<Self>,
        request: &PutRequest,
        patience: Patience,
    ) -> Result<PutReport> {
        let PutRequest { queue, tasks, atomic } = request;
        let sifted = Sifted::new(tasks, &self.limits);
        let columns = Columns::of(&sifted.fit)?;
        let refused = sifted.refused();
        // It may tell of a put that is refused in the end: a worker that looks in
        // vain costs less than one that sleeps.
        let takes_along = self.pool.takes_along() && !sifted.fit.is_empty();
        let notice = takes_along.then(|| self.notifier.take_along(queue)).flatten();
        let notice = notice.as_deref();
        // One task is all of it or nothing anyway.
        let plain = if !*atomic || (tasks.len() == 1 && refused == 0) {
            self.put_plainly(queue, &columns, refused, patience, notice).await?
        } else {
            None
        };
        let answers = match plain {
            Some(answers) => answers,
            None => {
                let values = self.put_values(queue, *atomic, refused).own(patience);
                let values = values.as_refs(&columns);
                let rows = self.pool.write_and_tell(Sql::Put, &values, notice).await?;
                let row = rows.first().ok_or_else(|| corrupt("a put", "it has no answer"))?;
                let Some(answers) = answers(row, &sifted.fit)? else {
                    let refusal = unknown(queue, &self.queue_names().await?);
                    let answers = vec![PutAnswer::Refused(refusal); tasks.len()];
                    return Ok(PutReport { answers });
                };
                answers
            }
        };
        let replaced = answers.iter().any(|answer| matches!(answer, PutAnswer::Replaced { .. }));
        let report = sifted.whole(answers)?;
        let back = tasks.iter().any(|task| matches!(task.start, Start::At(_)));
        if replaced || back {
            self.hints.forget(queue);
        }
        if report.enqueued() > 0 || replaced {
            self.ear.wake.wake(std::slice::from_ref(queue));
            if notice.is_none() {
                self.notifier.tell(queue);
            }
        }
        self.count_change();
        Ok(report)
    }

    /// Now and then folds what was appended, for a program that only puts.
    fn count_change(self: &Arc<Self>) {
        let mut unfolded = self.unfolded.lock().unwrap_or_else(PoisonError::into_inner);
        *unfolded += 1;
        if *unfolded >= FOLD_AFTER {
            *unfolded = 0;
            let inner = self.clone();
            self.pool.driver.spawn(async move {
                if let Err(error) = inner.fold().await {
                    tracing::debug!(error = %error.whole(), "counts were not folded");
                }
            });
        }
    }
}

/// Why a put cannot even be tried.
pub(crate) fn check(request: &PutRequest, limits: &Limits) -> Result<()> {
    if request.tasks.len() > limits.put_tasks {
        return Err(StoreError::invalid(format!(
            "{} tasks in one put and {} are allowed",
            request.tasks.len(),
            limits.put_tasks
        )));
    }
    Ok(())
}
