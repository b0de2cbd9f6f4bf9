//! The PostgreSQL store beside bare statements on the same server.

pub(super) mod awkward;
pub(super) mod drain;
pub(super) mod idle;
pub(super) mod producers;
pub(super) mod put;

use gristmill::postgres::bare::{self, APPLICATION};
use gristmill::{Mill, PostgresUrl};

use super::load::{BenchError, Grain};

/// Tasks in one statement, one claim and one settlement.
const BATCH: usize = 1_000;
/// The benchmark's own schema: the store that is there is not touched.
const SCHEMA: &str = "gristmill_bench";
/// What a bare row carries.
const PAYLOAD: &[u8] = &[b'x'; 100];

/// Takes away what the benchmark made.
pub(super) async fn clear(url: &PostgresUrl) -> Result<(), BenchError> {
    Ok(bare::clear(url.reveal(), SCHEMA).await?)
}

/// A store with nothing in it.
pub(super) async fn fresh(url: &PostgresUrl) -> Result<Mill, BenchError> {
    clear(url).await?;
    let mill = again(url).await?;
    mill.declare::<Grain>().await?;
    Ok(mill)
}

/// One more handle of the store that is there, with connections of its own.
pub(super) async fn again(url: &PostgresUrl) -> Result<Mill, BenchError> {
    Ok(Mill::open(&at(url)).await?)
}

/// Where the benchmark's own store is; it may hold a password.
pub(super) fn at(url: &PostgresUrl) -> String {
    let url = url.reveal();
    let and = if url.contains('?') { '&' } else { '?' };
    format!("{url}{and}schema={SCHEMA}&application_name={APPLICATION}")
}

/// What one of so many tasks has of a total.
fn a_task(total: u64, tasks: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "an average needs no more than 53 bits")]
    let (total, tasks) = (total as f64, tasks.max(1) as f64);
    total / tasks
}
