//! What the file may be: missing, foreign, damaged, newer, or changed by hand.

use std::error::Error;
use std::io::{Seek, SeekFrom, Write};

use gristmill_core::{SettingsPatch, Store, StoreError};
use gristmill_sqlite::{Options, SqliteStore};

use crate::support::{Place, claim, connection, declare, done, put, sound, stats, task};

fn refused(place: &Place) -> StoreError {
    SqliteStore::open(place.path(), place.options()).expect_err("refused")
}

#[test]
fn a_missing_file_is_made_only_when_asked_for() {
    let place = Place::new();
    let options = Options { create: false, ..place.options() };
    let error = SqliteStore::open(place.path(), options).expect_err("refused");
    assert!(matches!(&error, StoreError::NotAStore(said) if said.contains("queue.db")), "{error}");
    assert!(!place.path().exists());
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    for text in ["hello, this is not a database at all\n".repeat(100), "short".to_owned()] {
        let place = Place::new();
        std::fs::write(place.path(), &text).unwrap();
        let error = refused(&place);
        assert!(matches!(&error, StoreError::NotAStore(said) if said.contains("queue.db")));
        assert_eq!(std::fs::read_to_string(place.path()).unwrap(), text);
    }
}

#[test]
fn an_error_keeps_sqlites_own_with_its_code() {
    let place = Place::new();
    std::fs::write(place.path(), "hello, this is not a database at all\n".repeat(100)).unwrap();
    let error = refused(&place);
    let cause = error.source().and_then(|cause| cause.downcast_ref::<rusqlite::Error>());
    let code = cause.and_then(rusqlite::Error::sqlite_error_code);
    assert_eq!(code, Some(rusqlite::ErrorCode::NotADatabase), "{error:?}");
}

#[test]
fn a_file_that_cannot_be_opened_names_itself() {
    let place = Place::new();
    std::fs::create_dir(place.path()).unwrap();
    let error = refused(&place);
    assert!(matches!(&error, StoreError::Permission(said) if said.contains("queue.db")), "{error}");
}

#[tokio::test]
async fn an_empty_file_becomes_a_store() {
    // A process that was killed while it made the file leaves one like this.
    let place = Place::new();
    std::fs::write(place.path(), "").unwrap();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    assert!(put(&store, "q", vec![task("1")]).await[0].is_enqueued());
    sound(&store).await;
}

#[test]
fn looking_makes_no_store_of_a_foreign_database() {
    let place = Place::new();
    let foreign = place.beside("app.db");
    connection(&foreign).execute_batch("CREATE TABLE users (name TEXT)").unwrap();
    let empty = place.beside("empty.db");
    std::fs::write(&empty, "").unwrap();
    for file in [foreign, empty] {
        let before = std::fs::read(&file).unwrap();
        let options = Options { create: false, ..place.options() };
        let error = SqliteStore::open(&file, options).expect_err("no store");
        let StoreError::NotAStore(said) = &error else { panic!("{error}") };
        assert!(said.contains("there is no store in"), "{said}");
        assert_eq!(std::fs::read(&file).unwrap(), before, "{}", file.display());
    }
}

#[tokio::test]
async fn a_file_with_two_names_is_refused() {
    // Each name would have a log of its own, and neither sees the other's.
    let place = Place::new();
    place.open().close().await.unwrap();
    std::fs::hard_link(place.path(), place.beside("other.db")).unwrap();
    let error = refused(&place);
    assert!(matches!(&error, StoreError::NotAStore(said) if said.contains("2 names")), "{error}");
    std::fs::remove_file(place.beside("other.db")).unwrap();
    sound(&place.open()).await;
}

#[tokio::test]
async fn the_queue_lives_in_the_applications_own_file() {
    let place = Place::new();
    let application = place.application();
    application.execute_batch("CREATE TABLE item (id INTEGER PRIMARY KEY)").unwrap();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1")]).await;
    application.execute_batch("INSERT INTO item VALUES (1)").unwrap();
    let shown = "SELECT id, in_order, attempts FROM gristmill_shown ORDER BY id DESC";
    let row: (i64, bool, u32) = application
        .query_row(shown, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap();
    assert_eq!(row, (1, true, 0), "it can be looked into with SQL");
    sound(&store).await;
}

#[tokio::test]
async fn a_newer_file_is_refused() {
    let place = Place::new();
    place.open().close().await.unwrap();
    connection(&place.path())
        .execute_batch("INSERT INTO gristmill_migration VALUES (99, 'x', 0)")
        .unwrap();
    assert!(matches!(refused(&place), StoreError::NewerSchema { found: 99, known: 4 }));
}

#[tokio::test]
async fn a_file_made_by_a_changed_program_is_refused() {
    let place = Place::new();
    place.open().close().await.unwrap();
    connection(&place.path())
        .execute_batch("UPDATE gristmill_migration SET checksum = 'other' WHERE version = 1")
        .unwrap();
    let error = refused(&place);
    assert!(matches!(&error, StoreError::NotAStore(said) if said.contains("step 1")), "{error}");
}

#[tokio::test]
async fn a_lost_step_of_the_schema_is_one_sentence() {
    let place = Place::new();
    place.open().close().await.unwrap();
    connection(&place.path()).execute_batch("DELETE FROM gristmill_migration").unwrap();
    let said = refused(&place).whole();
    assert!(said.contains("already exists") && said.lines().count() == 1, "{said}");
}

#[tokio::test]
async fn a_damaged_file_never_looks_empty() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", (0..2_000).map(|_| task("1")).collect()).await;
    store.close().await.unwrap();
    let mut file = std::fs::OpenOptions::new().write(true).open(place.path()).unwrap();
    let pages = file.metadata().unwrap().len() / 4096;
    for page in 2..pages {
        file.seek(SeekFrom::Start(page * 4096)).unwrap();
        file.write_all(&[0x5a; 512]).unwrap();
    }
    drop(file);
    // Refused at the opening, or by whatever reads first; never "no queues".
    match SqliteStore::open(place.path(), place.options()) {
        Err(error) => assert!(matches!(error, StoreError::Corrupt(_)), "{error}"),
        Ok(store) => {
            let error = store.stats().await.expect_err("nothing can be read");
            assert!(matches!(error, StoreError::Corrupt(_)), "{error}");
        }
    }
}

#[tokio::test]
async fn two_that_open_a_new_file_at_once_both_succeed() {
    let place = Place::new();
    let opened: Vec<_> = (0..8)
        .map(|_| {
            let (path, options) = (place.path(), place.options());
            std::thread::spawn(move || SqliteStore::open(path, options).expect("a store"))
        })
        .collect();
    let stores: Vec<SqliteStore> = opened.into_iter().map(|one| one.join().unwrap()).collect();
    declare(&stores[0], "q", SettingsPatch::default()).await;
    for store in &stores {
        assert!(put(store, "q", vec![task("1")]).await[0].is_enqueued());
    }
    let taken = claim(&stores[7], "q", 100).await;
    assert_eq!(taken.tasks.len(), 8);
    done(&stores[3], &taken).await;
    assert_eq!(stats(&stores[1], "q").await.counters.done, 8);
    sound(&stores[5]).await;
}

#[tokio::test]
async fn a_duplicate_written_by_hand_is_refused_by_the_database() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![crate::support::keyed("a")]).await;
    let by_hand = "INSERT INTO gristmill_task (queue, key, priority, run_at, created_at, encoding, \
                   payload) SELECT queue, key, 0, 0, 0, 0, x'' FROM gristmill_task";
    let error = place.application().execute_batch(by_hand).expect_err("refused");
    assert!(error.to_string().contains("UNIQUE"), "{error}");
}

#[tokio::test]
async fn after_the_close_calls_answer_closed() {
    let place = Place::new();
    let store = place.open();
    store.close().await.unwrap();
    store.close().await.unwrap();
    assert_eq!(store.sweep().await, Err(StoreError::Closed));
    assert_eq!(store.stats().await, Err(StoreError::Closed));
}

/// A copy of the file alone is a whole copy then. Who closes a file last brings its log
/// into it, and of several at once nobody was.
#[tokio::test]
async fn a_closed_file_has_no_log_beside_it() {
    let place = Place::new();
    for round in 0..300 {
        let store = place.open();
        declare(&store, "q", SettingsPatch::default()).await;
        put(&store, "q", vec![task("1")]).await;
        store.close().await.unwrap();
        let mut log = place.path().into_os_string();
        log.push("-wal");
        assert!(!std::path::Path::new(&log).exists(), "in round {round}");
    }
}
