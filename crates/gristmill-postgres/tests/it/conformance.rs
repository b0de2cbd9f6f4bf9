//! Runs the common behaviours on a database each.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use gristmill_conformance::Harness;
use gristmill_core::{Limits, ManualClock, Store};
use gristmill_pgserver::Database;

use crate::support::{database_within, on_clock};

/// Opens stores on a database of its own; `open` empties it.
#[derive(Default)]
struct Databases {
    last: Mutex<Option<Arc<Database>>>,
}

impl Databases {
    fn url(&self) -> String {
        self.last.lock().unwrap().as_ref().expect("opened before").url()
    }
}

/// Everything as after the migrations: quicker than another database.
const EMPTY: &str = include_str!("empty.sql");

#[async_trait]
impl Harness for Databases {
    fn imports(&self) -> bool {
        true
    }

    async fn open(&self, clock: Arc<ManualClock>, limits: Limits) -> Arc<dyn Store> {
        let known = self.last.lock().unwrap().clone();
        match known {
            None => {
                let made = Arc::new(database_within().await);
                *self.last.lock().unwrap() = Some(made);
            }
            Some(database) => {
                let (client, connection) = gristmill_postgres::tokio_postgres::connect(
                    &database.url(),
                    gristmill_postgres::tokio_postgres::NoTls,
                )
                .await
                .expect("a connection");
                let driven = tokio::spawn(connection);
                client.batch_execute(EMPTY).await.expect("emptied");
                drop(client);
                let _ = driven.await;
            }
        }
        on_clock(&self.url(), clock, limits).await
    }

    async fn reopen(&self, clock: Arc<ManualClock>, limits: Limits) -> Option<Arc<dyn Store>> {
        Some(on_clock(&self.url(), clock, limits).await)
    }
}

gristmill_conformance::suite!(Databases::default());
