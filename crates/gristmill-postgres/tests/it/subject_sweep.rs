//! What a trigger cannot see: partitions, and triggers that were switched off.

use gristmill_postgres::tokio_postgres::Client;

use crate::support::{application, database_within};

/// A partitioned table with five rows in each of two partitions, and a task each.
const SHOP: &str = "
    CREATE TABLE item (day integer, id integer, price integer, PRIMARY KEY (id, day))
        PARTITION BY LIST (day);
    CREATE TABLE item_1 PARTITION OF item FOR VALUES IN (1);
    -- Its columns stand in another order.
    CREATE TABLE item_2 (id integer NOT NULL, price integer, day integer NOT NULL);
    ALTER TABLE item ATTACH PARTITION item_2 FOR VALUES IN (2);
    INSERT INTO item (id, day) SELECT n, 1 + n / 6 FROM generate_series(1, 10) n;
    SELECT gristmill.add_queue('q', '{\"bind\": {\"table\": \"item\", \"column\": \"id\"},
        \"keep_done\": 600}');
    SELECT * FROM gristmill.enqueue_many('q', array_fill('{}'::jsonb, ARRAY[10]),
        ARRAY(SELECT n::text FROM generate_series(1, 10) n))";

/// The keys that stand, as numbers, and that the counts say so.
async fn keys(client: &Client) -> Vec<i32> {
    let rows = client
        .query("SELECT DISTINCT t.key::integer FROM gristmill.tasks t ORDER BY 1", &[])
        .await
        .unwrap();
    let wrong = client
        .query(
            "SELECT FROM gristmill.stats() s
              WHERE s.total <> (SELECT count(*) FROM gristmill.tasks t WHERE t.state <> 'done')",
            &[],
        )
        .await
        .unwrap();
    assert!(wrong.is_empty(), "the counts are wrong");
    rows.iter().map(|row| row.get(0)).collect()
}

async fn swept(client: &Client, limit: i32) -> i64 {
    let sweep = "SELECT gristmill.sweep_subjects($1)";
    client.query_one(sweep, &[&limit]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_partition_is_seen_as_the_table_is() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    client.batch_execute(SHOP).await.unwrap();
    client.batch_execute("DELETE FROM item_1 WHERE id = 1").await.unwrap();
    assert_eq!(keys(&client).await, [2, 3, 4, 5, 6, 7, 8, 9, 10]);
    client.batch_execute("UPDATE item_2 SET id = 60 WHERE id = 6").await.unwrap();
    assert_eq!(keys(&client).await, [2, 3, 4, 5, 7, 8, 9, 10]);
    // A row that moves to another partition is the same subject.
    client.batch_execute("UPDATE item SET day = 2 WHERE id = 2").await.unwrap();
    client.batch_execute("UPDATE item_1 SET price = 3").await.unwrap();
    assert_eq!(keys(&client).await, [2, 3, 4, 5, 7, 8, 9, 10]);
    client.batch_execute("DELETE FROM item WHERE id IN (2, 3)").await.unwrap();
    assert_eq!(keys(&client).await, [4, 5, 7, 8, 9, 10]);
    // One that is made later has the triggers by inheritance; and within one
    // transaction both ways are told apart.
    client
        .batch_execute(
            "CREATE TABLE item_3 PARTITION OF item FOR VALUES IN (3);
             INSERT INTO item (id, day) VALUES (20, 3), (21, 3), (22, 3);
             SELECT * FROM gristmill.enqueue_many('q', array_fill('{}'::jsonb, ARRAY[3]),
                 ARRAY['20', '21', '22']);
             BEGIN; DELETE FROM item_3 WHERE id = 20; DELETE FROM item WHERE id = 4;
             DELETE FROM item_3 WHERE id = 21; COMMIT",
        )
        .await
        .unwrap();
    assert_eq!(keys(&client).await, [5, 7, 8, 9, 10, 22]);
    // Until the sweep gives it those that are told of a statement as a whole.
    let own =
        "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'item_3'::regclass AND tgparentid = 0";
    assert_eq!(client.query_one(own, &[]).await.unwrap().get::<_, i64>(0), 0);
    assert_eq!(swept(&client, 1000).await, 0);
    assert_eq!(client.query_one(own, &[]).await.unwrap().get::<_, i64>(0), 4);
    client.batch_execute("TRUNCATE item_2; DELETE FROM item_3").await.unwrap();
    assert_eq!(keys(&client).await, [5]);
    client.batch_execute("TRUNCATE item").await.unwrap();
    assert!(keys(&client).await.is_empty());
}

#[tokio::test]
async fn a_dropped_partition_is_found_by_the_sweep() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    client.batch_execute(SHOP).await.unwrap();
    assert_eq!(swept(&client, 1000).await, 0);
    // One of each state: done, failed, back, processing with another behind, pending.
    client
        .batch_execute(
            "CREATE TABLE held AS SELECT * FROM gristmill.claim('q', 9);
             SELECT gristmill.complete(id, token) FROM held WHERE key IN ('1', '6');
             SELECT gristmill.fail(id, token, 'no') FROM held WHERE key IN ('2', '7');
             SELECT gristmill.release(id, token) FROM held WHERE key IN ('3', '8');
             SELECT * FROM gristmill.enqueue_many('q', array_fill('{}'::jsonb, ARRAY[2]),
                 ARRAY['4', '9']);
             DROP TABLE item_2",
        )
        .await
        .unwrap();
    assert_eq!(keys(&client).await, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(swept(&client, 1000).await, 5, "all but the one that is done count");
    assert_eq!(keys(&client).await, [1, 2, 3, 4, 5]);
    let told =
        "SELECT DISTINCT e.extended, cardinality(e.lost) FROM held h, gristmill.extend(h.token) e";
    let row = client.query_one(told, &[]).await.unwrap();
    assert_eq!((row.get(0), row.get(1)), (true, 1), "its worker is told");

    client.batch_execute("ALTER TABLE item DETACH PARTITION item_1").await.unwrap();
    swept(&client, 1000).await;
    assert_eq!(keys(&client).await, [] as [i32; 0]);
}

#[tokio::test]
async fn what_nobody_asked_a_subject_of_is_left_alone() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    client
        .batch_execute(
            "CREATE TABLE item (id integer PRIMARY KEY); INSERT INTO item VALUES (1), (2);
             SELECT gristmill.add_queue('q');
             SELECT * FROM gristmill.enqueue('q', '{}', key => 'never an id');
             SELECT * FROM gristmill.enqueue('q', '{}');
             SELECT gristmill.bind_subject(10000, 'item', 'id');
             UPDATE gristmill.queue SET bind_table = 'item', bind_column = 'id';
             SELECT * FROM gristmill.enqueue_many('q', array_fill('{}'::jsonb, ARRAY[2]),
                 ARRAY['1', '2']);
             SET session_replication_role = replica; DELETE FROM item WHERE id = 1;
             RESET session_replication_role",
        )
        .await
        .unwrap();
    assert_eq!(swept(&client, 1000).await, 1, "the trigger did not fire");
    let left = client.query("SELECT FROM gristmill.tasks", &[]).await.unwrap().len();
    assert_eq!(left, 3);
}

#[tokio::test]
async fn a_sweep_of_subjects_goes_on_where_it_was_and_ends() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    client
        .batch_execute(
            "CREATE TABLE item (id integer PRIMARY KEY);
             INSERT INTO item SELECT n FROM generate_series(1, 3000) n;
             SELECT gristmill.add_queue('q', '{\"bind\": {\"table\": \"item\", \"column\": \"id\"}}');
             SELECT count(*) FROM gristmill.enqueue_many('q', array_fill('{}'::jsonb, ARRAY[3000]),
                 ARRAY(SELECT n::text FROM generate_series(1, 3000) n));
             CREATE TABLE held AS SELECT * FROM gristmill.claim('q', 1000);
             SELECT count(gristmill.fail(id, token, 'no')) FROM held WHERE key::integer <= 500;
             SET session_replication_role = replica; DELETE FROM item WHERE id % 10 = 0",
        )
        .await
        .unwrap();
    // Three thousand tasks, three hundred a call; a little for each step.
    let mut gone = 0;
    for _ in 0..12 {
        let step = swept(&client, 300).await;
        assert!(step <= 100, "{step} of at most a thousand keys, of a lease, in one call");
        gone += step;
    }
    assert_eq!(gone, 300);
    // Another one is at it: nothing to do here.
    let other = application(&database.url()).await;
    other.batch_execute("BEGIN; SELECT gristmill.sweep_subjects(10)").await.unwrap();
    assert_eq!(swept(&client, 10).await, 0);
}
