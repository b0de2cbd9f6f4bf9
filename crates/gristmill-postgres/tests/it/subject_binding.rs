//! To what a queue is bound: a table and a column that are there, in the
//! column's own spelling, whatever they are called later and whoever
//! looks.

use gristmill_core::{Diagnosis, PutAnswer, Refusal, Store};
use gristmill_postgres::PostgresStore;
use gristmill_postgres::tokio_postgres::Client;
use gristmill_postgres::tokio_postgres::error::SqlState;

use crate::support::{application, bound, database_within, declare, keyed, put, stats, store};

const ITEMS: &str = "CREATE TABLE item (price integer, id integer PRIMARY KEY);
                     INSERT INTO item (id) VALUES (1), (2), (7)";

fn refusal(answer: &PutAnswer) -> &Refusal {
    match answer {
        PutAnswer::Refused(why) => why,
        other => panic!("{other:?} is no refusal"),
    }
}

async fn found(store: &PostgresStore) -> Vec<Diagnosis> {
    let all = store.diagnose().await.unwrap();
    all.into_iter().filter(|found| found.code.starts_with("subject")).collect()
}

/// How many triggers of ours a table has.
async fn triggers(client: &Client, table: &str) -> i64 {
    let count = "SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass($1)
                    AND tgname LIKE 'gristmill%'";
    client.query_one(count, &[&table]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_key_is_the_columns_own_spelling() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    database.psql(ITEMS).unwrap();
    let uuid = "6b1e2f2c-7c1e-4f0e-9d55-0a4c1d1e7b11";
    let tables = format!(
        "CREATE TABLE parcel (id uuid PRIMARY KEY); INSERT INTO parcel VALUES ('{uuid}');
         CREATE TYPE colour AS ENUM ('red', 'blue');
         CREATE TABLE paint (id colour PRIMARY KEY); INSERT INTO paint VALUES ('red');
         CREATE TABLE day (id timestamptz PRIMARY KEY);
         INSERT INTO day VALUES ('2026-03-01 00:00+00')"
    );
    database.psql(&tables).unwrap();
    for (queue, table, said, spelling) in [
        ("items", "item", "007", "7"),
        ("parcels", "parcel", &*uuid.to_uppercase(), uuid),
        ("days", "day", "2026-03-01 01:00:00+01", "2026-03-01 00:00:00+00"),
    ] {
        declare(&store, queue, bound(table, "id")).await;
        let answers = put(&store, queue, vec![keyed(said), keyed(spelling)]).await.answers;
        let why = refusal(&answers[0]);
        assert_eq!(why.code(), "no_such_subject");
        let told = format!("the column's spelling of this key is '{spelling}'");
        assert!(why.to_string().contains(&told), "{why}");
        assert!(answers[1].is_enqueued(), "{answers:?}");
        database.psql(&format!("SET datestyle = 'German'; DELETE FROM {table}")).unwrap();
        assert_eq!(stats(&store, queue).await.total(), 0, "{queue}");
    }
    declare(&store, "paints", bound("paint", "id")).await;
    let answers = put(&store, "paints", vec![keyed("red"), keyed("green"), keyed("blue")]).await;
    assert!(answers.answers[0].is_enqueued(), "{answers:?}");
    for at in [1, 2] {
        let why = refusal(&answers.answers[at]).to_string();
        assert!(!why.contains("spelling"), "{why}");
    }
    database.psql("DELETE FROM paint").unwrap();
    assert_eq!(stats(&store, "paints").await.total(), 0);
}

#[tokio::test]
async fn what_is_not_there_cannot_be_bound() {
    let database = database_within().await;
    database.psql(&format!("{ITEMS}; CREATE VIEW shown AS SELECT * FROM item")).unwrap();
    let client = application(&database.url()).await;
    for (table, column, told) in [
        ("item", "order_id", "table 'item' has no column 'order_id'"),
        ("orders", "id", "there is no table 'orders'"),
        ("no name", "id", "there is no table 'no name'"),
        ("shown", "id", "'shown' is not a table"),
        ("item", "ctid", "table 'item' has no column 'ctid'"),
    ] {
        let said = format!("{{\"bind\": {{\"table\": \"{table}\", \"column\": \"{column}\"}}}}");
        let add = format!("SELECT gristmill.add_queue('q', '{said}')");
        let error = client.batch_execute(&add).await.expect_err(table);
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code(), &SqlState::from_code("GM400"), "{error}");
        assert!(error.message().contains(told), "{error}");
    }
    client.batch_execute("UPDATE item SET price = 1; DELETE FROM item").await.unwrap();
    assert_eq!(client.query("SELECT FROM gristmill.queue", &[]).await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_queue_follows_when_its_column_and_table_are_renamed() {
    let database = database_within().await;
    database.psql(ITEMS).unwrap();
    let store = store(&database.url()).await;
    declare(&store, "q", bound("item", "id")).await;
    put(&store, "q", vec![keyed("1"), keyed("2")]).await;
    // Another column takes the old name, as a migration of the application may do.
    database
        .psql(
            "ALTER TABLE item RENAME COLUMN id TO item_id; ALTER TABLE item RENAME TO goods;
             ALTER TABLE goods ADD COLUMN id integer; UPDATE goods SET price = 3;
             DELETE FROM goods WHERE item_id = 1",
        )
        .unwrap();
    assert_eq!(stats(&store, "q").await.total(), 1);
    let answers = put(&store, "q", vec![keyed("7"), keyed("9")]).await.answers;
    assert!(answers[0].is_enqueued(), "{answers:?}");
    assert_eq!(refusal(&answers[1]).code(), "no_such_subject");
    let told = found(&store).await;
    assert!(told.iter().any(|one| one.code == "subject_renamed" && !one.grave), "{told:?}");
    // What was declared before is declared again at every start.
    declare(&store, "q", bound("item", "id")).await;
    database.psql("DELETE FROM goods").unwrap();
    assert_eq!(stats(&store, "q").await.total(), 0);
}

#[tokio::test]
async fn a_dropped_column_stops_puts_and_nothing_else() {
    let database = database_within().await;
    database.psql(ITEMS).unwrap();
    let store = store(&database.url()).await;
    declare(&store, "q", bound("item", "id")).await;
    put(&store, "q", vec![keyed("1")]).await;
    database.psql("ALTER TABLE item DROP COLUMN id").unwrap();
    database.psql("UPDATE item SET price = 2; DELETE FROM item; TRUNCATE item").unwrap();
    let answers = put(&store, "q", vec![keyed("1")]).await.answers;
    let why = refusal(&answers[0]).to_string();
    assert!(why.contains("no column id"), "{why}");
    assert!(found(&store).await.iter().any(|one| one.code == "subject_gone" && one.grave));
}

#[tokio::test]
async fn a_table_that_was_made_again_is_bound_again() {
    let database = database_within().await;
    database.psql(ITEMS).unwrap();
    let store = store(&database.url()).await;
    declare(&store, "q", bound("item", "id")).await;
    database.psql(&format!("DROP TABLE item; {ITEMS}")).unwrap();
    // Not by the put, which would stop every writer of the table until its end.
    let answers = put(&store, "q", vec![keyed("1")]).await.answers;
    assert!(refusal(&answers[0]).to_string().contains("lost its triggers"), "{answers:?}");
    database.psql("SELECT gristmill.sweep_subjects(100)").unwrap();
    assert!(put(&store, "q", vec![keyed("1")]).await.answers[0].is_enqueued());
    database.psql(&format!("DROP TABLE item; {ITEMS}")).unwrap();
    declare(&store, "q", bound("item", "id")).await;
    assert!(put(&store, "q", vec![keyed("2")]).await.answers[0].is_enqueued());
    database.psql("DELETE FROM item WHERE id = 2").unwrap();
    assert_eq!(stats(&store, "q").await.total(), 1, "one of the first table stands");
}

#[tokio::test]
async fn two_schemas_may_be_bound_to_one_table() {
    let database = database_within().await;
    database.psql(ITEMS).unwrap();
    let and = if database.url().contains('?') { '&' } else { '?' };
    let one = store(&database.url()).await;
    let two = store(&format!("{}{and}schema=mill_two", database.url())).await;
    declare(&one, "q", bound("item", "id")).await;
    declare(&two, "q", bound("item", "id")).await;
    for store in [&one, &two] {
        assert!(put(store, "q", vec![keyed("1")]).await.answers[0].is_enqueued());
    }
    database.psql("DELETE FROM item WHERE id = 1").unwrap();
    for store in [&one, &two] {
        assert_eq!(stats(store, "q").await.total(), 0);
    }
    // One takes its triggers away: the other's stay, and are nobody else's.
    declare(&one, "q", gristmill_core::SettingsPatch { bind: Some(None), ..Default::default() })
        .await;
    let client = application(&database.url()).await;
    assert_eq!(triggers(&client, "item").await, 3);
    assert!(put(&two, "q", vec![keyed("2")]).await.answers[0].is_enqueued());
    database.psql("DELETE FROM item WHERE id = 2").unwrap();
    assert_eq!(stats(&two, "q").await.total(), 0);
}

#[tokio::test]
async fn a_session_that_looks_elsewhere_moves_nothing() {
    let database = database_within().await;
    database.psql(ITEMS).unwrap();
    let store = store(&database.url()).await;
    declare(&store, "q", bound("item", "id")).await;
    let tenant = application(&database.url()).await;
    tenant
        .batch_execute(
            "CREATE SCHEMA tenant; SET search_path = tenant, public;
             CREATE TABLE item (id integer PRIMARY KEY); INSERT INTO item VALUES (8)",
        )
        .await
        .unwrap();
    let enqueue = "SELECT outcome, reason FROM gristmill.enqueue('q', '{}', key => $1)";
    for (key, wanted) in [("1", "enqueued"), ("8", "refused")] {
        let row = tenant.query_one(enqueue, &[&key]).await.unwrap();
        assert_eq!(row.get::<_, String>(0), wanted, "{key}");
    }
    // Neither does a program that starts there and declares what it always did.
    let and = if database.url().contains('?') { '&' } else { '?' };
    let there = format!("{}{and}options=-csearch_path%3Dtenant", database.url());
    let other = self::store(&there).await;
    declare(&other, "q", bound("item", "id")).await;
    assert_eq!(triggers(&tenant, "tenant.item").await, 0);
    assert_eq!(triggers(&tenant, "public.item").await, 3);
    database.psql("DELETE FROM item WHERE id = 1").unwrap();
    assert_eq!(stats(&store, "q").await.total(), 0);
}

#[tokio::test]
async fn many_keys_are_asked_for_as_each_by_itself() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    client
        .batch_execute(
            "CREATE TABLE number (id integer PRIMARY KEY); INSERT INTO number VALUES (0), (7), (-3);
             CREATE TABLE word (id text PRIMARY KEY); INSERT INTO word VALUES ('7'), ('a'), ('');
             CREATE TABLE length (id numeric(5, 2) PRIMARY KEY); INSERT INTO length VALUES (7)",
        )
        .await
        .unwrap();
    let tables = ["number", "word", "length"];
    for table in tables {
        let bind = format!("{{\"bind\": {{\"table\": \"{table}\", \"column\": \"id\"}}}}");
        let add = format!("SELECT gristmill.add_queue('{table}', '{bind}')");
        client.batch_execute(&add).await.unwrap();
    }
    let keys = ["7", "x", "0", "007", "-3", "+7", "7.00", "", "a", "99999999999", "8", "7"];
    let one = "SELECT array_agg(gristmill.subject_fault(q, k.key) ORDER BY k.position)
                 FROM gristmill.queue q, unnest($2::text[]) WITH ORDINALITY AS k (key, position)
                WHERE q.name = $1";
    let all = "SELECT gristmill.subject_faults(q, $2) FROM gristmill.queue q WHERE q.name = $1";
    for (table, fine) in tables.into_iter().zip([4, 4, 1]) {
        let keys: Vec<Option<&str>> = keys.into_iter().map(Some).chain([None]).collect();
        let answer =
            |row: gristmill_postgres::tokio_postgres::Row| -> Vec<Option<String>> { row.get(0) };
        let each = answer(client.query_one(one, &[&table, &keys]).await.unwrap());
        let whole = answer(client.query_one(all, &[&table, &keys]).await.unwrap());
        assert_eq!(each, whole, "{table}");
        assert_eq!(whole.iter().filter(|fault| fault.is_none()).count(), fine, "{whole:?}");
    }
    // A restored database knows the table by other numbers, until the sweep has been.
    let moved = "UPDATE gristmill.bound SET place = 1, attnum = 9";
    client.batch_execute(moved).await.unwrap();
    let keys = ["7", "8"];
    for sweep in ["", "SELECT gristmill.sweep_subjects(100)"] {
        client.batch_execute(sweep).await.unwrap();
        let row = client.query_one(all, &[&"number", &&keys[..]]).await.unwrap();
        let faults: Vec<Option<String>> = row.get(0);
        assert_eq!(faults, [None, Some("no_such_subject".to_owned())]);
    }
    let left = client.query("SELECT FROM gristmill.bound WHERE place = 1", &[]).await.unwrap();
    assert!(left.is_empty());
}
