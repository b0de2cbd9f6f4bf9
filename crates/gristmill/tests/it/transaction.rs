//! Puts inside the caller's own SQLite transaction.

use std::time::Duration;

use gristmill::sqlite::rusqlite::Connection;
use gristmill::{Error, Mill};

use crate::{Mail, mills};

async fn on_sqlite() -> (Mill, tempfile::TempDir, Connection) {
    let (mill, folder) = mills().await.pop().unwrap();
    let connection = Connection::open(folder.path().join("test.db")).unwrap();
    (mill, folder, connection)
}

#[tokio::test]
async fn the_put_stands_if_and_only_if_the_transaction_commits() {
    let (mill, _folder, mut connection) = on_sqlite().await;
    connection.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY)").unwrap();

    let transaction = connection.transaction().unwrap();
    transaction.execute("INSERT INTO orders VALUES (1)", []).unwrap();
    let put = mill.put(Mail::to("ada")).within(&transaction).await.unwrap();
    assert!(put.answer().is_enqueued());
    transaction.rollback().unwrap();
    drop(put);
    assert_eq!(mill.inspect().queue("mails").await.unwrap().total(), 0);

    let mut transaction = connection.transaction().unwrap();
    transaction.execute("INSERT INTO orders VALUES (1)", []).unwrap();
    let mails = [Mail::to("ada"), Mail::to("eve")];
    let put = mill.put_all(mails).within(&mut transaction).await.unwrap();
    transaction.commit().unwrap();
    assert_eq!(put.committed().enqueued(), 2);
    assert_eq!(mill.inspect().queue("mails").await.unwrap().ready, 2);
}

#[tokio::test]
async fn the_guard_wakes_who_waits() {
    let (mill, _folder, mut connection) = on_sqlite().await;
    let store = mill.store();
    let queue = gristmill::QueueName::new("mails").unwrap();
    let mark = store.mark();
    let transaction = connection.transaction().unwrap();
    let put = mill.put(Mail::to("ada")).within(&transaction).now().unwrap();
    transaction.commit().unwrap();
    put.committed();
    let waiting = store.wait(std::slice::from_ref(&queue), mark, Duration::from_secs(30));
    tokio::time::timeout(Duration::from_secs(5), waiting).await.expect("woken").unwrap();
}

#[tokio::test]
async fn other_stores_say_that_they_cannot() {
    let (memory, _folder) = mills().await.remove(0);
    let (_sqlite, _other, mut connection) = on_sqlite().await;
    let transaction = connection.transaction().unwrap();
    let answer = memory.put(Mail::to("ada")).within(&transaction).await;
    assert!(matches!(answer, Err(Error::NotSqlite(_))));
}
