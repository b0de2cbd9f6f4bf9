//! Runs the common behaviours on a database each, and random histories against
//! the memory store.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use gristmill_conformance::{Behaviour, Harness, LIMIT, behaviours, check, history};
use gristmill_core::{Limits, ManualClock, Store};
use gristmill_pgserver::Database;

use crate::support::{database_within, on_clock};

/// Opens stores on a database of its own; `open` empties it.
#[derive(Default)]
pub(crate) struct Databases {
    pub(crate) last: Mutex<Option<Arc<Database>>>,
    /// Through a pgbouncer in transaction mode.
    pub(crate) pooled: bool,
    /// More words of the URL.
    pub(crate) words: &'static str,
    /// What transactions are by the database's default.
    pub(crate) level: Option<&'static str>,
    /// What is done to the schema once it stands.
    pub(crate) altered: &'static str,
    /// With the roles of the store.
    pub(crate) roles: bool,
}

impl Databases {
    async fn store(&self, clock: Arc<ManualClock>, limits: Limits) -> Arc<dyn Store> {
        let database = self.last.lock().unwrap().clone().expect("opened before");
        let mut url = if self.pooled {
            let listen = database.url().replace('%', "%25").replace('&', "%26");
            let pooled = tokio::task::spawn_blocking(move || database.pgbouncer_url());
            let pooled = pooled.await.expect("a thread").expect("pgbouncer runs");
            let and = if pooled.contains('?') { '&' } else { '?' };
            format!("{pooled}{and}statement_mode=unnamed&listen_url={listen}")
        } else {
            database.url()
        };
        if !self.words.is_empty() {
            url = format!("{url}{}{}", if url.contains('?') { '&' } else { '?' }, self.words);
        }
        on_clock(&url, clock, limits).await
    }
}

/// Asserts that all of these hold. One database for all: another one for each
/// would take minutes.
pub(crate) fn hold(harness: Databases, behaviours: impl IntoIterator<Item = Behaviour>) {
    let harness = Arc::new(harness);
    let mut broken = Vec::new();
    for behaviour in behaviours {
        let name = behaviour.name;
        if let Err(failure) = check(behaviour, harness.clone(), LIMIT, name) {
            broken.push((name, failure));
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
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
                if !self.altered.is_empty() {
                    made.psql(self.altered).expect("altered");
                }
                if let Some(level) = self.level {
                    let set = "SET default_transaction_isolation";
                    made.psql(&format!("ALTER DATABASE \"{}\" {set} = '{level}'", made.name()))
                        .expect("altered");
                }
                if self.roles {
                    gristmill_postgres::make_roles(&made.url()).await.expect("roles");
                }
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
                let own = "SET default_transaction_isolation = 'read committed'";
                client.batch_execute(own).await.expect("set");
                client.batch_execute(EMPTY).await.expect("emptied");
                drop(client);
                let _ = driven.await;
            }
        }
        self.store(clock, limits).await
    }

    async fn reopen(&self, clock: Arc<ManualClock>, limits: Limits) -> Option<Arc<dyn Store>> {
        Some(self.store(clock, limits).await)
    }
}

gristmill_conformance::suite!(Databases::default());

/// A quarter of the usual number: every step is read back by a dozen queries
/// that travel to a server.
#[test]
fn histories_agree() {
    history::agree(&Databases::default(), history::cases() / 4);
}

/// The same through a transaction pooler: no statement has a name, and nothing
/// outlives its transaction. One test for all: what is new is the way to the
/// server, and a database for each behaviour again would take minutes.
#[test]
fn through_pgbouncer_every_behaviour_holds() {
    hold(Databases { pooled: true, ..Databases::default() }, behaviours());
}

#[test]
fn through_pgbouncer_histories_agree() {
    let harness = Databases { pooled: true, ..Databases::default() };
    history::agree(&harness, history::cases() / 10);
}
