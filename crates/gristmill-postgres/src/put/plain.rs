//! Puts that say nothing but payloads, and perhaps keys: one plain statement each
//! (`sql/put.sql`) instead of the function, which costs more than what it inserts.
//!
//! A statement answers nothing where the queue needs the function: it is bound to a
//! subject, has no room for all, answers duplicates otherwise, or is not there. And one
//! that took a key for new which stands already fails, with nothing put. After either
//! the queue's puts go to the function for a while, for the next one would ask in vain
//! as well, and a server writes each failure into its log.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gristmill_core::{PutAnswer, QueueName, Result, TaskId};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::Columns;
use super::held::Patience;
use crate::answer::column;
use crate::connection::Fault;
use crate::deadline::Class;
use crate::errors::{self, Intent, corrupt};
use crate::pool::told;
use crate::server::Need;
use crate::sql::{Sql, at};
use crate::store::Inner;
use crate::wire::At;

/// How long a queue's puts go to the function after a plain one was in vain.
const WHILE: Duration = Duration::from_secs(10);
/// Queues that are kept in mind; whoever puts to names that nobody declared may name
/// many.
const QUEUES: usize = 1_000;
/// Tasks whose keys are looked for first. Of more all are taken to be new.
const FEW: usize = 32;

/// Queues whose puts need the function, and until when that is believed: those of
/// tasks with keys, and those without.
#[derive(Debug, Default)]
pub(crate) struct Elaborate(Mutex<HashMap<QueueName, [Option<Instant>; 2]>>);

impl Elaborate {
    fn is(&self, queue: &QueueName, keyed: bool) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let until = known.get(queue).and_then(|until| until.get(usize::from(keyed)).copied());
        until.flatten().is_some_and(|until| Instant::now() < until)
    }

    fn note(&self, queue: &QueueName, keyed: bool) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= QUEUES {
            known.clear();
        }
        let until = known.entry(queue.clone()).or_default();
        if let Some(until) = until.get_mut(usize::from(keyed)) {
            *until = Some(Instant::now() + WHILE);
        }
    }
}

impl Columns<'_> {
    /// The one encoding of all payloads, where nothing else is said but keys, and no
    /// key twice.
    fn is_plain(&self) -> Option<i16> {
        let Columns { payloads, encodings, keys, groups, sources, .. } = self;
        let Columns { priorities, run_ats, delays, ids, headers, settings, .. } = self;
        let more = groups.is_some()
            || sources.is_some()
            || priorities.is_some()
            || run_ats.is_some()
            || delays.is_some()
            || ids.is_some()
            || headers.is_some()
            || settings.is_some();
        let encoding = match encodings.as_deref() {
            None => 0,
            Some([first, rest @ ..]) if rest.iter().all(|one| one == first) => *first,
            Some(_) => return None,
        };
        let mut said: HashSet<&str> = HashSet::new();
        let repeats = keys.iter().flatten().flatten().any(|key| !said.insert(key));
        (!more && !payloads.is_empty() && !repeats).then_some(encoding)
    }
}

impl Inner {
    /// The answers of a plain put, or none: then nothing was put, and the function is to
    /// be asked.
    pub(crate) async fn put_plainly(
        &self,
        queue: &QueueName,
        columns: &Columns<'_>,
        refused: i32,
        patience: Patience,
        notice: Option<&str>,
    ) -> Result<Option<Vec<PutAnswer>>> {
        let keyed = columns.keys.is_some();
        let encoding = columns.is_plain().filter(|_| !self.elaborate.is(queue, keyed));
        let Some(encoding) = encoding else { return Ok(None) };
        let (name, payloads, now) = (queue.as_str(), &columns.payloads, self.now());
        if let (None, [payload], 0) = (&columns.keys, payloads.as_slice(), refused) {
            let values: [&(dyn ToSql + Sync); 4] = [&name, payload, &encoding, &now];
            let rows = self.pool.write_and_tell(Sql::PutOne, &values, notice).await?;
            return Ok(self.plainly(queue, keyed, one(&rows)?));
        }
        let Some(keys) = &columns.keys else {
            let rows = self
                .pool
                .write_and_tell(
                    Sql::PutPlain,
                    &[&name, payloads, &encoding, &refused, &now],
                    notice,
                )
                .await?;
            let answers = new(&rows, at!(PutPlain.ids))?;
            return Ok(self.plainly(queue, keyed, answers));
        };
        let few = payloads.len() <= FEW;
        let sql = if few { Sql::PutKeyed } else { Sql::PutNew };
        let patience = patience.millis();
        let values: [&(dyn ToSql + Sync); 7] =
            [&name, payloads, keys, &encoding, &refused, &patience, &now];
        let answers = match self.put_new(sql, &values, notice).await? {
            Some(rows) if few => standing(&rows)?,
            Some(rows) => new(&rows, at!(PutNew.ids))?,
            None => None,
        };
        Ok(self.plainly(queue, keyed, answers))
    }

    /// Puts what is taken to be new; none when something of it stands already, and then
    /// nothing was put.
    async fn put_new(
        &self,
        sql: Sql,
        values: &[&(dyn ToSql + Sync)],
        notice: Option<&str>,
    ) -> Result<Option<Vec<Row>>> {
        let deadline = self.pool.deadline(Class::of(sql));
        match self.pool.attempt(sql, values, notice, Need::Write, deadline).await? {
            Ok(rows) => Ok(Some(rows)),
            Err(Fault::Said(error)) if errors::stands_already(&error) => Ok(None),
            Err(fault) => Err(told(fault, Intent::Write, &deadline)),
        }
    }

    /// Takes note of a put that was in vain.
    fn plainly(
        &self,
        queue: &QueueName,
        keyed: bool,
        answers: Option<Vec<PutAnswer>>,
    ) -> Option<Vec<PutAnswer>> {
        if answers.is_none() {
            self.elaborate.note(queue, keyed);
        }
        answers
    }
}

/// It was enqueued, under this id.
fn one(rows: &[Row]) -> Result<Option<Vec<PutAnswer>>> {
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(vec![PutAnswer::Enqueued { id: TaskId(column(row, at!(PutOne.id))?) }]))
}

/// All of them were enqueued, under these ids.
fn new(rows: &[Row], at: usize) -> Result<Option<Vec<PutAnswer>>> {
    let row = rows.first().ok_or_else(|| corrupt("a put", "it has no answer"))?;
    let ids: Option<Vec<i64>> = column(row, at)?;
    let enqueued = |id| PutAnswer::Enqueued { id: TaskId(id) };
    Ok(ids.map(|ids| ids.into_iter().map(enqueued).collect()))
}

/// The same, but for those positions that have duplicates.
fn standing(rows: &[Row]) -> Result<Option<Vec<PutAnswer>>> {
    let Some(mut answers) = new(rows, at!(PutKeyed.ids))? else { return Ok(None) };
    let row = rows.first().ok_or_else(|| corrupt("a put", "it has no answer"))?;
    let positions: Option<Vec<i32>> = column(row, at!(PutKeyed.standing))?;
    let run_ats: Option<Vec<Option<At>>> = column(row, at!(PutKeyed.run_ats))?;
    let sources: Option<Vec<Option<String>>> = column(row, at!(PutKeyed.sources))?;
    let about = run_ats.unwrap_or_default().into_iter().zip(sources.unwrap_or_default());
    for (position, (run_at, source)) in positions.unwrap_or_default().into_iter().zip(about) {
        let place = usize::try_from(position).ok().and_then(|nth| nth.checked_sub(1));
        let answer = place.and_then(|place| answers.get_mut(place));
        let Some(answer) = answer else {
            return Err(corrupt("a put", "an answer is for none of its tasks"));
        };
        if let PutAnswer::Enqueued { id } = *answer {
            *answer = PutAnswer::Duplicate { id, run_at: run_at.map(|at| at.0), source };
        }
    }
    Ok(Some(answers))
}
