//! What a URL, a role or a database may have as its default, and what must work
//! all the same: one connection, and transactions that are stricter than ours.

use std::sync::Arc;
use std::time::Duration;

use gristmill_conformance::{Behaviour, behaviours};
use gristmill_core::{ContractChange, Declaration, SettingsPatch, Store, StoreError, WorkerId};
use gristmill_pgserver::{Database, Server};
use gristmill_postgres::{Options, PostgresStore};
use gristmill_text::ControlPlane;

use crate::conformance::{Databases, hold};
use crate::support::{database_within, declare, name};

/// Stricter than what the functions are written for.
const LEVELS: [&str; 2] = ["serializable", "repeatable read"];

fn alter(database: &Database, level: &str) {
    let set = "SET default_transaction_isolation";
    let alter = format!("ALTER DATABASE \"{}\" {set} = '{level}'", database.name());
    database.psql(&alter).unwrap();
}

/// Some of the behaviours whose names begin like this.
fn sample(beginnings: &[&str]) -> Vec<Behaviour> {
    let meant = |name: &str| beginnings.iter().any(|beginning| name.starts_with(beginning));
    behaviours().into_iter().filter(|behaviour| meant(behaviour.name)).collect()
}

#[tokio::test]
async fn with_one_connection_an_unknown_queue_is_told() {
    let database = database_within().await;
    let options = Options { connections: 1, ..Options::default() };
    let store = PostgresStore::open(&database.url(), options).await.unwrap();
    declare(&store, "emails", SettingsPatch::default()).await;
    let (email, unknown) = (
        name("email"),
        StoreError::UnknownQueue {
            name: "email".to_owned(),
            suggestion: Some("emails".to_owned()),
        },
    );
    let contract = ContractChange {
        queue: email.clone(),
        text: String::new(),
        replaces: None,
        breaking: false,
    };
    let all = async {
        assert_eq!(store.pause_queue(&email, true, "me").await, Err(unknown.clone()));
        let patch = SettingsPatch::default();
        assert_eq!(store.override_queue(&email, patch, "me").await.err(), Some(unknown.clone()));
        assert_eq!(store.reset_queue(&email, "me").await.err(), Some(unknown.clone()));
        assert_eq!(store.register_contract(contract).await.err(), Some(unknown));
    };
    tokio::time::timeout(Duration::from_secs(20), all).await.expect("nothing waits for itself");
}

#[test]
fn with_one_connection_a_sample_holds() {
    let harness = Databases { words: "connections=1", ..Databases::default() };
    // Transactions of several statements.
    hold(harness, sample(&["verb_override", "verb_register", "verb_queues", "verb_publish"]));
}

#[test]
#[ignore = "long: every behaviour again"]
fn long_every_behaviour_holds_with_one_connection() {
    let harness = Databases { words: "connections=1", ..Databases::default() };
    hold(harness, behaviours());
}

/// What a next version of the schema would do: tasks that move from table to table
/// and through a lease must not need to know.
fn with_another_column() -> Databases {
    let altered = "ALTER TABLE gristmill.task ADD COLUMN other boolean NOT NULL DEFAULT false;
        ALTER TABLE gristmill.failed ADD COLUMN other boolean NOT NULL DEFAULT false;
        ALTER TABLE gristmill.done ADD COLUMN other boolean NOT NULL DEFAULT false";
    Databases { altered, ..Databases::default() }
}

#[test]
fn with_another_column_a_sample_holds() {
    hold(with_another_column(), sample(&["verb_settle", "verb_operate", "verb_import", "rule_03"]));
}

#[test]
#[ignore = "long: every behaviour again"]
fn long_every_behaviour_holds_with_another_column() {
    hold(with_another_column(), behaviours());
}

/// Processes of one deployment start at the same moment, and all say the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_that_start_at_once_all_start() {
    for level in LEVELS {
        let made = tokio::task::spawn_blocking(|| {
            Server::shared().and_then(|server| server.database("nothing", |_| Ok(())))
        });
        let database = Arc::new(made.await.unwrap().unwrap());
        alter(&database, level);
        let starts = (0..4).map(|n| {
            let url = database.url();
            tokio::spawn(async move {
                let store = PostgresStore::open(&url, Options::default()).await?;
                for queue in ["a", "b", "c", "d", "e", "f"] {
                    store.declare_queue(Declaration::new(name(queue))).await?;
                }
                let who = WorkerId::new(&format!("w{n}")).unwrap();
                for _ in 0..5 {
                    store.campaign("role", &who, Duration::from_secs(9)).await?;
                    store.pause_queue(&name("a"), false, "me").await?;
                }
                Ok::<_, StoreError>(())
            })
        });
        for start in starts.collect::<Vec<_>>() {
            assert_eq!(start.await.unwrap(), Ok(()), "{level}");
        }
    }
}

#[test]
fn where_transactions_are_stricter_a_sample_holds() {
    for (level, pooled) in LEVELS.into_iter().zip([false, true]) {
        let harness = Databases { level: Some(level), pooled, ..Databases::default() };
        // Calls that race, which a stricter one would send back.
        let races = ["verb_claim_never", "verb_campaign_that_races", "verb_fire_that_races"];
        hold(harness, sample(&races));
    }
}

fn every_behaviour_holds_under(level: &'static str) {
    for pooled in [false, true] {
        let harness = Databases { level: Some(level), pooled, ..Databases::default() };
        hold(harness, behaviours());
    }
}

#[test]
#[ignore = "long: every behaviour again, twice"]
fn long_every_behaviour_holds_under_serializable() {
    every_behaviour_holds_under("serializable");
}

#[test]
#[ignore = "long: every behaviour again, twice"]
fn long_every_behaviour_holds_under_repeatable_read() {
    every_behaviour_holds_under("repeatable read");
}
