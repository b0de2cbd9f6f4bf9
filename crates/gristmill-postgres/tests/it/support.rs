//! A database with the schema in it, and stores on it.

use std::sync::Arc;

use gristmill_core::{Limits, ManualClock, Store};
use gristmill_pgserver::{Database, Server};
use gristmill_postgres::{Options, PostgresStore};

/// A database of one's own whose schema is made. Blocks.
pub(crate) fn database() -> Database {
    let server = Server::shared().expect("PostgreSQL runs");
    let made = server.database("store", |url| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let opened = runtime.expect("a runtime").block_on(async {
            let store = PostgresStore::open(url, Options::default()).await?;
            store.close().await
        });
        opened.map_err(|e| gristmill_pgserver::Error::new(e.to_string()))
    });
    made.expect("a database")
}

/// As [`database`], from within a runtime.
pub(crate) async fn database_within() -> Database {
    tokio::task::spawn_blocking(database).await.expect("a database")
}

/// A store on a clock that the test owns.
pub(crate) async fn on_clock(url: &str, clock: Arc<ManualClock>, limits: Limits) -> Arc<dyn Store> {
    let options = Options { clock: Some(clock), limits, ..Options::default() };
    Arc::new(PostgresStore::open(url, options).await.expect("a store"))
}
