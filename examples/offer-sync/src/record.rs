//! The record of who took what and when: written as batches begin and end, and
//! shown as lines.

use gristmill::sqlite::rusqlite::{self, Connection, TransactionBehavior, params};

use crate::db::{Mark, Row, Take, micros};

const SLICE_BEGIN: &str = include_str!("sql/slice_begin.sql");
const SLICE_END: &str = include_str!("sql/slice_end.sql");
const SLICE_LIST: &str = include_str!("sql/slice_list.sql");

/// A batch that begins.
pub(crate) struct Begins<'a> {
    pub(crate) task: i64,
    pub(crate) worker: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) number: Option<u32>,
}

/// Takes the rows and writes down that it began, both or neither. Returns the entry's
/// number and the rows.
pub(crate) fn begin(
    db: &mut Connection,
    begins: &Begins<'_>,
    take: Take<'_>,
) -> rusqlite::Result<(i64, Vec<Row>)> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let taken = take(&transaction)?;
    let numbers = || taken.iter().map(|row| row.number);
    let (first, last) = (numbers().min(), numbers().max());
    let rows = i64::try_from(taken.len()).unwrap_or(i64::MAX);
    let Begins { task, worker, kind, number } = begins;
    transaction
        .execute(SLICE_BEGIN, params![task, worker, kind, number, first, last, rows, micros()])?;
    let entry = transaction.last_insert_rowid();
    transaction.commit()?;
    Ok((entry, taken))
}

/// Marks the rows and writes down the end, both or neither. Returns how many rows
/// were marked.
pub(crate) fn end(
    db: &mut Connection,
    entry: i64,
    rows: &[Row],
    mark: Mark<'_>,
) -> rusqlite::Result<usize> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let marked = mark(&transaction, rows)?;
    let count = i64::try_from(marked).unwrap_or(i64::MAX);
    transaction.execute(SLICE_END, params![entry, micros(), count])?;
    transaction.commit()?;
    Ok(marked)
}

/// What a batch took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) worker: String,
    pub(crate) kind: String,
    pub(crate) number: Option<u32>,
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) rows: i64,
    pub(crate) began: i64,
    pub(crate) ended: Option<i64>,
}

impl Taken {
    /// Its rows: `1-100`, or where they are not all that lie between, `of 3-298`.
    pub(crate) fn which(&self) -> String {
        match (self.rows, self.last - self.first + 1) {
            (0, _) => "none".to_owned(),
            (rows, span) if rows == span => format!("{}-{}", self.first, self.last),
            _ => format!("of {}-{}", self.first, self.last),
        }
    }
}

/// What each batch took, in the order in which they began.
pub(crate) fn list(db: &Connection) -> rusqlite::Result<Vec<Taken>> {
    db.prepare(SLICE_LIST)?
        .query_map([], |row| {
            Ok(Taken {
                worker: row.get(0)?,
                kind: row.get(1)?,
                number: row.get(2)?,
                first: row.get::<_, Option<i64>>(3)?.unwrap_or_default(),
                last: row.get::<_, Option<i64>>(4)?.unwrap_or_default(),
                rows: row.get(5)?,
                began: row.get(6)?,
                ended: row.get(7)?,
            })
        })?
        .collect()
}
