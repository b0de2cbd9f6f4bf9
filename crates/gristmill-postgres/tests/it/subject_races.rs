//! Subjects that are deleted while their task is on the move. Each move is held
//! open at its end, the deletion begins, then the move commits: no task may be
//! left without its subject, whichever of both was first.

use gristmill_postgres::tokio_postgres::Client;

use crate::support::{application, beside, database_within};

/// One subject and a queue bound to it, as any client of the database makes them.
const SHOP: &str = "
    CREATE TABLE item (id integer PRIMARY KEY, price integer);
    INSERT INTO item SELECT n, 10 FROM generate_series(1, 50) n;
    SELECT gristmill.add_queue('q', '{\"bind\": {\"table\": \"item\", \"column\": \"id\"},
        \"keep_done\": 600, \"max_attempts\": 9}');
    SELECT * FROM gristmill.enqueue('q', '{}', key => '1');";
/// ... whose task is held under a lease.
const HELD: &str = "CREATE TABLE held AS SELECT id, token FROM gristmill.claim('q', 1)";
/// ... and another waits behind it.
const BEHIND: &str = "SELECT * FROM gristmill.enqueue('q', '{}', key => '1')";
/// ... which has failed.
const FAILED: &str = "SELECT gristmill.fail(id, token, 'no') FROM held";
/// ... which is back for another run.
const BACK: &str = "SELECT gristmill.release(id, token) FROM held";

/// A move, what goes before it, and the move itself.
const MOVES: &[(&str, &[&str], &str)] = &[
    ("claim", &[], "SELECT * FROM gristmill.claim('q', 1)"),
    ("claim again", &[HELD, BACK], "SELECT * FROM gristmill.claim('q', 1)"),
    ("claim again with one behind", &[HELD, BACK, BEHIND], "SELECT * FROM gristmill.claim('q', 1)"),
    ("error", &[HELD], "SELECT gristmill.error(id, token, 'x') FROM held"),
    ("error with one behind", &[HELD, BEHIND], "SELECT gristmill.error(id, token, 'x') FROM held"),
    ("retry", &[HELD], "SELECT gristmill.retry(id, token, interval '1 hour') FROM held"),
    ("release", &[HELD], "SELECT gristmill.release(id, token) FROM held"),
    ("fail", &[HELD], "SELECT gristmill.fail(id, token, 'x') FROM held"),
    ("fail with one behind", &[HELD, BEHIND], "SELECT gristmill.fail(id, token, 'x') FROM held"),
    ("complete", &[HELD, BEHIND], "SELECT gristmill.complete(id, token) FROM held"),
    ("extend", &[HELD], "SELECT e.* FROM held, gristmill.extend(held.token) e"),
    (
        "expire",
        &[HELD],
        "SELECT * FROM gristmill.expire(NULL, 99, NULL, 10, now() + interval '1 hour')",
    ),
    ("operator retry", &[HELD, FAILED], "SELECT gristmill.retry_failed_task(id) FROM held"),
    ("resolve", &[HELD, FAILED], "SELECT gristmill.resolve(id) FROM held"),
    ("cancel", &[], "SELECT gristmill.cancel(id) FROM gristmill.task"),
    ("put", &[HELD], BEHIND),
];

/// What takes a subject away.
const ENDS: &[&str] =
    &["DELETE FROM item WHERE id = 1", "UPDATE item SET id = 99 WHERE id = 1", "TRUNCATE item"];

/// Takes everything away again, for the next round.
const RESET: &str = "
    DROP TABLE IF EXISTS held, item;
    DELETE FROM gristmill.task; DELETE FROM gristmill.flight; DELETE FROM gristmill.lease;
    DELETE FROM gristmill.failed; DELETE FROM gristmill.done; DELETE FROM gristmill.delayed;
    DELETE FROM gristmill.delta; DELETE FROM gristmill.total; DELETE FROM gristmill.queue";

/// What stands of a key, wherever, and whether the counts say the same.
async fn standing(observer: &Client, key: &str) -> Vec<String> {
    let rows = observer
        .query(
            "SELECT t.state || ' ' || t.id FROM gristmill.tasks t WHERE t.key = $1
             UNION ALL SELECT 'flight ' || f.id FROM gristmill.flight f WHERE f.key = $1
             UNION ALL SELECT 'delayed ' || d.id FROM gristmill.delayed d
              WHERE d.id NOT IN (SELECT t.id FROM gristmill.tasks t)
             UNION ALL SELECT 'counted ' || s.total FROM gristmill.stats() s
              WHERE s.total <> (SELECT count(*) FROM gristmill.tasks t WHERE t.state <> 'done')",
            &[&key],
        )
        .await
        .unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn a_subject_that_goes_takes_its_task_along_while_it_moves() {
    let database = database_within().await;
    let observer = application(&database.url()).await;
    let mut faults = Vec::new();
    for end in ENDS {
        for (name, before, first) in MOVES {
            // What is done of it is the same for all three.
            if *end != ENDS[0] && !["claim", "error", "operator retry", "put"].contains(name) {
                continue;
            }
            observer.batch_execute(RESET).await.unwrap();
            observer.batch_execute(SHOP).await.unwrap();
            for step in *before {
                observer.batch_execute(step).await.unwrap();
            }
            beside(&database.url(), first, end).await.expect(name);
            let left = standing(&observer, "1").await;
            faults.extend((!left.is_empty()).then(|| format!("{name} beside {end}: {left:?}")));
        }
    }
    assert!(faults.is_empty(), "tasks are left: {faults:#?}");
}

#[tokio::test]
async fn a_deletion_that_is_open_is_passed_by_or_waited_for() {
    // The other way round: the deletion is open, and the move comes after it.
    let database = database_within().await;
    let observer = application(&database.url()).await;
    for (name, before, second) in MOVES {
        observer.batch_execute(RESET).await.unwrap();
        observer.batch_execute(SHOP).await.unwrap();
        for step in *before {
            observer.batch_execute(step).await.unwrap();
        }
        beside(&database.url(), "DELETE FROM item WHERE id = 1", second).await.expect(name);
        let left = standing(&observer, "1").await;
        assert!(left.is_empty(), "{name} after an open deletion left {left:?}");
    }
}

#[tokio::test]
async fn the_worker_of_a_deleted_subject_is_told_and_its_neighbours_run_on() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    client.batch_execute(SHOP).await.unwrap();
    client.batch_execute("SELECT * FROM gristmill.enqueue('q', '{}', key => '2')").await.unwrap();
    let claim = "CREATE TABLE held AS SELECT id, token, key FROM gristmill.claim('q', 2)";
    beside(&database.url(), claim, "DELETE FROM item WHERE id = 1").await.unwrap();
    let told = "SELECT e.extended, e.lost = ARRAY[h.id] FROM held h, gristmill.extend(h.token) e
                 WHERE h.key = '1'";
    let row = client.query_one(told, &[]).await.unwrap();
    assert_eq!((row.get(0), row.get(1)), (true, true), "the lease holds one task less");
    let settle = "SELECT gristmill.complete(id, token) FROM held ORDER BY key";
    let answers: Vec<String> =
        client.query(settle, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(answers, ["gone", "recorded"]);
}

#[tokio::test]
async fn a_place_that_no_task_holds_stops_no_deletion() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    client.batch_execute(SHOP).await.unwrap();
    let damage = "INSERT INTO gristmill.flight (queue, key, id) VALUES (10000, '1', 999);
        SET statement_timeout = '20s'; DELETE FROM item WHERE id = 1";
    client.batch_execute(damage).await.unwrap();
    assert!(standing(&client, "1").await.is_empty());
}
