//! What operators do by hand.

use gristmill_core::{
    Operation, OperationAnswer, OperationReport, Result, Selection, Start, TaskId, Timestamp,
};

use crate::answer::column;
use crate::codec;
use crate::errors::corrupt;
use crate::sql::{Sql, at};
use crate::store::Inner;
use crate::wire::At;

impl Inner {
    /// One bounded step of an operator's action on tasks.
    pub(crate) async fn operate(&self, operation: &Operation) -> Result<OperationReport> {
        let (ids, next) = match (operation.named(&self.limits)?, &operation.selection) {
            (Some(ids), _) => (ids, None),
            (None, Selection::Matching { filter, after }) => {
                let limit = operation.step(&self.limits);
                self.meant(operation.action, filter, *after, limit).await?
            }
            (None, Selection::Ids(_)) => (Vec::new(), None),
        };
        let mut report = OperationReport { answers: Vec::with_capacity(ids.len()), next };
        if ids.is_empty() {
            return Ok(report);
        }
        let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
        let note = operation.left_note(&self.limits);
        let by = self.limits.cut_error(&operation.by);
        let (at, after) = match operation.start {
            Start::Now => (None, None),
            Start::At(_) => (Some(At(operation.start.run_at(Timestamp::EPOCH))), None),
            Start::After(delay) => (None, Some(codec::span(delay))),
        };
        let rows = self
            .pool
            .write(
                Sql::Operate,
                &[
                    &operation.action.as_str(),
                    &ids,
                    &by,
                    &note.map(|note| note.text),
                    &self.now(),
                    &at,
                    &after,
                ],
            )
            .await?;
        let mut woken = Vec::new();
        for row in &rows {
            let answer: &str = column(row, at!(Operate.answer))?;
            let answer = match answer {
                "moved" => OperationAnswer::Moved,
                "cancel_requested" => OperationAnswer::CancelRequested,
                "duplicate" => {
                    OperationAnswer::DuplicateOf(TaskId(column(row, at!(Operate.other))?))
                }
                "wrong_state" => {
                    let state: &str = column(row, at!(Operate.state))?;
                    let state = state.parse().map_err(|e| corrupt("a task's state", e))?;
                    OperationAnswer::WrongState(state)
                }
                "held" => OperationAnswer::Held,
                _ => OperationAnswer::Gone,
            };
            if let Some(queue) = column::<Option<&str>>(row, at!(Operate.woken))? {
                woken.push(codec::queue_name(queue)?);
            }
            report.answers.push((TaskId(column(row, at!(Operate.id))?), answer));
        }
        self.woken(&woken);
        Ok(report)
    }
}
