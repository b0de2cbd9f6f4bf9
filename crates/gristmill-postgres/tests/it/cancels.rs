//! An operator's word that meets a task on the move: it counts wherever the task
//! is when both are over.

use crate::support::{application, beside, database_within};

/// A claimed task.
const HELD: &str = "SELECT gristmill.add_queue('q', '{\"max_attempts\": 9}');
    SELECT * FROM gristmill.enqueue('q', '{}', key => '1');
    CREATE TABLE held AS SELECT id, token FROM gristmill.claim('q', 1)";

#[tokio::test]
async fn a_cancel_reaches_a_task_that_comes_back_or_is_claimed_meanwhile() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    client.batch_execute(HELD).await.unwrap();
    let cancel = "CREATE TABLE answered AS SELECT gristmill.cancel(id) AS answer FROM held";
    for (first, answer, left) in [
        ("SELECT gristmill.error(id, token, 'x') FROM held", "moved", 0),
        ("SELECT gristmill.release(id, token) FROM held", "moved", 0),
        (
            "SELECT * FROM gristmill.expire(NULL, 99, NULL, 10, now() + interval '1 hour')",
            "moved",
            0,
        ),
        ("SELECT gristmill.fail(id, token, 'x') FROM held", "wrong_state", 1),
        ("SELECT gristmill.complete(id, token) FROM held", "gone", 0),
        // Back from the release below, it is claimed again.
        ("SELECT * FROM gristmill.claim('q', 1)", "cancel_requested", 1),
    ] {
        if answer == "cancel_requested" {
            client.batch_execute("SELECT gristmill.release(id, token) FROM held").await.unwrap();
        }
        beside(&database.url(), first, cancel).await.unwrap();
        let row = client.query_one("SELECT answer FROM answered", &[]).await.unwrap();
        assert_eq!(row.get::<_, String>(0), answer, "{first}");
        let standing = client.query("SELECT FROM gristmill.tasks", &[]).await.unwrap().len();
        assert_eq!(standing, left, "{first}");
        client
            .batch_execute(
                "DROP TABLE answered, held; DELETE FROM gristmill.failed;
                 SELECT * FROM gristmill.enqueue('q', '{}', key => '1');
                 CREATE TABLE held AS SELECT id, token FROM gristmill.claim('q', 1)",
            )
            .await
            .unwrap();
    }
}

/// What was answered as its duplicate goes with it, and is not put again later.
#[tokio::test]
async fn rule_06_a_cancelled_task_takes_its_duplicates_along() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    for unique in ["pending", "active"] {
        client
            .batch_execute(&format!(
                "SELECT gristmill.add_queue('{unique}', '{{\"unique\": \"{unique}\"}}')"
            ))
            .await
            .unwrap();
        let put = format!("SELECT id FROM gristmill.enqueue('{unique}', '{{}}', key => '1')");
        let id: i64 = client.query_one(&put, &[]).await.unwrap().get(0);
        assert_eq!(client.query_one(&put, &[]).await.unwrap().get::<_, i64>(0), id);
        let cancelled = client.query_one("SELECT gristmill.cancel($1)", &[&id]).await.unwrap();
        assert_eq!(cancelled.get::<_, String>(0), "moved");
        client.batch_execute("SELECT gristmill.maintain()").await.unwrap();
        let standing = client.query("SELECT id FROM gristmill.tasks", &[]).await.unwrap();
        assert!(standing.is_empty(), "{unique}: {}", standing.len());
        let left = client.query("SELECT FROM gristmill.marker", &[]).await.unwrap();
        assert!(left.is_empty(), "{unique}: nothing is left over");
    }
}
