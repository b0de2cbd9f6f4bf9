//! Who may do what: the roles of a store, functions that run with its owner's
//! rights, and a clock that is nobody's but the server's.

use std::collections::BTreeSet;

use gristmill_conformance::behaviours;
use gristmill_core::{SettingsPatch, Store};
use gristmill_pgserver::Database;
use gristmill_postgres::tokio_postgres::Client;
use gristmill_postgres::tokio_postgres::error::SqlState;

use crate::conformance::{Databases, hold};
use crate::support::{application, database_within, declare, store};

/// Every connection of a store is this role's.
pub(crate) const AS_STORE: &str = "options=-c%20role%3Dgristmill_store";

const PUT: &[&str] = &["enqueue", "enqueue_many", "result", "wake"];
const WORK: &[&str] = &[
    "checkpoint",
    "claim",
    "complete",
    "complete_many",
    "error",
    "extend",
    "fail",
    "maintain",
    "progress",
    "release",
    "requeue_expired",
    "retry",
    "wake",
];
const READ: &[&str] = &["as_json", "result", "schedules", "stats"];
const ADMIN: &[&str] = &[
    "add_queue",
    "add_schedule",
    "as_json",
    "cancel",
    "declare_queue",
    "discard",
    "fire_schedule",
    "maintain",
    "pause",
    "pause_schedule",
    "remove_schedule",
    "requeue_expired",
    "resolve",
    "result",
    "resume",
    "resume_schedule",
    "retry_failed",
    "retry_failed_task",
    "schedules",
    "stats",
    "wake",
];

/// A database with its roles, and a session of a login that has one of them.
pub(crate) async fn with_roles() -> Database {
    let database = database_within().await;
    gristmill_postgres::make_roles(&database.url()).await.expect("roles");
    // A second time changes nothing.
    gristmill_postgres::make_roles(&database.url()).await.expect("roles again");
    database
}

/// A session of a login of its own that was granted this role and nothing else.
async fn session(database: &Database, role: &str) -> Client {
    let client = application(&database.url()).await;
    let login = format!("{role}_login");
    let make = format!(
        "DO $$BEGIN CREATE ROLE {login} LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation
         THEN NULL; END$$; GRANT gristmill_{role} TO {login}; SET SESSION AUTHORIZATION {login}"
    );
    client.batch_execute(&make).await.unwrap();
    client
}

async fn names(client: &Client, sql: &str) -> BTreeSet<String> {
    client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn each_role_may_call_what_it_is_for_and_everybody_nothing() {
    let database = with_roles().await;
    let client = application(&database.url()).await;
    let may = |role: &str| {
        format!(
            "SELECT p.proname::text FROM pg_proc p
              WHERE p.pronamespace = 'gristmill'::regnamespace
                AND has_function_privilege('{role}', p.oid, 'EXECUTE')"
        )
    };
    assert_eq!(names(&client, &may("public")).await, BTreeSet::new());
    for (role, wanted) in [("put", PUT), ("work", WORK), ("read", READ), ("admin", ADMIN)] {
        let role = format!("gristmill_{role}");
        let wanted: BTreeSet<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(names(&client, &may(&role)).await, wanted, "{role}");
        let tables = format!(
            "SELECT c.relname::text FROM pg_class c
              WHERE c.relnamespace = 'gristmill'::regnamespace AND c.relkind IN ('r', 'v', 'S')
                AND CASE WHEN c.relkind = 'S' THEN has_sequence_privilege('{role}', c.oid, 'USAGE, SELECT, UPDATE')
                    ELSE has_table_privilege('{role}', c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE') END"
        );
        let looks = matches!(role.as_str(), "gristmill_read" | "gristmill_admin");
        let wanted: BTreeSet<String> = looks.then(|| "tasks".to_owned()).into_iter().collect();
        assert_eq!(names(&client, &tables).await, wanted, "{role}");
    }
    // Whatever they may call, none of it takes a time from who calls it.
    let clocks = "SELECT p.proname::text FROM pg_proc p, unnest(p.proargnames) a
        WHERE p.pronamespace = 'gristmill'::regnamespace AND a ~ '(^|_)(now|clock)$'
          AND p.pronargs > 0 AND array_position(p.proargnames, a) <= p.pronargs
          AND EXISTS (SELECT 1 FROM unnest(ARRAY['put', 'work', 'read', 'admin']) r
                       WHERE has_function_privilege('gristmill_' || r, p.oid, 'EXECUTE'))";
    assert_eq!(names(&client, clocks).await, BTreeSet::new());
    let open = "SELECT p.proname::text FROM pg_proc p
        WHERE p.pronamespace = 'gristmill'::regnamespace AND p.prosecdef
          AND 'search_path=pg_catalog, pg_temp' <> ALL (coalesce(p.proconfig, '{}'))";
    assert_eq!(names(&client, open).await, BTreeSet::new(), "each has a search_path of its own");
}

#[tokio::test]
async fn with_execute_alone_a_task_goes_its_way() {
    let database = with_roles().await;
    let admin = session(&database, "admin").await;
    admin.batch_execute("SELECT gristmill.add_queue('q', max_attempts => 1)").await.unwrap();
    let put = session(&database, "put").await;
    put.batch_execute(
        "SELECT * FROM gristmill.enqueue('q', '{\"n\": 1}', key => 'a');
         SELECT * FROM gristmill.enqueue_many('q', ARRAY['2', '3']::jsonb[], ARRAY['b', 'c']);
         SELECT gristmill.wake('q')",
    )
    .await
    .unwrap();
    let denied = put.batch_execute("SELECT * FROM gristmill.claim('q')").await.unwrap_err();
    assert_eq!(denied.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE));
    let mut work = session(&database, "work").await;
    let claim = "SELECT id, token FROM gristmill.claim('q', 3, worker => 'w1')";
    let held = work.query(claim, &[]).await.unwrap();
    let (id, token): (Vec<i64>, Vec<String>) = {
        let id = held.iter().map(|row| row.get(0)).collect();
        let text = "SELECT l.token::text FROM gristmill.lease l";
        (id, vec![database.psql(text).unwrap()])
    };
    let token = &token[0];
    // In a transaction of the worker's own: carried out by a trigger as it commits.
    let transaction = work.transaction().await.unwrap();
    let complete = format!("SELECT gristmill.complete({}, '{token}')", id[0]);
    assert_eq!(transaction.query_one(&complete, &[]).await.unwrap().get::<_, &str>(0), "recorded");
    transaction.commit().await.unwrap();
    work.batch_execute(&format!(
        "SELECT * FROM gristmill.extend('{token}'); SELECT gristmill.fail({}, '{token}', 'no');
         SELECT gristmill.release({}, '{token}'); SELECT * FROM gristmill.maintain()",
        id[1], id[2]
    ))
    .await
    .unwrap();
    let read = session(&database, "read").await;
    let seen = "SELECT string_agg(t.state, ' ' ORDER BY t.id) FROM gristmill.tasks t
                 WHERE t.queue = 'q' AND t.payload IS NOT NULL";
    assert_eq!(read.query_one(seen, &[]).await.unwrap().get::<_, &str>(0), "failed pending");
    for forbidden in ["SELECT * FROM gristmill.lease", "SELECT gristmill.cancel(1)"] {
        let denied = read.batch_execute(forbidden).await.unwrap_err();
        assert_eq!(denied.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{forbidden}");
    }
    // Who did it is who is logged in.
    admin
        .batch_execute(&format!(
            "SELECT gristmill.retry_failed_task({}, 'again'); SELECT gristmill.pause('q')",
            id[1]
        ))
        .await
        .unwrap();
    let by = "SELECT t.note_by, q.paused_by FROM gristmill.tasks t
                JOIN gristmill.queue q ON q.name = t.queue WHERE t.note = 'again'";
    assert_eq!(database.psql(by).unwrap(), "admin_login|admin_login");
}

#[tokio::test]
async fn nothing_of_the_callers_runs_with_the_owners_rights() {
    let database = with_roles().await;
    database
        .psql(
            "SELECT gristmill.add_queue('q'); CREATE SCHEMA evil; GRANT ALL ON SCHEMA evil TO PUBLIC;
             CREATE TABLE evil.ran (what text); GRANT ALL ON evil.ran TO PUBLIC",
        )
        .unwrap();
    for (role, calls) in [
        ("put", "SELECT * FROM gristmill.enqueue('q', '1', key => 'k', delay => '0 s')"),
        ("work", "SELECT * FROM gristmill.claim('q'); SELECT * FROM gristmill.maintain()"),
        ("admin", "SELECT gristmill.retry_failed('q'); SELECT * FROM gristmill.stats()"),
    ] {
        let client = session(&database, role).await;
        client
            .batch_execute(
                "CREATE OR REPLACE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql
                     AS 'INSERT INTO evil.ran VALUES (current_user); SELECT now()';
                 CREATE OR REPLACE FUNCTION evil.unnest(anyarray) RETURNS SETOF anyelement
                     LANGUAGE sql AS 'INSERT INTO evil.ran VALUES (current_user); SELECT $1[1]';
                 CREATE OR REPLACE FUNCTION pg_temp.cardinality(anyarray) RETURNS integer
                     LANGUAGE sql AS 'INSERT INTO evil.ran VALUES (current_user); SELECT 1';
                 SET search_path = evil, pg_temp, pg_catalog",
            )
            .await
            .unwrap();
        client.batch_execute(calls).await.unwrap();
        database.psql("DROP FUNCTION evil.clock_timestamp; DROP FUNCTION evil.unnest").unwrap();
    }
    assert_eq!(database.psql("SELECT count(*) FROM evil.ran").unwrap(), "0");
}

#[tokio::test]
async fn a_queue_is_bound_by_who_owns_the_table() {
    let database = with_roles().await;
    database
        .psql(
            "CREATE TABLE theirs (id integer PRIMARY KEY); CREATE SCHEMA mine;
             DO $$BEGIN CREATE ROLE admin_login LOGIN; EXCEPTION WHEN duplicate_object
                 OR unique_violation THEN NULL; END$$;
             CREATE TABLE mine.item (id integer PRIMARY KEY); INSERT INTO mine.item VALUES (1);
             ALTER TABLE mine.item OWNER TO admin_login; GRANT USAGE ON SCHEMA mine TO admin_login",
        )
        .unwrap();
    let admin = session(&database, "admin").await;
    let bind = |table: &str, column: &str| {
        format!(
            "SELECT gristmill.add_queue('{table}', '{{\"bind\": {{\"table\": \"{table}\", \
             \"column\": \"{column}\"}}}}')"
        )
    };
    let denied = admin.batch_execute(&bind("theirs", "id")).await.unwrap_err();
    assert_eq!(denied.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{denied:?}");
    let wrong = admin.batch_execute(&bind("mine.item", "order_id")).await.unwrap_err();
    assert_eq!(wrong.code(), Some(&SqlState::from_code("GM400")), "{wrong:?}");
    assert_eq!(database.psql("SELECT count(*) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relname IN ('theirs', 'item')").unwrap(), "0");
    // By the name that the caller's search_path gives it.
    admin.batch_execute(&format!("SET search_path = mine; {}", bind("item", "id"))).await.unwrap();
    let put = session(&database, "put").await;
    put.batch_execute("SELECT * FROM gristmill.enqueue('item', '1', key => '1')").await.unwrap();
    admin.batch_execute("DELETE FROM mine.item").await.unwrap();
    assert_eq!(database.psql("SELECT count(*) FROM gristmill.tasks").unwrap(), "0");
}

/// A program that uses the library has what `gristmill_store` has, and no more.
#[tokio::test]
async fn the_store_works_with_the_rights_of_its_role() {
    let database = with_roles().await;
    let and = if database.url().contains('?') { '&' } else { '?' };
    let url = format!("{}{and}{AS_STORE}", database.url());
    let store = store(&url).await;
    let who = application(&url).await.query_one("SELECT current_user::text", &[]).await.unwrap();
    assert_eq!(who.get::<_, &str>(0), "gristmill_store", "the test is what it says");
    declare(&store, "q", SettingsPatch::default()).await;
    let told = store.diagnose().await.unwrap();
    assert!(told.iter().all(|one| !one.grave), "{told:?}");
    let drop = application(&url).await.batch_execute("DROP TABLE gristmill.task").await;
    assert!(drop.is_err(), "but not with the schema");
}

fn as_store() -> Databases {
    Databases { words: AS_STORE, roles: true, ..Databases::default() }
}

#[test]
fn with_the_rights_of_its_role_a_sample_holds() {
    let meant = ["rule_03", "rule_06", "rule_12", "verb_put", "verb_claim", "verb_settle"];
    let sample =
        behaviours().into_iter().filter(|one| meant.iter().any(|m| one.name.starts_with(m)));
    hold(as_store(), sample.step_by(3));
}

#[test]
#[ignore = "long: every behaviour once more"]
fn long_with_the_rights_of_its_role_every_behaviour_holds() {
    hold(as_store(), behaviours());
}
