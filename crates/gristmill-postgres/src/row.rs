//! A stored task as the port shows it.

use gristmill_core::{LeaseView, Note, Payload, Result, State, Task, TaskId, Unique};
use tokio_postgres::Row;

use crate::answer::column;
use crate::codec::{self, small};
use crate::errors::corrupt;
use crate::wire::At;

/// Reads a row of the view that shows tasks.
pub(crate) fn task(row: &Row) -> Result<Task> {
    let state: &str = column(row, 0)?;
    let state: State = state.parse().map_err(|e| corrupt("a task's state", e))?;
    let at = |index| Ok(column::<Option<At>>(row, index)?.map(|at| at.0));
    let note: Option<String> = column(row, 19)?;
    let lease = match column::<Option<&str>>(row, 26)? {
        None => None,
        Some(worker) => Some(LeaseView {
            worker: codec::worker_id(worker)?,
            until: column::<At>(row, 27)?.0,
            slot: column::<Option<i32>>(row, 28)?.map(small),
        }),
    };
    Ok(Task {
        id: TaskId(column(row, 1)?),
        queue: codec::queue_name(column(row, 2)?)?,
        key: column(row, 3)?,
        group: column(row, 4)?,
        source: column(row, 5)?,
        priority: column(row, 6)?,
        run_at: column::<At>(row, 7)?.0,
        created_at: column::<At>(row, 8)?.0,
        state,
        blocked: column(row, 9)?,
        unique: if column(row, 10)? { Unique::Active } else { Unique::Pending },
        attempts: small(column(row, 11)?),
        claims: small(column(row, 12)?),
        expiries: small(column::<i16>(row, 13)?.into()),
        payload: Payload {
            encoding: codec::encoding(column(row, 14)?)?,
            bytes: column::<Vec<u8>>(row, 25)?.into(),
        },
        prev_run_at: at(15)?,
        claimed_at: at(16)?,
        error: column(row, 17)?,
        history: codec::history(column(row, 18)?)?,
        note: match note {
            None => None,
            Some(text) => {
                Some(Note { text, by: column::<Option<String>>(row, 20)?.unwrap_or_default() })
            }
        },
        failed_at: at(21)?,
        resolved_by: column(row, 22)?,
        resolved_at: at(23)?,
        headers: codec::headers(column(row, 24)?)?,
        lease,
        cancel_requested: column(row, 29)?,
    })
}
