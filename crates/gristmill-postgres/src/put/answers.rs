//! What the database says of each task of a put, in the port's words.

use gristmill_core::name::did_you_mean;
use gristmill_core::{NewTask, PutAnswer, QueueName, Refusal, Result, TaskId};

use crate::answer::{Answer, column};
use crate::codec::count;
use crate::errors::corrupt;
use crate::sql::at;
use crate::wire::At;

/// What stands between `no_such_subject` and the column's spelling of a key, as
/// `subject_fault` writes it.
const SPELLING: &str = ": the column's spelling of this key is '";

/// What is told of the queue beside a refusal.
#[derive(Debug, Default)]
pub(crate) struct About<'a> {
    pub(crate) capacity: Option<i64>,
    pub(crate) table: Option<&'a str>,
    pub(crate) column: Option<&'a str>,
}

/// The answers of a put, or none when there is no such queue.
pub(crate) fn answers(row: &impl Answer, fit: &[&NewTask]) -> Result<Option<Vec<PutAnswer>>> {
    if !column::<bool>(row, at!(Put.is_known))? {
        return Ok(None);
    }
    let ids: Vec<Option<i64>> = column::<Option<_>>(row, at!(Put.ids))?.unwrap_or_default();
    let Some(outcomes) = column::<Option<Vec<i16>>>(row, at!(Put.outcomes))? else {
        let enqueued = ids.into_iter().map(|id| Ok(PutAnswer::Enqueued { id: known(id)? }));
        return enqueued.collect::<Result<_>>().map(Some);
    };
    let run_ats: Vec<Option<At>> = column::<Option<_>>(row, at!(Put.run_ats))?.unwrap_or_default();
    let sources: Vec<Option<String>> =
        column::<Option<_>>(row, at!(Put.sources))?.unwrap_or_default();
    let details: Vec<Option<String>> =
        column::<Option<_>>(row, at!(Put.details))?.unwrap_or_default();
    let about = About {
        capacity: column(row, at!(Put.capacity))?,
        table: column(row, at!(Put.bind_table))?,
        column: column(row, at!(Put.bind_column))?,
    };
    let mut made = Vec::with_capacity(outcomes.len());
    for (((((outcome, id), run_at), source), detail), task) in outcomes
        .into_iter()
        .zip(ids)
        .zip(run_ats)
        .zip(sources)
        .zip(details)
        .zip(fit.iter().copied())
    {
        let detail = detail.as_deref();
        made.push(answer(outcome, id, run_at, source, detail, task, &about)?);
    }
    Ok(Some(made))
}

pub(crate) fn answer(
    outcome: i16,
    id: Option<i64>,
    run_at: Option<At>,
    source: Option<String>,
    detail: Option<&str>,
    task: &NewTask,
    about: &About<'_>,
) -> Result<PutAnswer> {
    Ok(match outcome {
        0 => PutAnswer::Enqueued { id: known(id)? },
        1 => PutAnswer::Duplicate { id: known(id)?, run_at: run_at.map(|at| at.0), source },
        2 => PutAnswer::Replaced { id: known(id)? },
        _ => {
            PutAnswer::Refused(refusal(detail.unwrap_or_default(), id, task.key.as_deref(), about)?)
        }
    })
}

/// Why a task was refused, from the database's word for it.
pub(crate) fn refusal(
    detail: &str,
    id: Option<i64>,
    key: Option<&str>,
    about: &About<'_>,
) -> Result<Refusal> {
    let table = about.table.unwrap_or_default().to_owned();
    // What follows the word is for people, except how the column spells the key.
    let (detail, spelling) = match detail.split_once(SPELLING) {
        Some((word, rest)) => (word, rest.strip_suffix('\'').map(str::to_owned)),
        None => (detail, None),
    };
    Ok(match detail {
        "queue_full" => Refusal::QueueFull { capacity: about.capacity.map_or(0, count) },
        "id_reused" => Refusal::IdReused { first: known(id)? },
        "undone" => Refusal::Undone { because: 0 },
        "twin" => Refusal::Twin { of: usize::try_from(known(id)?.0).unwrap_or_default() },
        "subject_table_gone" => Refusal::SubjectTableGone { table },
        "no_such_subject" => Refusal::NoSuchSubject {
            table,
            column: about.column.unwrap_or_default().to_owned(),
            key: key.unwrap_or_default().to_owned(),
            spelling,
        },
        other => Refusal::Invalid(other.strip_prefix("invalid:").unwrap_or(other).to_owned()),
    })
}

fn known(id: Option<i64>) -> Result<TaskId> {
    id.map(TaskId).ok_or_else(|| corrupt("a put", "an answer has no id"))
}

/// The refusal of a put to a queue that nobody declared.
pub(crate) fn unknown(queue: &QueueName, names: &[String]) -> Refusal {
    let suggestion = did_you_mean(queue.as_str(), names.iter().map(String::as_str));
    Refusal::UnknownQueue { name: queue.to_string(), suggestion: suggestion.map(str::to_owned) }
}
