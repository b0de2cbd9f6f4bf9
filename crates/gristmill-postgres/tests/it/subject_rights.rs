//! Whose rights count when a subject goes: the triggers run with those of the
//! schema's owner, and nothing of anybody else's does.

use gristmill_core::Store;
use gristmill_postgres::tokio_postgres::error::SqlState;

use crate::support::{application, bound, database_within, declare, keyed, put, stats, store};

const ITEMS: &str = "CREATE TABLE item (price integer, id integer PRIMARY KEY);
                     INSERT INTO item (id) VALUES (1), (2), (7)";

#[tokio::test]
async fn who_owns_the_table_needs_no_right_on_the_queue() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    let role = format!("shop_{}", std::process::id());
    let client = application(&database.url()).await;
    client
        .batch_execute(&format!("{ITEMS}; CREATE ROLE {role}; ALTER TABLE item OWNER TO {role}"))
        .await
        .unwrap();
    declare(&store, "q", bound("item", "id")).await;
    put(&store, "q", vec![keyed("1"), keyed("2"), keyed("7")]).await;
    let owner = format!(
        "SET ROLE {role}; DELETE FROM item WHERE id = 1; UPDATE item SET id = 3 WHERE id = 2;
         UPDATE item SET price = 2; TRUNCATE item; RESET ROLE"
    );
    let ended = client.batch_execute(&owner).await;
    let gone = stats(&store, "q").await.total();
    client
        .batch_execute(&format!("RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}"))
        .await
        .unwrap();
    ended.unwrap();
    assert_eq!(gone, 0);
}

#[tokio::test]
async fn rows_that_the_triggers_may_not_see_are_not_gone() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    let role = format!("mill_{}", std::process::id());
    let client = application(&database.url()).await;
    let owned = format!(
        "{ITEMS}; CREATE ROLE {role}; GRANT ALL ON SCHEMA gristmill TO {role};
         GRANT ALL ON ALL TABLES IN SCHEMA gristmill TO {role};
         GRANT ALL ON ALL SEQUENCES IN SCHEMA gristmill TO {role};
         GRANT ALL ON ALL FUNCTIONS IN SCHEMA gristmill TO {role};
         ALTER FUNCTION gristmill.subject_trigger() OWNER TO {role}"
    );
    client.batch_execute(&owned).await.unwrap();
    let bind =
        "SELECT gristmill.add_queue('q', '{\"bind\": {\"table\": \"item\", \"column\": \"id\"}}')";
    let denied = client.batch_execute(bind).await.expect_err("it may not read");
    client.batch_execute(&format!("GRANT SELECT ON item TO {role}; {bind}")).await.unwrap();
    put(&store, "q", vec![keyed("1"), keyed("2")]).await;
    client.batch_execute("DELETE FROM item WHERE id = 2").await.unwrap();
    let readable = stats(&store, "q").await.total();
    client.batch_execute("ALTER TABLE item ENABLE ROW LEVEL SECURITY").await.unwrap();
    let hidden = client.batch_execute("UPDATE item SET price = 5").await;
    let (left, told) = (stats(&store, "q").await.total(), store.diagnose().await.unwrap());
    let revoke = format!("REVOKE SELECT ON item FROM {role}");
    client.batch_execute(&revoke).await.unwrap();
    let revoked = client.batch_execute("DELETE FROM item").await;
    let undo = format!(
        "ALTER FUNCTION gristmill.subject_trigger() OWNER TO CURRENT_USER;
         DROP OWNED BY {role}; DROP ROLE {role}"
    );
    client.batch_execute(&undo).await.unwrap();
    assert_eq!(denied.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE));
    assert_eq!((readable, left), (1, 1), "the task of a row that stands stays");
    hidden.unwrap();
    revoked.unwrap();
    assert!(told.iter().any(|one| one.grave && one.found.contains("every row")), "{told:?}");
}

#[tokio::test]
async fn nothing_of_the_tables_owner_runs_with_the_queues_rights() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    // What is run in somebody's name is told.
    client
        .batch_execute(
            "CREATE TABLE ran (what text);
             CREATE FUNCTION run(what text) RETURNS boolean LANGUAGE plpgsql AS
                 $$BEGIN INSERT INTO public.ran VALUES (what); RETURN true; END$$;
             CREATE DOMAIN checked AS integer CHECK (run('a check'));
             CREATE TABLE item (id checked PRIMARY KEY); INSERT INTO item VALUES (1), (2);
             SELECT gristmill.add_queue('q', '{\"bind\": {\"table\": \"item\", \"column\": \"id\"}}');
             SELECT * FROM gristmill.enqueue_many('q', array_fill('{}'::jsonb, ARRAY[2]),
                 ARRAY['1', '2']);
             DELETE FROM ran; DELETE FROM item WHERE id = 1; TRUNCATE item",
        )
        .await
        .unwrap();
    let ran = client.query("SELECT FROM ran", &[]).await.unwrap().len();
    let left = client.query("SELECT FROM gristmill.tasks", &[]).await.unwrap().len();
    assert_eq!((ran, left), (0, 0));
    let colours = "CREATE TYPE colour AS ENUM ('red');
        CREATE FUNCTION cast_it(text) RETURNS colour LANGUAGE plpgsql AS
            $$BEGIN PERFORM run('a cast'); RETURN 'red'; END$$;
        CREATE CAST (text AS colour) WITH FUNCTION cast_it(text);
        CREATE TABLE paint (id colour PRIMARY KEY);
        SELECT gristmill.add_queue('p', '{\"bind\": {\"table\": \"paint\", \"column\": \"id\"}}')";
    let error = client.batch_execute(colours).await.expect_err("a cast of somebody's own");
    assert_eq!(error.code(), Some(&SqlState::from_code("GM400")), "{error:?}");
}
