//! What work costs the server beside time: bytes written ahead, and row
//! versions that vacuum has to clear away.

use std::time::{Duration, Instant};

use gristmill_core::Result;
use gristmill_text::statement;
use tokio_postgres::Client;

use super::{APPLICATION, connect, reading};

const WAL: &str = statement(include_str!("../sql/bare.sql"), "wal");
const DEAD: &str = statement(include_str!("../sql/bare.sql"), "dead");
const COMMITS: &str = statement(include_str!("../sql/bare.sql"), "commits");
const OTHERS: &str = statement(include_str!("../sql/bare.sql"), "others");

/// A server tells an idle connection's counts after ten seconds at the latest;
/// behind a pooler connections do not end.
const TOLD: Duration = Duration::from_secs(11);

/// A connection that reads the server's own counts.
#[derive(Debug)]
pub struct Meter {
    client: Client,
}

/// Row versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dead {
    /// Made dead by updates and deletions, whether or not they still stand.
    pub made: u64,
    /// Of them, those that still stand.
    pub left: u64,
    /// How often vacuum came by.
    pub vacuums: u64,
}

impl Meter {
    /// Connects.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn connect(url: &str) -> Result<Self> {
        Ok(Meter { client: connect(url).await? })
    }

    /// How many bytes the whole server has written ahead since it was made.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn wal(&self) -> Result<u64> {
        let row = self.client.query_one(WAL, &[]).await.map_err(reading)?;
        Ok(u64::try_from(row.get::<_, i64>(0)).unwrap_or_default())
    }

    /// How many transactions the database has committed, reading ones too. A server
    /// tells those of idle connections up to ten seconds late.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn commits(&self) -> Result<u64> {
        let row = self.client.query_one(COMMITS, &[]).await.map_err(reading)?;
        Ok(u64::try_from(row.get::<_, i64>(0)).unwrap_or_default())
    }

    /// The row versions of the store in `schema`, or without one of the bare
    /// table. Close what was measured before: counts are certain when a
    /// connection has ended.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn dead(&self, schema: Option<&str>) -> Result<Dead> {
        self.alone().await?;
        let row = self.client.query_one(DEAD, &[&schema]).await.map_err(reading)?;
        let count = |at: usize| u64::try_from(row.get::<_, i64>(at)).unwrap_or_default();
        Ok(Dead { made: count(0), left: count(1), vacuums: count(2) })
    }

    /// Waits until all other connections of the benchmark have ended.
    async fn alone(&self) -> Result<()> {
        let asked = Instant::now();
        while self.others().await? > 0 && asked.elapsed() < TOLD {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Connections of the benchmark beside this one.
    async fn others(&self) -> Result<i64> {
        let row = self.client.query_one(OTHERS, &[&APPLICATION]).await.map_err(reading)?;
        Ok(row.get(0))
    }
}
