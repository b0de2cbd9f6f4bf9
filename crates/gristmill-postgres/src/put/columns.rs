//! Tasks as the arrays that `put_many` takes, and what stands around them.

use gristmill_core::{NewTask, Result, Start, Timestamp};
use tokio_postgres::types::ToSql;

use super::held::Patience;
use crate::codec::{self, encoding_number, span};
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

/// The parameters of a put around its columns.
#[derive(Debug)]
pub(crate) struct PutValues<'a> {
    pub(super) queue: &'a str,
    pub(super) atomic: bool,
    pub(super) own: bool,
    pub(super) patience: Option<i32>,
    pub(super) refused: i32,
    pub(super) now: Option<At>,
}

impl PutValues<'_> {
    /// In a transaction of the store's own, which is over with the put.
    pub(crate) fn own(self, patience: Patience) -> Self {
        Self { own: true, ..self.patient(patience) }
    }

    /// Waits no longer than this for somebody else's open transaction.
    pub(crate) fn patient(self, patience: Patience) -> Self {
        Self { patience: Some(patience.millis()), ..self }
    }

    pub(crate) fn as_refs<'v>(&'v self, columns: &'v Columns<'_>) -> Vec<&'v (dyn ToSql + Sync)> {
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&self.queue];
        values.extend(columns.values());
        let rest: [&(dyn ToSql + Sync); 5] =
            [&self.atomic, &self.own, &self.patience, &self.refused, &self.now];
        values.extend(rest);
        values
    }
}
