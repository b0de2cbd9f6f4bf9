//! Making the schema: once, by one, under any name.

use gristmill_core::{SettingsPatch, Store, StoreError};
use gristmill_pgserver::Server;
use gristmill_postgres::{Options, PostgresStore};
use tokio_postgres::error::{DbError, SqlState};

use crate::support::{claim, database_within, declare, put, store, task};

/// A database without anything in it.
async fn empty() -> gristmill_pgserver::Database {
    let made = tokio::task::spawn_blocking(|| {
        Server::shared().expect("PostgreSQL runs").database("empty", |_| Ok(()))
    });
    made.await.unwrap().expect("a database")
}

#[tokio::test]
async fn of_many_that_start_at_once_one_makes_the_schema() {
    let database = empty().await;
    let opening = (0..6).map(|_| {
        let url = database.url();
        tokio::spawn(async move { PostgresStore::open(&url, Options::default()).await.map(drop) })
    });
    for opened in opening.collect::<Vec<_>>() {
        opened.await.unwrap().expect("opened");
    }
    let steps = database.psql("SELECT count(*), count(DISTINCT version) FROM gristmill.migration");
    let steps = steps.unwrap();
    let (all, distinct) = steps.trim().split_once('|').unwrap();
    assert_eq!(all, distinct);
}

#[tokio::test]
async fn two_schemas_of_one_database_do_not_mix() {
    let database = empty().await;
    let and = if database.url().contains('?') { '&' } else { '?' };
    let one = store(&format!("{}{and}schema=mill_one", database.url())).await;
    let two = store(&format!("{}{and}schema=mill_two", database.url())).await;
    for store in [&one, &two] {
        declare(store, "q", SettingsPatch::default()).await;
    }
    put(&one, "q", vec![task("1")]).await;
    assert!(claim(&two, "q", 1).await.tasks.is_empty());
    assert_eq!(claim(&one, "q", 1).await.tasks.len(), 1);
    let named = database.psql("SELECT count(*) FROM pg_namespace WHERE nspname = 'gristmill'");
    assert_eq!(named.unwrap().trim(), "0");
}

#[tokio::test]
async fn a_schema_that_is_not_ours_to_use_is_told() {
    let without = Options { migrate: false, ..Options::default() };
    let database = empty().await;
    let missing = PostgresStore::open(&database.url(), without.clone()).await;
    assert!(matches!(missing, Err(StoreError::NotAStore(_))), "{missing:?}");

    let database = database_within().await;
    store(&database.url()).await.close().await.unwrap();
    database.psql("INSERT INTO gristmill.migration VALUES (999, 'later')").unwrap();
    let newer = PostgresStore::open(&database.url(), Options::default()).await;
    assert!(matches!(newer, Err(StoreError::NewerSchema { found: 999, .. })), "{newer:?}");

    let database = database_within().await;
    database.psql("UPDATE gristmill.migration SET checksum = 'x' WHERE version = 2").unwrap();
    let changed = PostgresStore::open(&database.url(), Options::default()).await;
    assert!(matches!(changed, Err(StoreError::NotAStore(_))), "{changed:?}");
}

/// The SQLSTATE below an error.
fn state(error: &StoreError) -> Option<SqlState> {
    use std::error::Error;
    Some(error.source()?.downcast_ref::<DbError>()?.code().clone())
}

#[tokio::test]
async fn an_error_keeps_the_servers_with_its_sqlstate() {
    let database = database_within().await;
    let mut elsewhere = database.url();
    let end = elsewhere.find('?').unwrap_or(elsewhere.len());
    elsewhere.insert_str(end, "_gone");
    let error = PostgresStore::open(&elsewhere, Options::default()).await.expect_err("no database");
    assert_eq!(state(&error), Some(SqlState::INVALID_CATALOG_NAME), "{error:?}");

    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    database.psql("DROP SCHEMA gristmill CASCADE").unwrap();
    let error = store.stats().await.expect_err("no schema");
    assert!(matches!(error, StoreError::NotAStore(_)), "{error:?}");
    let said = state(&error).expect("an SQLSTATE");
    assert!(["3F000", "42P01", "42883"].contains(&said.code()), "{error:?}");
    assert!(!error.to_string().contains("does not exist"), "left to the chain: {error}");
    assert!(error.whole().contains("does not exist"), "{}", error.whole());
}

#[test]
fn the_schema_can_be_read_before_it_is_made() {
    let text = gristmill_postgres::migrations("mill");
    assert!(text.contains("CREATE TABLE mill.task"));
    assert!(!text.contains("gristmill."), "another name stands everywhere");
}

/// Another process may bring the schema up to date under running ones: what they
/// have prepared does not fit any more, and is prepared anew.
#[tokio::test]
async fn a_schema_that_changes_under_prepared_statements_does_no_harm() {
    let database = database_within().await;
    let options = Options { connections: 1, ..Options::default() };
    let store = PostgresStore::open(&database.url(), options).await.unwrap();
    declare(&store, "q", SettingsPatch::default()).await;
    assert_eq!(store.queues().await.unwrap().len(), 1);
    database.psql("ALTER TABLE gristmill.queue ALTER COLUMN paused_by TYPE varchar").unwrap();
    assert_eq!(store.queues().await.unwrap().len(), 1);
}
