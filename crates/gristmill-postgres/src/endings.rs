//! What came of tasks (function/ending.sql).

use gristmill_core::{Ending, Payload, Result, StoreError, TaskId};
use tokio_postgres::Row;

use crate::answer::column;
use crate::codec;
use crate::errors::corrupt;
use crate::sql::{Sql, at};
use crate::store::Inner;

impl Inner {
    /// What came of tasks; one answer each.
    pub(crate) async fn endings(&self, ids: &[TaskId]) -> Result<Vec<Ending>> {
        if ids.len() > self.limits.page {
            return Err(StoreError::invalid(format!(
                "{} ids in one call and {} are allowed",
                ids.len(),
                self.limits.page
            )));
        }
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
        let rows = self.pool.read(Sql::Endings, &[&ids, &self.now()]).await?;
        if rows.len() != ids.len() {
            return Err(corrupt("an ending", "an answer is missing"));
        }
        rows.iter().map(read).collect()
    }
}

fn read(row: &Row) -> Result<Ending> {
    let word: String = column(row, at!(Endings.ending))?;
    match word.as_str() {
        "open" => return Ok(Ending::Open { wanted: column(row, at!(Endings.is_wanted))? }),
        "not_known" => return Ok(Ending::NotKnown),
        _ => {}
    }
    let value: Option<Vec<u8>> = column(row, at!(Endings.value))?;
    let encoding: Option<i16> = column(row, at!(Endings.encoding))?;
    let value = match value.zip(encoding) {
        Some((bytes, encoding)) => {
            let read = codec::encoding(encoding);
            if let Some(why) = read.fault {
                return Err(corrupt("a result", why));
            }
            let encoding = read.value;
            Some(Payload { bytes: bytes.into(), encoding })
        }
        None => None,
    };
    let error = column(row, at!(Endings.error))?;
    Ending::from_parts(&word, value, error).ok_or_else(|| corrupt("an ending", &word))
}
