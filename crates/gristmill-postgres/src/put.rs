//! Putting: tasks as the arrays that `put_many` takes, and its answers.

use gristmill_core::name::did_you_mean;
use gristmill_core::{
    Limits, NewTask, PutAnswer, PutReport, PutRequest, QueueName, Refusal, Result, Start,
    StoreError, TaskId, Timestamp,
};
use tokio_postgres::types::ToSql;

use crate::answer::{Answer, column};
use crate::codec::{self, count, encoding_number, span};
use crate::errors::corrupt;
use crate::sql::at;
use crate::wire::At;

/// Columns of tasks, each absent when no task says anything for it.
#[derive(Debug, Default)]
pub(crate) struct Columns<'a> {
    pub(crate) payloads: Vec<&'a [u8]>,
    pub(crate) encodings: Option<Vec<i16>>,
    pub(crate) keys: Option<Vec<Option<&'a str>>>,
    pub(crate) groups: Option<Vec<Option<&'a str>>>,
    pub(crate) sources: Option<Vec<Option<&'a str>>>,
    pub(crate) priorities: Option<Vec<i16>>,
    pub(crate) run_ats: Option<Vec<Option<At>>>,
    pub(crate) delays: Option<Vec<Option<i64>>>,
    pub(crate) ids: Option<Vec<Option<&'a str>>>,
    pub(crate) headers: Option<Vec<Option<String>>>,
    pub(crate) settings: Option<Vec<Option<String>>>,
}

impl<'a> Columns<'a> {
    pub(crate) fn of(tasks: &[&'a NewTask]) -> Result<Self> {
        fn texts<'a>(
            tasks: &[&'a NewTask],
            text: impl Fn(&'a NewTask) -> Option<&'a str>,
        ) -> Option<Vec<Option<&'a str>>> {
            let any = tasks.iter().any(|task| text(task).is_some());
            any.then(|| tasks.iter().map(|task| text(task)).collect())
        }
        let any = |wanted: fn(&NewTask) -> bool| tasks.iter().any(|task| wanted(task));
        let headers = any(|task| !task.headers.is_empty()).then(|| {
            tasks.iter().map(|task| codec::headers_text(&task.headers)).collect::<Result<Vec<_>>>()
        });
        let settings = any(|task| !task.settings.is_empty()).then(|| {
            let text = |task: &&NewTask| codec::task_settings_text(&task.settings);
            tasks.iter().map(text).collect::<Result<Vec<_>>>()
        });
        Ok(Columns {
            payloads: tasks.iter().map(|task| task.payload.bytes.as_ref()).collect(),
            encodings: any(|task| encoding_number(task.payload.encoding) != 0)
                .then(|| tasks.iter().map(|task| encoding_number(task.payload.encoding)).collect()),
            keys: texts(tasks, |task| task.key.as_deref()),
            groups: texts(tasks, |task| task.group.as_deref()),
            sources: texts(tasks, |task| task.source.as_deref()),
            priorities: any(|task| task.priority != 0)
                .then(|| tasks.iter().map(|task| task.priority).collect()),
            run_ats: any(|task| matches!(task.start, Start::At(_))).then(|| {
                let at = |start| match start {
                    Start::At(at) => Some(At(at.clamp(Timestamp::EPOCH, Timestamp::MAX))),
                    _ => None,
                };
                tasks.iter().map(|task| at(task.start)).collect()
            }),
            delays: any(|task| matches!(task.start, Start::After(_))).then(|| {
                let delay = |start| match start {
                    Start::After(delay) => Some(span(delay)),
                    _ => None,
                };
                tasks.iter().map(|task| delay(task.start)).collect()
            }),
            ids: texts(tasks, |task| task.id.as_deref()),
            headers: headers.transpose()?,
            settings: settings.transpose()?,
        })
    }

    /// The eleven parameters that follow the queue's name.
    pub(crate) fn values(&self) -> [&(dyn ToSql + Sync); 11] {
        [
            &self.payloads,
            &self.encodings,
            &self.keys,
            &self.groups,
            &self.sources,
            &self.priorities,
            &self.run_ats,
            &self.delays,
            &self.ids,
            &self.headers,
            &self.settings,
        ]
    }
}

/// A put whose impossible tasks are set apart: they need no database.
#[derive(Debug)]
pub(crate) struct Sifted<'a> {
    /// Those that go to the database, in order.
    pub(crate) fit: Vec<&'a NewTask>,
    /// The others' answers, by position.
    refused: Vec<Option<Refusal>>,
}

impl<'a> Sifted<'a> {
    pub(crate) fn new(tasks: &'a [NewTask], limits: &Limits) -> Self {
        let refused: Vec<Option<Refusal>> = tasks.iter().map(|task| limits.refuse(task)).collect();
        let fit = tasks.iter().zip(&refused).filter(|(_, why)| why.is_none());
        Sifted { fit: fit.map(|(task, _)| task).collect(), refused }
    }

    pub(crate) fn refused(&self) -> i32 {
        i32::try_from(self.refused.len() - self.fit.len()).unwrap_or(i32::MAX)
    }

    /// All answers in order, given those of the database.
    pub(crate) fn whole(self, answers: Vec<PutAnswer>) -> Result<PutReport> {
        // Where those stand that the database was asked about.
        let asked: Vec<usize> = (self.refused.iter().enumerate())
            .filter(|(_, refused)| refused.is_none())
            .map(|(at, _)| at)
            .collect();
        let mut answers = answers.into_iter();
        let whole = self.refused.into_iter().map(|refused| match refused {
            Some(why) => Ok(PutAnswer::Refused(why)),
            None => answers.next().ok_or_else(|| corrupt("a put", "an answer is missing")),
        });
        let mut report = PutReport { answers: whole.collect::<Result<_>>()? };
        let fault = report.answers.iter().position(|answer| match answer {
            PutAnswer::Duplicate { .. } => true,
            PutAnswer::Refused(why) => !matches!(why, Refusal::Undone { .. }),
            _ => false,
        });
        for answer in &mut report.answers {
            match answer {
                PutAnswer::Refused(Refusal::Undone { because }) => *because = fault.unwrap_or(0),
                PutAnswer::Refused(Refusal::Twin { of }) => {
                    *of = asked.get(*of).copied().unwrap_or(*of);
                }
                _ => {}
            }
        }
        Ok(report)
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
