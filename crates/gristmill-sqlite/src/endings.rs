//! What came of tasks: kept for who waits, and for as long as their queue says. A value
//! lies behind a checksum of its own.

use gristmill_core::policy::ending::{WANTED_LOOKED, kept};
use gristmill_core::{
    Encoding, Ending, NewTask, Payload, PutAnswer, Queue, Result, State, StoreError, TaskId,
    Timestamp,
};

use crate::check::Finding;
use crate::checksum;
use crate::db::Db;
use crate::row::{Row, encoding, encoding_number};
use crate::sql::{Sql, at, bind};
use crate::write::Write;

/// Endings looked at in one statement.
const PAGE: i64 = 500;

/// A value as it is stored.
fn blob(value: &Payload) -> Vec<u8> {
    let sum = checksum::of(value.encoding, &value.bytes).to_be_bytes();
    [&sum[..], &value.bytes].concat()
}

/// The parts of an ending as they are stored.
type Stored = (String, Option<i64>, Option<Vec<u8>>, Option<String>);

/// An ending as it is read back, or what is wrong with it.
fn of_stored((word, number, value, error): Stored) -> Result<Ending, String> {
    let value = match (number, value) {
        (Some(number), Some(stored)) => Some(without_checksum(encoding(number)?, &stored)?),
        _ => None,
    };
    Ending::from_parts(&word, value, error).ok_or_else(|| format!("its ending is '{word}'"))
}

fn without_checksum(encoding: Encoding, stored: &[u8]) -> Result<Payload, String> {
    match stored.split_first_chunk::<8>() {
        Some((sum, value)) if i64::from_be_bytes(*sum) == checksum::of(encoding, value) => {
            Ok(Payload { bytes: value.to_vec().into(), encoding })
        }
        _ => Err("its result does not fit its checksum".to_owned()),
    }
}

/// What came of tasks; one answer each.
pub(crate) fn read(
    db: &Db<'_>,
    ids: &[TaskId],
    now: Timestamp,
    most: usize,
) -> Result<Vec<Ending>> {
    if ids.len() > most {
        return Err(StoreError::invalid(format!(
            "{} ids in one call and {most} are allowed",
            ids.len()
        )));
    }
    ids.iter().map(|id| read_one(db, *id, now)).collect()
}

fn read_one(db: &Db<'_>, id: TaskId, now: Timestamp) -> Result<Ending> {
    let id = id.0;
    let stored = db.one(Sql::EndingGet, bind!(EndingGet { id }), |row| {
        let parts: Stored = (
            row.get(at!(EndingGet.ending))?,
            row.get(at!(EndingGet.encoding))?,
            row.get(at!(EndingGet.value))?,
            row.get(at!(EndingGet.error))?,
        );
        Ok((parts, row.get::<_, i64>(at!(EndingGet.until))?))
    })?;
    if let Some(row) = Row::load(db, id)? {
        let wanted = stored.is_some();
        return Ok(match row.state() {
            State::Failed => Ending::Failed { error: row.error.unwrap_or_default() },
            _ => Ending::Open { wanted },
        });
    }
    if let Some((parts, until)) = stored
        && parts.0 != "open"
        && until > now.as_micros()
    {
        let damaged = |why| StoreError::corrupt(format!("task {id}: {why}"));
        return of_stored(parts).map_err(damaged);
    }
    let kept = db.one(Sql::DoneById, bind!(DoneById { id }), |_| Ok(()))?;
    Ok(kept.map_or(Ending::NotKnown, |()| Ending::Done { value: None }))
}

/// Every ending can be read; one that cannot is told of by its task's number.
pub(crate) fn check(db: &Db<'_>, findings: &mut Vec<Finding>) -> Result<()> {
    let mut after = i64::MIN;
    loop {
        let page =
            db.all(Sql::EndingAll, bind!(EndingAll { from: after, limit: PAGE }), |row| {
                let parts: Stored = (
                    row.get(at!(EndingAll.ending))?,
                    row.get(at!(EndingAll.encoding))?,
                    row.get(at!(EndingAll.value))?,
                    row.get(at!(EndingAll.error))?,
                );
                Ok((row.get::<_, i64>(at!(EndingAll.id))?, parts))
            })?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = *last;
        for (id, parts) in page {
            if let Err(why) = of_stored(parts) {
                findings.push(Finding(format!("task {id}: {why}")));
            }
        }
    }
}

impl Write<'_, '_> {
    /// The end of a standing task is wanted.
    pub(crate) fn want(&mut self, queue: &Queue, id: TaskId) -> Result<()> {
        if Row::load(self.db, id.0)?.is_some() {
            let until = self.now.after(WANTED_LOOKED).as_micros();
            self.db
                .run(Sql::EndingWant, bind!(EndingWant { id: id.0, queue: queue.number, until }))?;
        }
        Ok(())
    }

    /// The same of what a put answered, where it says so.
    pub(crate) fn want_answered(
        &mut self,
        queue: &Queue,
        task: &NewTask,
        answer: &PutAnswer,
    ) -> Result<()> {
        match answer.id().filter(|_| task.settings.is_wanted()) {
            Some(id) => self.want(queue, id),
            None => Ok(()),
        }
    }

    /// Whether the end of one of these tasks is wanted, which stand in order.
    pub(crate) fn any_wanted(&self, ids: &[i64]) -> Result<bool> {
        let (Some(first), Some(last)) = (ids.first(), ids.last()) else { return Ok(false) };
        self.db.any(Sql::EndingOpenAmong, bind!(EndingOpenAmong { first, last }))
    }

    pub(crate) fn is_wanted(&self, id: i64) -> Result<bool> {
        self.any_wanted(&[id])
    }

    /// A task leaves the store, and this came of it.
    pub(crate) fn end_as(&mut self, queue: &Queue, id: i64, ending: &Ending) -> Result<()> {
        let wanted = self.is_wanted(id)?;
        self.ended |= wanted;
        let Some(span) = kept(&queue.settings, wanted, ending) else { return Ok(()) };
        let value = ending.value();
        self.db.run(
            Sql::EndingSave,
            bind!(EndingSave {
                id,
                queue: queue.number,
                ending: ending.as_str(),
                encoding: value.map(|value| encoding_number(value.encoding)),
                value: value.map(blob),
                error: ending.error(),
                until: self.now.after(span).as_micros()
            }),
        )?;
        Ok(())
    }

    /// A failed task is past its time: who waits for it is told of its error.
    pub(crate) fn end_failed(&mut self, queue: &Queue, id: i64) -> Result<()> {
        if self.is_wanted(id)? {
            let error = Row::load(self.db, id)?.and_then(|row| row.error).unwrap_or_default();
            self.end_as(queue, id, &Ending::Failed { error })?;
        }
        Ok(())
    }

    /// Forgets endings past their time. Those that are open belong to a task that
    /// stands, or that went with its subject.
    pub(crate) fn forget_endings(&mut self, limit: i64) -> Result<u64> {
        let now = self.now.as_micros();
        let due = self.db.all(Sql::EndingDue, bind!(EndingDue { now, limit }), |row| {
            Ok((row.get::<_, i64>(at!(EndingDue.id))?, row.get::<_, bool>(at!(EndingDue.is_open))?))
        })?;
        let until = self.now.after(WANTED_LOOKED).as_micros();
        let mut forgotten = 0;
        for (id, is_open) in due {
            if is_open && Row::load(self.db, id)?.is_some() {
                self.db.run(Sql::EndingLookAgain, bind!(EndingLookAgain { until, id }))?;
            } else {
                self.db.run(Sql::EndingForget, bind!(EndingForget { id }))?;
                forgotten += 1;
            }
        }
        Ok(forgotten)
    }
}
