//! The PostgreSQL store beside bare statements on the same server.

mod drain;
mod put;

use gristmill::Mill;
use gristmill::postgres::bare::{APPLICATION, clear};

use super::load::{BenchError, Grain};
use super::{Measured, Plan, start};

/// Tasks in one statement, one claim and one settlement.
const BATCH: usize = 1_000;
/// The benchmark's own schema: the store that is there is not touched.
const SCHEMA: &str = "gristmill_bench";
/// What a bare row carries.
const PAYLOAD: &[u8] = &[b'x'; 100];

/// Measures everything; `tell` hears what comes next.
pub(super) async fn run(
    url: &str,
    plan: Plan,
    mut tell: impl FnMut(&str),
) -> Result<Measured, BenchError> {
    let mut measured = Measured::default();
    tell("bulk put");
    measured.add(put::bulk(url, plan).await?);
    tell("claim and settle");
    measured.add(drain::by_port(url, plan).await?);
    tell("a worker");
    measured.add(drain::by_process(url, plan).await?);
    tell("8 callers, a task each");
    measured.rows.push(put::callers(url, plan).await?);
    tell("put to start");
    measured.rows.extend(start::on_postgres(url, plan).await?);
    clear(url, SCHEMA).await?;
    Ok(measured)
}

/// A store with nothing in it.
pub(super) async fn fresh(url: &str) -> Result<Mill, BenchError> {
    clear(url, SCHEMA).await?;
    let mill = again(url).await?;
    mill.declare::<Grain>().await?;
    Ok(mill)
}

/// One more handle of the store that is there, with connections of its own.
pub(super) async fn again(url: &str) -> Result<Mill, BenchError> {
    let and = if url.contains('?') { '&' } else { '?' };
    let at = format!("{url}{and}schema={SCHEMA}&application_name={APPLICATION}");
    Ok(Mill::open(&at).await?)
}

/// What one of so many tasks has of a total.
fn a_task(total: u64, tasks: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "an average needs no more than 53 bits")]
    let (total, tasks) = (total as f64, tasks.max(1) as f64);
    total / tasks
}
