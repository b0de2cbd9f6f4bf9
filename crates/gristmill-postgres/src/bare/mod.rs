//! The bare limit: what prepared statements on the same server reach without a
//! queue around them. The benchmark prints it beside every rate.

mod copy;
mod meter;

use bytes::Bytes;
use futures_util::SinkExt;
use gristmill_core::{Result, StoreError, Token};
use gristmill_text::statement;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Statement};

use crate::errors::{Intent, fault};
use crate::wire::Uuid;
use crate::{Options, url};

pub use meter::{Dead, Meter};

/// The name under which the benchmark's connections are known to the server.
pub const APPLICATION: &str = "gristmill_bench";
/// Rows in one message of a COPY.
const MESSAGE: usize = 1_000;

const SCHEMA: &str = statement(include_str!("../sql/bare.sql"), "schema");
const INSERT: &str = statement(include_str!("../sql/bare.sql"), "insert");
const INSERT_ONE: &str = statement(include_str!("../sql/bare.sql"), "insert_one");
const COPY: &str = statement(include_str!("../sql/bare.sql"), "copy");
const LEASE: &str = statement(include_str!("../sql/bare.sql"), "lease");
const DELETE: &str = statement(include_str!("../sql/bare.sql"), "delete");
const DROP: &str = statement(include_str!("../sql/bare.sql"), "drop");

/// A hand-written queue table on one connection.
#[derive(Debug)]
pub struct Bare {
    client: Client,
    insert: Statement,
    insert_one: Statement,
    copy: Statement,
    lease: Statement,
    delete: Statement,
    inserted: u64,
}

fn failed(error: tokio_postgres::Error) -> StoreError {
    fault(error, Intent::Write)
}

fn reading(error: tokio_postgres::Error) -> StoreError {
    fault(error, Intent::Read)
}

async fn connect(at: &str) -> Result<Client> {
    let (server, _) = url::read(at, Options::default())?;
    let (client, connection) = server.named(APPLICATION).connect_bare().await?;
    tokio::spawn(async move {
        // Its end is told by the next statement.
        let _ = connection.await;
    });
    Ok(client)
}

impl Bare {
    /// Makes the table, anew if it is there.
    ///
    /// # Errors
    /// When the server cannot be reached or the table cannot be made.
    pub async fn create(url: &str) -> Result<Self> {
        connect(url).await?.batch_execute(SCHEMA).await.map_err(failed)?;
        Self::join(url).await
    }

    /// One more connection to the table that is there.
    ///
    /// # Errors
    /// When the server cannot be reached or there is no table.
    pub async fn join(url: &str) -> Result<Self> {
        let client = connect(url).await?;
        let insert = client.prepare(INSERT).await.map_err(failed)?;
        let insert_one = client.prepare(INSERT_ONE).await.map_err(failed)?;
        let copy = client.prepare(COPY).await.map_err(failed)?;
        let lease = client.prepare_typed(LEASE, &[Type::UUID, Type::INT8]).await.map_err(failed)?;
        let delete = client.prepare_typed(DELETE, &[Type::UUID]).await.map_err(failed)?;
        Ok(Bare { client, insert, insert_one, copy, lease, delete, inserted: 0 })
    }

    /// Inserts rows, `a_commit` in each statement; every tenth has a key. One a
    /// commit is as plain an INSERT as there is.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn insert(&mut self, rows: usize, a_commit: usize, payload: &[u8]) -> Result<()> {
        let mut left = rows;
        while left > 0 {
            let now = left.min(a_commit);
            let keys = self.next_keys(now);
            if let ([key], 1) = (keys.as_slice(), a_commit) {
                self.client.execute(&self.insert_one, &[key, &payload]).await.map_err(failed)?;
            } else {
                let payloads = vec![payload; now];
                self.client.execute(&self.insert, &[&keys, &payloads]).await.map_err(failed)?;
            }
            left -= now;
        }
        Ok(())
    }

    /// The same rows by COPY, `a_commit` in each.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn copy(&mut self, rows: usize, a_commit: usize, payload: &[u8]) -> Result<()> {
        let mut left = rows;
        while left > 0 {
            let now = left.min(a_commit);
            let sink = self.client.copy_in(&self.copy).await.map_err(failed)?;
            tokio::pin!(sink);
            sink.feed(Bytes::from_static(copy::BEGIN)).await.map_err(failed)?;
            let mut missing = now;
            while missing > 0 {
                let keys = self.next_keys(missing.min(MESSAGE));
                missing -= keys.len();
                sink.feed(copy::rows(&keys, payload)).await.map_err(failed)?;
            }
            sink.feed(Bytes::from_static(copy::END)).await.map_err(failed)?;
            sink.finish().await.map_err(failed)?;
            left -= now;
        }
        Ok(())
    }

    /// The keys of the next rows: every tenth has one.
    fn next_keys(&mut self, rows: usize) -> Vec<Option<String>> {
        let first = self.inserted + 1;
        self.inserted += rows as u64;
        (first..=self.inserted).map(|n| n.is_multiple_of(10).then(|| format!("key-{n}"))).collect()
    }

    /// Moves the next rows into one lease row, then deletes that; returns how many.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn lease_then_delete(&self, batch: usize) -> Result<usize> {
        let token = Uuid(Token::random()?);
        let batch = i64::try_from(batch).unwrap_or(i64::MAX);
        let rows = self.client.query(&self.lease, &[&token, &batch]).await.map_err(failed)?;
        // A worker would need the payloads: read them as well.
        let payloads: Vec<Vec<u8>> = rows.iter().map(|row| row.get(1)).collect();
        if !payloads.is_empty() {
            self.client.execute(&self.delete, &[&token]).await.map_err(failed)?;
        }
        Ok(payloads.len())
    }
}

/// Takes away what a benchmark made: its table, and the store in `schema`.
///
/// # Errors
/// When the server cannot be reached or refuses.
pub async fn clear(at: &str, schema: &str) -> Result<()> {
    let client = connect(at).await?;
    client.batch_execute(&DROP.replace("{schema}", schema)).await.map_err(failed)
}
