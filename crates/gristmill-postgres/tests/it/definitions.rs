//! Functions, views and triggers: made again when their text is another one, and
//! never taken back by an older program.

use gristmill_core::{Store, StoreError};
use gristmill_pgserver::Database;
use gristmill_postgres::{Options, PostgresStore, restore};

use crate::rights::{AS_STORE, with_roles};
use crate::support::{database_within, store};

/// As though a program of this version had made the functions, with another text
/// of those that are named.
fn as_made_by(database: &Database, program: &str, changed: &str) {
    let text = format!(
        "UPDATE gristmill.meta SET definitions = 'others', program = '{program}';
         UPDATE gristmill.definition SET checksum = 'other', made_at = '-infinity'
          WHERE name IN ({changed});
         UPDATE gristmill.definition SET made_at = '-infinity'"
    );
    database.psql(&text).unwrap();
}

fn body(database: &Database, function: &str) -> String {
    let text = format!(
        "SELECT p.prosrc FROM pg_proc p WHERE p.pronamespace = 'gristmill'::regnamespace
            AND p.proname = '{function}'"
    );
    database.psql(&text).unwrap()
}

async fn reopen(database: &Database) {
    store(&database.url()).await.close().await.unwrap();
}

const OTHER_WAKE: &str = "CREATE OR REPLACE FUNCTION gristmill.wake(queue text) RETURNS void
    LANGUAGE plpgsql AS $$BEGIN NULL; END$$";

#[tokio::test]
async fn a_function_whose_text_changed_is_made_again_in_its_place() {
    let database = database_within().await;
    let (wake, oid) = (body(&database, "wake"), "SELECT 'gristmill.wake'::regproc::oid");
    let before = database.psql(oid).unwrap();
    database.psql(OTHER_WAKE).unwrap();
    reopen(&database).await;
    assert_ne!(body(&database, "wake"), wake, "an open looks at what is remembered");
    as_made_by(&database, "{0,0,9}", "'wake'");
    let without = Options { migrate: false, ..Options::default() };
    let told = PostgresStore::open(&database.url(), without).await;
    assert!(
        matches!(&told, Err(StoreError::NotAStore(why)) if why.contains("migrate")),
        "{told:?}"
    );
    reopen(&database).await;
    assert_eq!(body(&database, "wake"), wake);
    assert_eq!(database.psql(oid).unwrap(), before, "what stands on it stands on");
    let made = "SELECT string_agg(d.name, ' ') FROM gristmill.definition d
                 WHERE d.made_at > '-infinity'";
    assert_eq!(database.psql(made).unwrap(), "wake", "nothing else was touched");
}

#[tokio::test]
async fn other_arguments_and_columns_are_no_obstacle_and_rights_are_kept() {
    let database = with_roles().await;
    database
        .psql(
            "DROP FUNCTION gristmill.wake;
             CREATE FUNCTION gristmill.wake(queue integer) RETURNS void LANGUAGE sql AS '';
             REVOKE ALL ON FUNCTION gristmill.wake FROM PUBLIC;
             GRANT EXECUTE ON FUNCTION gristmill.wake TO gristmill_read;
             GRANT EXECUTE ON FUNCTION gristmill.wake TO gristmill_put WITH GRANT OPTION;
             DROP VIEW gristmill.tasks, gristmill.shown;
             DROP FUNCTION gristmill.as_json;
             CREATE FUNCTION gristmill.as_json(p_payload bytea, p_other smallint) RETURNS jsonb
                 LANGUAGE sql AS 'SELECT ''1''::jsonb';
             REVOKE ALL ON FUNCTION gristmill.as_json FROM PUBLIC;
             GRANT EXECUTE ON FUNCTION gristmill.as_json TO gristmill_read;
             CREATE VIEW gristmill.shown AS SELECT 1 AS id;
             CREATE VIEW gristmill.tasks AS
                 SELECT s.id, gristmill.as_json('', 0::smallint) AS old FROM gristmill.shown s;
             GRANT SELECT ON gristmill.tasks TO gristmill_read;
             GRANT SELECT (id, old) ON gristmill.tasks TO gristmill_put",
        )
        .unwrap();
    as_made_by(&database, "{0,0,9}", "'wake', 'as_json', 'shown', 'tasks'");
    reopen(&database).await;
    let rights = "SELECT has_function_privilege('gristmill_read', 'gristmill.wake(text)', 'EXECUTE'),
        has_function_privilege('gristmill_put', 'gristmill.wake(text)', 'EXECUTE WITH GRANT OPTION'),
        has_function_privilege('gristmill_work', 'gristmill.wake(text)', 'EXECUTE'),
        has_function_privilege('gristmill_read', 'gristmill.as_json', 'EXECUTE'),
        has_table_privilege('gristmill_read', 'gristmill.tasks', 'SELECT'),
        has_column_privilege('gristmill_put', 'gristmill.tasks', 'id', 'SELECT'),
        has_column_privilege('gristmill_put', 'gristmill.tasks', 'payload', 'SELECT')"
        .replace("'gristmill.as_json'", "'gristmill.as_json(bytea, smallint)'");
    assert_eq!(database.psql(&rights).unwrap(), "t|t|f|t|t|t|f");
    let open = "SELECT count(*) FROM pg_proc p, aclexplode(coalesce(p.proacl,
                    acldefault('f', p.proowner))) a
                 WHERE p.pronamespace = 'gristmill'::regnamespace AND a.grantee = 0";
    assert_eq!(database.psql(open).unwrap(), "0", "nobody may do anything by default");
    let told = store(&database.url()).await.diagnose().await.unwrap();
    assert!(told.iter().all(|one| one.code != "schema_drift"), "{told:?}");
}

#[tokio::test]
async fn what_is_no_more_goes_and_what_somebody_added_stays() {
    let database = database_within().await;
    database
        .psql(
            "CREATE FUNCTION gristmill.once_ours(a integer) RETURNS void LANGUAGE sql AS '';
             CREATE FUNCTION gristmill.theirs() RETURNS void LANGUAGE sql AS '';
             GRANT EXECUTE ON FUNCTION gristmill.theirs TO PUBLIC;
             INSERT INTO gristmill.definition VALUES ('function', 'once_ours', 'x')",
        )
        .unwrap();
    as_made_by(&database, "{0,0,9}", "''");
    reopen(&database).await;
    assert_eq!(body(&database, "once_ours"), "");
    let theirs = "SELECT count(*) FROM pg_proc p, aclexplode(p.proacl) a
                   WHERE p.proname = 'theirs' AND a.grantee = 0";
    assert_eq!(database.psql(theirs).unwrap(), "1");
}

/// PostgreSQL names what stands in the way, and nothing is changed.
#[tokio::test]
async fn nothing_of_somebody_elses_is_dropped_along() {
    let database = database_within().await;
    database
        .psql(
            "CREATE FUNCTION gristmill.once_ours() RETURNS integer LANGUAGE sql AS 'SELECT 1';
             CREATE VIEW their_view AS SELECT gristmill.once_ours() AS a;
             INSERT INTO gristmill.definition VALUES ('function', 'once_ours', 'x')",
        )
        .unwrap();
    database.psql(OTHER_WAKE).unwrap();
    let other = body(&database, "wake");
    as_made_by(&database, "{0,0,9}", "'wake'");
    let refused = PostgresStore::open(&database.url(), Options::default()).await.map(drop);
    let why = refused.unwrap_err().whole();
    assert!(why.contains("once_ours") && why.contains("their_view"), "{why}");
    assert_eq!(body(&database, "wake"), other);
    assert_eq!(database.psql("SELECT a FROM their_view").unwrap(), "1");
}

#[tokio::test]
async fn an_older_program_takes_nothing_of_a_newer_one_back() {
    let database = database_within().await;
    database.psql(OTHER_WAKE).unwrap();
    let newer = body(&database, "wake");
    as_made_by(&database, "{99,0,0}", "'wake'");
    for migrate in [true, false] {
        let options = Options { migrate, ..Options::default() };
        let store = PostgresStore::open(&database.url(), options).await.unwrap();
        let told = store.diagnose().await.unwrap();
        assert!(told.iter().any(|one| one.code == "newer_functions" && !one.grave), "{told:?}");
        assert!(told.iter().all(|one| one.code != "schema_drift"), "{told:?}");
    }
    assert_eq!(restore(&database.url()).await.unwrap(), Vec::<String>::new());
    assert_eq!(body(&database, "wake"), newer);
}

#[tokio::test]
async fn of_many_that_start_at_once_one_makes_the_functions_again() {
    let database = database_within().await;
    let wake = body(&database, "wake");
    database.psql(&format!("{OTHER_WAKE}; DROP FUNCTION gristmill.maintain")).unwrap();
    as_made_by(&database, "{0,0,9}", "'wake'");
    let opening = (0..6).map(|_| {
        let url = database.url();
        tokio::spawn(async move { PostgresStore::open(&url, Options::default()).await.map(drop) })
    });
    for opened in opening.collect::<Vec<_>>() {
        opened.await.unwrap().expect("opened");
    }
    assert_eq!(body(&database, "wake"), wake);
    let made = "SELECT count(*), count(DISTINCT d.made_at) < 3 FROM gristmill.definition d
                 WHERE d.made_at > '-infinity'";
    assert_eq!(database.psql(made).unwrap(), "2|t");
    let left = "SELECT count(*) FROM pg_proc p WHERE p.proname = 'define'";
    assert_eq!(database.psql(left).unwrap(), "0", "what makes them is gone again");
}

/// A new function comes with the rights of the roles that stand, or a process with
/// the rights of a role could not go on.
#[tokio::test]
async fn new_functions_are_granted_to_the_roles_they_are_for() {
    let database = with_roles().await;
    database
        .psql(
            "DROP FUNCTION gristmill.fold, gristmill.maintain;
             REVOKE EXECUTE ON FUNCTION gristmill.wake FROM gristmill_put",
        )
        .unwrap();
    let made = restore(&database.url()).await.unwrap();
    assert_eq!(made, ["fold", "maintain"]);
    let rights = "SELECT string_agg(r, ' ' ORDER BY r) FROM unnest(ARRAY['put', 'work', 'read',
            'admin', 'store']) r
        WHERE has_function_privilege('gristmill_' || r, 'gristmill.maintain', 'EXECUTE')";
    let of =
        |function: &str| database.psql(&rights.replace("gristmill.maintain", function)).unwrap();
    assert_eq!(of("gristmill.maintain(double precision)"), "admin store work");
    assert_eq!(of("gristmill.fold(integer)"), "store");
    assert_eq!(of("gristmill.wake(text)"), "admin store work", "what was taken stays taken");
}

/// So do the tables of a step, to the role of programs.
#[tokio::test]
async fn new_tables_are_granted_to_the_role_of_programs() {
    let database = with_roles().await;
    // As before the step that made these.
    database
        .psql(
            "DROP TABLE gristmill.bound, gristmill.subject_failed, gristmill.subject_sweep CASCADE;
             DROP INDEX gristmill.task_grp_id, gristmill.task_source_id,
                 gristmill.failed_grp_id, gristmill.failed_source_id;
             ALTER TABLE gristmill.delta DROP COLUMN waits;
             ALTER TABLE gristmill.minute DROP COLUMN waits;
             DELETE FROM gristmill.migration WHERE version >= 2",
        )
        .unwrap();
    reopen(&database).await;
    let rights = "SELECT has_table_privilege('gristmill_store', 'gristmill.bound', 'INSERT'),
            has_table_privilege('gristmill_store', 'gristmill.migration', 'INSERT'),
            has_table_privilege('gristmill_read', 'gristmill.bound', 'SELECT')";
    assert_eq!(database.psql(rights).unwrap(), "t|f|f");
    let and = if database.url().contains('?') { '&' } else { '?' };
    let store = store(&format!("{}{and}{AS_STORE}", database.url())).await;
    assert!(store.diagnose().await.unwrap().iter().all(|one| !one.grave));
}

/// Whoever may not create is told, and has changed nothing; `doctor` compares the
/// functions all the same.
#[tokio::test]
async fn a_role_that_may_not_create_is_told() {
    let database = with_roles().await;
    let and = if database.url().contains('?') { '&' } else { '?' };
    let url = format!("{}{and}{AS_STORE}", database.url());
    database.psql("DROP FUNCTION gristmill.fold").unwrap();
    database.psql(OTHER_WAKE).unwrap();
    let other = body(&database, "wake");
    let found = store(&url).await.diagnose().await.unwrap();
    let told: Vec<_> = found.iter().filter(|one| one.code == "schema_drift").collect();
    assert_eq!(told.len(), 2, "{found:?}");
    for (one, (name, how)) in told.iter().zip([("fold", "missing"), ("wake", "is not the one")]) {
        assert!(one.found.contains(name) && one.found.contains(how), "{one:?}");
        assert!(one.remedy.contains("gristmill migrate"), "{one:?}");
    }
    as_made_by(&database, "{0,0,9}", "'wake'");
    let refused = PostgresStore::open(&url, Options::default()).await.map(drop);
    assert!(matches!(refused, Err(StoreError::Permission(_))), "{refused:?}");
    assert_eq!(body(&database, "wake"), other);
    assert_eq!(restore(&database.url()).await.unwrap(), ["fold", "wake"]);
    assert!(store(&url).await.diagnose().await.unwrap().iter().all(|one| !one.grave));
}
