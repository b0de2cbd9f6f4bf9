//! Importing tasks of another store.

use gristmill_core::import::MARK_KEPT;
use gristmill_core::{
    Import, ImportAnswer, ImportTask, Result, State, StoreError, Task, TaskId, Timestamp, Unique,
};
use gristmill_text::task_settings_value;
use serde_json::json;
use tokio_postgres::Row;

use crate::answer::column;
use crate::codec::{self, encoding_number, span};
use crate::errors::corrupt;
use crate::put::{About, refusal};
use crate::sql::{Sql, at};
use crate::store::Inner;

impl Inner {
    /// Takes in tasks of another store; one answer each.
    pub(crate) async fn import(&self, import: &Import) -> Result<Vec<ImportAnswer>> {
        let Import { queue, tasks } = import;
        if tasks.len() > self.limits.put_tasks {
            return Err(StoreError::invalid(format!(
                "{} tasks in one import and {} are allowed",
                tasks.len(),
                self.limits.put_tasks
            )));
        }
        self.number(queue).await?;
        let admitted: Vec<_> = tasks.iter().map(|task| task.admitted(&self.limits)).collect();
        let fit: Vec<(&ImportTask, &Task)> = tasks
            .iter()
            .zip(&admitted)
            .filter_map(|(all, task)| Some((all, task.as_ref().ok()?)))
            .collect();
        let rows =
            if fit.is_empty() { Vec::new() } else { self.import_fit(queue.as_str(), &fit).await? };
        if rows.len() != fit.len() {
            return Err(corrupt("an import", "an answer is missing"));
        }
        let mut answers = rows.iter().zip(&fit).map(|(row, (_, task))| answer(row, task));
        let whole = admitted.iter().map(|task| match task {
            Err(why) => Ok(ImportAnswer::Refused(why.clone())),
            Ok(_) => {
                answers.next().unwrap_or_else(|| Err(corrupt("an import", "an answer is missing")))
            }
        });
        let whole = whole.collect::<Result<Vec<_>>>()?;
        self.woken(std::slice::from_ref(queue));
        Ok(whole)
    }

    async fn import_fit(&self, queue: &str, fit: &[(&ImportTask, &Task)]) -> Result<Vec<Row>> {
        let marks: Vec<&str> = fit.iter().map(|(all, _)| all.mark.as_str()).collect();
        let failed: Vec<bool> = fit.iter().map(|(_, task)| task.state == State::Failed).collect();
        let facts = fit.iter().map(|(all, task)| facts(task, all.takes_flight()));
        let facts = facts.collect::<Result<Vec<String>>>()?;
        let payloads: Vec<&[u8]> =
            fit.iter().map(|(_, task)| task.payload.bytes.as_ref()).collect();
        let kept = span(MARK_KEPT);
        let checkpoints: Vec<Option<&[u8]>> =
            fit.iter().map(|(_, task)| task.checkpoint.as_deref()).collect();
        let now = self.now();
        self.pool
            .write(
                Sql::Import,
                &[&queue, &marks, &failed, &facts, &payloads, &kept, &checkpoints, &now],
            )
            .await
    }
}

/// A task as the columns of its row.
fn facts(task: &Task, in_flight: bool) -> Result<String> {
    let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
    let headers = codec::headers_text(&task.headers)?;
    let headers: Option<serde_json::Value> = headers
        .map(|text| serde_json::from_str(&text))
        .transpose()
        .map_err(|e| corrupt("headers", e))?;
    let history: Vec<_> = task
        .history
        .iter()
        .map(|attempt| {
            let mut one = json!({
                "worker": attempt.worker.as_str(),
                "claimed_at": attempt.claimed_at.to_string(),
                "ended_at": attempt.ended_at.to_string(),
                "end": attempt.end.as_str(),
            });
            if let (Some(error), Some(fields)) = (&attempt.error, one.as_object_mut()) {
                fields.insert("error".to_owned(), json!(error));
            }
            one
        })
        .collect();
    let facts = json!({
        "created_at": task.created_at.to_string(),
        "run_at": task.run_at.to_string(),
        "prev_run_at": time(task.prev_run_at),
        "claimed_at": time(task.claimed_at),
        "failed_at": time(task.failed_at),
        "attempts": task.attempts,
        "claims": task.claims,
        "expiries": task.expiries,
        "started_releases": 0,
        "priority": task.priority,
        "encoding": encoding_number(task.payload.encoding),
        "blocked": false,
        "in_flight": in_flight,
        "delayed": false,
        "slotted": false,
        "unique_active": task.unique == Unique::Active,
        "key": task.key,
        "grp": task.group,
        "source": task.source,
        "headers": headers,
        "settings": task_settings_value(&task.settings),
        "error": task.error,
        "history": if history.is_empty() { None } else { Some(history) },
        "note": task.note.as_ref().map(|note| &note.text),
        "note_by": task.note.as_ref().map(|note| &note.by),
    });
    Ok(facts.to_string())
}

fn answer(row: &Row, task: &Task) -> Result<ImportAnswer> {
    let id: Option<i64> = column(row, at!(Import.id))?;
    let known = || id.map(TaskId).ok_or_else(|| corrupt("an import", "an answer has no id"));
    Ok(match column::<i16>(row, at!(Import.outcome))? {
        0 => ImportAnswer::Imported { id: known()? },
        1 => ImportAnswer::Already { id: known()? },
        2 => ImportAnswer::Duplicate { id: known()? },
        _ => {
            let detail: Option<String> = column(row, at!(Import.detail))?;
            let (table, name): (Option<String>, Option<String>) =
                (column(row, at!(Import.bind_table))?, column(row, at!(Import.bind_column))?);
            let about = About { capacity: None, table: table.as_deref(), column: name.as_deref() };
            let why =
                refusal(detail.as_deref().unwrap_or_default(), id, task.key.as_deref(), &about);
            ImportAnswer::Refused(why?)
        }
    })
}
