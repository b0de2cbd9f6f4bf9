//! Opens a store by its URL, as any client does, with short deadlines: what hangs
//! must be seen within a run.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gristmill::port::{Clock, Store, SystemClock};
use gristmill::{Mill, StoreUrl};

use crate::Result;
use crate::clock::JumpingClock;

/// Opens it, on a clock that jumps where there is one.
pub(crate) async fn open(url: &str, clock: Option<&Path>) -> Result<Mill> {
    let url: StoreUrl = url.parse().map_err(|error| format!("{error}"))?;
    let clock: Arc<dyn Clock> = match clock {
        Some(file) => Arc::new(JumpingClock::new(file.to_owned())),
        None => Arc::new(SystemClock::default()),
    };
    match url {
        StoreUrl::Sqlite(path) => {
            let options = gristmill::sqlite::Options { clock, ..Default::default() };
            let open = move || gristmill::sqlite::SqliteStore::open(path, options);
            let store = tokio::task::spawn_blocking(open).await.map_err(|e| e.to_string())?;
            Ok(Mill::over_sqlite(Arc::new(store.map_err(|error| error.to_string())?)))
        }
        StoreUrl::Files(folder) => {
            let options = gristmill::files::Options { clock, ..Default::default() };
            let open = move || gristmill::files::FilesStore::open(folder, options);
            let store = tokio::task::spawn_blocking(open).await.map_err(|e| e.to_string())?;
            Ok(Mill::over_files(Arc::new(store.map_err(|error| error.to_string())?)))
        }
        StoreUrl::Postgres(url) => {
            let timeouts = gristmill::postgres::Timeouts {
                heartbeat: Duration::from_secs(1),
                flow: Duration::from_secs(3),
                operator: Duration::from_secs(5),
                ..Default::default()
            };
            let options = gristmill::postgres::Options {
                timeouts,
                connections: 3,
                connect_timeout: Duration::from_secs(2),
                ..Default::default()
            };
            let store = gristmill::postgres::PostgresStore::open(url.reveal(), options).await;
            Ok(Mill::over_postgres(Arc::new(store.map_err(|error| error.to_string())?)))
        }
        _ => Err("this store lives in one process".to_owned()),
    }
}

/// As [`open`], again and again until it opens or the patience is over.
pub(crate) async fn open_at_last(
    url: &str,
    clock: Option<&Path>,
    patience: Duration,
    leave: impl Fn() -> bool,
) -> Result<Mill> {
    let start = std::time::Instant::now();
    loop {
        match open(url, clock).await {
            Ok(mill) => return Ok(mill),
            Err(why) if start.elapsed() > patience || leave() => return Err(why),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// What the store's own check of every row finds.
pub(crate) async fn check(mill: &Mill) -> Result<Vec<String>> {
    let words = |error: gristmill::port::StoreError| error.to_string();
    let mut found = Vec::new();
    if let Some(store) = mill.sqlite() {
        found.extend(store.check().await.map_err(words)?.into_iter().map(|one| one.0));
    }
    if let Some(store) = mill.files() {
        found.extend(store.check().await.map_err(words)?.into_iter().map(|one| one.0));
    }
    if let Some(store) = mill.postgres() {
        found.extend(store.check().await.map_err(words)?.into_iter().map(|one| one.0));
    }
    Ok(found)
}

/// The store's verbs, without the wrapper that observes them.
pub(crate) fn verbs(mill: &Mill) -> Arc<dyn Store> {
    mill.store()
}
