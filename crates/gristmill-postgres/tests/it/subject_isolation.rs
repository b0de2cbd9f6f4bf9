//! Who deletes under REPEATABLE READ sees an old picture: what was put, claimed or
//! failed since is told by a serialization failure, as by a foreign key.

use gristmill_postgres::tokio_postgres::error::SqlState;

use crate::support::{application, database_within};

const SHOP: &str = "
    CREATE TABLE item (id integer PRIMARY KEY);
    INSERT INTO item SELECT n FROM generate_series(1, 9) n;
    SELECT gristmill.add_queue('q', '{\"bind\": {\"table\": \"item\", \"column\": \"id\"}}')";
const PUT: &str = "SELECT * FROM gristmill.enqueue('q', '{}', key => '1')";
const CLAIM: &str = "DROP TABLE IF EXISTS held;
    CREATE TABLE held AS SELECT id, token FROM gristmill.claim('q', 1)";
const FAIL: &str = "SELECT gristmill.fail(id, token, 'no') FROM held";

/// What happened before the deleter's first look, and what after it.
const HISTORIES: &[(&[&str], &[&str])] = &[
    (&[], &[PUT]),
    (&[], &[PUT, CLAIM]),
    (&[], &[PUT, CLAIM, FAIL]),
    (&[PUT], &[CLAIM]),
    (&[PUT], &[CLAIM, FAIL]),
    (&[PUT, CLAIM], &["SELECT gristmill.error(id, token, 'x') FROM held"]),
    (&[PUT, CLAIM], &[PUT]),
    (&[PUT, CLAIM, FAIL], &["SELECT gristmill.retry_failed_task(id) FROM held"]),
    (&[PUT, CLAIM, FAIL], &[PUT, CLAIM, FAIL]),
];

#[tokio::test]
async fn an_old_picture_deletes_nothing_or_everything() {
    let database = database_within().await;
    let (client, deleter) =
        (application(&database.url()).await, application(&database.url()).await);
    client.batch_execute(SHOP).await.unwrap();
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        for (before, after) in HISTORIES {
            for step in *before {
                client.batch_execute(step).await.unwrap();
            }
            let begin = format!("BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM item");
            deleter.batch_execute(&begin).await.unwrap();
            for step in *after {
                client.batch_execute(step).await.unwrap();
            }
            let ended = deleter.batch_execute("DELETE FROM item WHERE id = 1").await;
            let code = ended.expect_err("an old picture").code().cloned();
            assert_eq!(code, Some(SqlState::T_R_SERIALIZATION_FAILURE), "{before:?} {after:?}");
            // Tried again, as every program does that chose this level.
            let again = format!(
                "ROLLBACK; BEGIN ISOLATION LEVEL {level};
                                 DELETE FROM item WHERE id = 1; COMMIT"
            );
            deleter.batch_execute(&again).await.unwrap();
            let left = client.query("SELECT FROM gristmill.tasks", &[]).await.unwrap().len();
            assert_eq!(left, 0, "{before:?} {after:?}");
            client.batch_execute("INSERT INTO item VALUES (1)").await.unwrap();
        }
    }
    let left = client.query("SELECT FROM gristmill.flight", &[]).await.unwrap().len();
    let total = client.query_one("SELECT total FROM gristmill.stats()", &[]).await.unwrap();
    assert_eq!((left, total.get::<_, i64>(0)), (0, 0));
}
