//! What SQL clients say is what every other program reads.

use std::time::Duration;

use gristmill_core::{
    Backoff, Binding, Claims, Durability, Fair, OnDuplicate, Per, Queue, Rate, Settings,
    SettingsPatch, Store, Unique,
};
use gristmill_pgserver::Database;
use gristmill_postgres::PostgresStore;

use crate::support::{application, claim, database_within, declare, put, store, task};

/// Each setting with a value in SQL's words.
const SAID: &[(&str, &str)] = &[
    ("lease", "\"3 minutes\""),
    ("timeout", "90.5"),
    ("max_attempts", "null"),
    ("backoff", r#"{"base": "1 second", "cap": 60, "jitter": false}"#),
    ("id_window", "\"2 days\""),
    ("keep_done", "\"1 week\""),
    ("keep_result", "3600"),
    ("keep_failed", "null"),
    ("durability", "\"relaxed\""),
    ("claims", "\"durable\""),
    ("unique", "\"pending\""),
    ("on_duplicate", "\"postpone\""),
    ("postpone_max", "\"1 hour\""),
    ("capacity", "70000000000"),
    ("batch_size", "100"),
    ("count", "true"),
    ("slots", "3"),
    ("processors_min", "0"),
    ("processors_max", "4"),
    ("processors_weight", "2"),
    ("drain_within", "\"00:00:08\""),
    ("max_wait", "0.25"),
    ("bind", r#"{"table": "item", "column": "id"}"#),
];

/// Those that a queue with slots cannot have, or one that postpones.
const SAID_WITHOUT_SLOTS: &[(&str, &str)] = &[
    ("concurrency", "7"),
    ("concurrency_per", "\"group\""),
    ("rate", "\"100/minute\""),
    ("burst", "10"),
    ("rate_per", "\"group\""),
    ("fair", "\"group\""),
    ("unique_for", "\"10 minutes\""),
];

fn settings(said: &[(&str, &str)]) -> String {
    let pairs: Vec<String> =
        said.iter().map(|(name, said)| format!("\"{name}\": {said}")).collect();
    format!(", '{{{}}}'", pairs.join(", "))
}

fn add(database: &Database, name: &str, rest: &str) -> Result<String, String> {
    let asked = format!("SELECT gristmill.add_queue('{name}'{rest})");
    database.psql(&asked).map_err(|e| e.to_string())
}

async fn queue(store: &PostgresStore, name: &str) -> Queue {
    let all = store.queues().await.expect("every queue can be read");
    all.into_iter().find(|queue| queue.name.as_str() == name).expect("it was added")
}

#[tokio::test]
async fn every_setting_that_sql_says_is_read_back() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    database.psql("CREATE TABLE item (id bigint PRIMARY KEY)").unwrap();
    let mut named: Vec<&str> =
        SAID.iter().chain(SAID_WITHOUT_SLOTS).map(|(name, _)| *name).collect();
    let mut names = Settings::NAMES.to_vec();
    named.sort_unstable();
    names.sort_unstable();
    assert_eq!(named, names, "a setting that SQL cannot say");
    add(&database, "all", &settings(SAID)).unwrap();
    let seconds = Duration::from_secs;
    let mut expected = Settings::default();
    expected.lease = seconds(180);
    expected.timeout = Duration::from_millis(90_500);
    expected.max_attempts = None;
    expected.backoff = Backoff { base: seconds(1), cap: seconds(60), jitter: false };
    expected.id_window = seconds(2 * 86_400);
    expected.keep_done = Some(seconds(7 * 86_400));
    expected.keep_result = Some(seconds(3600));
    expected.keep_failed = None;
    expected.durability = Durability::Relaxed;
    expected.claims = Claims::Durable;
    expected.unique = Unique::Pending;
    expected.on_duplicate = OnDuplicate::Postpone;
    expected.postpone_max = Some(seconds(3_600));
    expected.capacity = Some(70_000_000_000);
    expected.batch_size = 100;
    expected.count = true;
    expected.slots = Some(3);
    expected.processors_min = 0;
    expected.processors_max = Some(4);
    expected.processors_weight = 2;
    expected.drain_within = Some(seconds(8));
    expected.max_wait = Some(Duration::from_millis(250));
    expected.bind = Some(Binding { table: "item".to_owned(), column: "id".to_owned() });
    assert_eq!(queue(&store, "all").await.settings, expected);

    add(&database, "limited", &settings(SAID_WITHOUT_SLOTS)).unwrap();
    let mut expected = Settings::default();
    expected.concurrency = Some(7);
    expected.concurrency_per = Per::Group;
    expected.rate = Some(Rate::new(100, seconds(60)));
    expected.burst = Some(10);
    expected.rate_per = Per::Group;
    expected.fair = Fair::Group;
    expected.unique_for = Some(seconds(600));
    assert_eq!(queue(&store, "limited").await.settings, expected);

    // Half of a backoff is a whole one; arguments go before the JSON.
    let rest = ", '{\"backoff\": {\"base\": 5}, \"lease\": 10}', lease => '1 minute', \
                max_attempts => 7, capacity => 9, keep_done => '1 hour', keep_failed => '1 day'";
    add(&database, "named", rest).unwrap();
    let mut expected = Settings::default();
    expected.lease = seconds(60);
    expected.max_attempts = Some(7);
    expected.backoff = Backoff { base: seconds(5), ..Backoff::default() };
    expected.capacity = Some(9);
    expected.keep_done = Some(seconds(3_600));
    expected.keep_failed = Some(seconds(86_400));
    assert_eq!(queue(&store, "named").await.settings, expected);
    add(&database, "plain", "").unwrap();
    assert_eq!(queue(&store, "plain").await.settings, Settings::default());
    // What is in force for the functions is what is read.
    let lease = "SELECT lease FROM gristmill.queue WHERE name = 'named'";
    assert_eq!(database.psql(lease).unwrap(), "00:01:00");
}

#[tokio::test]
async fn what_no_program_could_read_or_use_is_refused() {
    let database = database_within().await;
    for (said, why) in [
        (r#"{"laese": 1}"#, "no setting 'laese'"),
        (r#"{"lease": "soon"}"#, "lease is"),
        (r#"{"lease": 0.05}"#, "at least 0.1 seconds"),
        (r#"{"lease": -1}"#, "lease is"),
        (r#"{"lease": null}"#, "lease is"),
        (r#"{"lease": true}"#, "lease is"),
        (r#"{"keep_done": "2 years"}"#, "at most a year"),
        (r#"{"timeout": 0}"#, "timeout is more than nothing"),
        (r#"{"backoff": 5}"#, "backoff is 5: it is an object"),
        (r#"{"backoff": {"base": "never"}}"#, "backoff.base is"),
        (r#"{"backoff": {"bsae": 1}}"#, "not part of it"),
        (r#"{"backoff": {"jitter": "maybe"}}"#, "backoff.jitter is"),
        (r#"[1]"#, "settings is JSON's array"),
        ("null", "settings is JSON's null"),
        (r#"{"max_attempts": "3"}"#, "max_attempts is"),
        (r#"{"max_attempts": 0}"#, "max_attempts cannot be 0"),
        (r#"{"max_attempts": 2.5}"#, "max_attempts cannot be 2.5"),
        (r#"{"batch_size": 1001}"#, "batch_size cannot be"),
        (r#"{"slots": 0}"#, "slots cannot be"),
        (r#"{"count": "yes"}"#, "count is"),
        (r#"{"unique": "always"}"#, "unique cannot be"),
        (r#"{"on_duplicate": "drop"}"#, "on_duplicate cannot be"),
        (r#"{"unique": "active", "on_duplicate": "replace"}"#, "unique pending"),
        (r#"{"processors_min": 3, "processors_max": 2}"#, "below processors_min"),
        (r#"{"bind": {"table": "item"}}"#, "a table and a column"),
    ] {
        let refused = add(&database, "q", &format!(", '{said}'")).expect_err(said);
        assert!(refused.contains(why), "{said}: {refused}");
    }
    assert_eq!(database.psql("SELECT count(*) FROM gristmill.queue").unwrap(), "0");
}

#[tokio::test]
async fn a_queue_that_sql_paused_is_not_claimed() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1")]).await;
    let ask = |sql: &str| database.psql(&format!("SELECT gristmill.{sql}"));
    assert_eq!(ask("pause('q')").unwrap(), "t");
    let paused = queue(&store, "q").await;
    assert_eq!((paused.paused, paused.paused_by.as_deref()), (true, Some("postgres")));
    assert!(claim(&store, "q", 1).await.tasks.is_empty());
    assert_eq!(ask("pause('q')").unwrap(), "f");
    assert_eq!(ask("resume('q')").unwrap(), "t");
    assert_eq!(ask("resume('q')").unwrap(), "f");
    let resumed = queue(&store, "q").await;
    assert_eq!((resumed.paused, resumed.paused_by), (false, None));
    assert_eq!(claim(&store, "q", 1).await.tasks.len(), 1);
    let unknown = ask("pause('absent')").map_err(|e| e.to_string());
    assert!(
        unknown.as_ref().is_err_and(|e| e.contains("there is no queue 'absent'")),
        "{unknown:?}"
    );
}

#[tokio::test]
async fn a_session_that_reads_backslashes_imports_too() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    client
        .batch_execute(
            "SELECT gristmill.add_queue('q'); SET standard_conforming_strings = off;
             SET escape_string_warning = off",
        )
        .await
        .unwrap();
    let import = "SELECT outcome FROM gristmill.import_many('q', ARRAY['m'], ARRAY[false], ARRAY[
        jsonb_build_object('run_at', now(), 'created_at', now(), 'priority', 0, 'encoding', 0,
            'attempts', 0, 'claims', 0, 'expiries', 0, 'started_releases', 0, 'in_flight', false,
            'unique_active', false)::text], ARRAY[convert_to('x', 'UTF8')], 1000000)";
    let row = client.query_one(import, &[]).await.unwrap();
    assert_eq!(row.get::<_, i16>(0), 0);
}

#[tokio::test]
async fn a_task_that_sql_puts_may_have_settings_of_its_own() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    let said = "timeout => '90 seconds', max_attempts => 1,
                backoff => '{\"base\": 1, \"cap\": \"1 minute\", \"jitter\": false}'";
    database.psql(&format!("SELECT * FROM gristmill.enqueue('q', '1', {said})")).unwrap();
    let many = format!("SELECT * FROM gristmill.enqueue_many('q', '{{2,3}}'::jsonb[], {said})");
    database.psql(&many).unwrap();
    database.psql("SELECT * FROM gristmill.enqueue('q', '4')").unwrap();
    let shown = "SELECT t.timeout, t.max_attempts, t.backoff ->> 'cap' FROM gristmill.tasks t
                  ORDER BY t.id";
    let own = "00:01:30|1|60.0000000000000000";
    assert_eq!(database.psql(shown).unwrap().trim(), [own, own, own, "||"].join("\n"));
    // What a worker of SQL is given, and what its error makes of the task.
    let claimed = "SELECT c.id, c.token, c.timeout FROM gristmill.claim('q') c";
    let claimed = database.psql(claimed).unwrap();
    let [id, token, timeout] = claimed.trim().split('|').collect::<Vec<_>>()[..] else {
        panic!("{claimed}");
    };
    assert_eq!(timeout, "00:01:30");
    database.psql(&format!("SELECT gristmill.error({id}, '{token}', 'no')")).unwrap();
    let state = format!("SELECT t.state FROM gristmill.tasks t WHERE t.id = {id}");
    assert_eq!(database.psql(&state).unwrap().trim(), "failed", "its one attempt is used up");
    let claim = claim(&store, "q", 10).await;
    let own = &claim.tasks[0].settings;
    assert_eq!((own.timeout(), own.max_attempts()), (Some(Duration::from_secs(90)), Some(Some(1))));
    let backoff =
        Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(60), jitter: false };
    assert_eq!(own.backoff(), Some(backoff));
    assert!(claim.tasks[2].settings.is_empty(), "{claim:?}");
}

#[tokio::test]
async fn a_worker_of_sql_keeps_something_for_the_next_attempt() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1")]).await;
    let claimed = "SELECT c.id, c.token, c.checkpoint IS NULL FROM gristmill.claim('q') c";
    let claimed = database.psql(claimed).unwrap();
    let [id, token, nothing] = claimed.trim().split('|').collect::<Vec<_>>()[..] else {
        panic!("{claimed}");
    };
    assert_eq!(nothing, "t");
    let keep = |token: &str, state: &str| {
        database.psql(&format!("SELECT gristmill.checkpoint({id}, '{token}', {state})"))
    };
    assert_eq!(keep(token, "'page 7'").unwrap().trim(), "kept");
    let stale = "00000000-0000-0000-0000-000000000000";
    assert_eq!(keep(stale, "'page 8'").unwrap().trim(), "lease_lost");
    assert!(keep(token, "NULL").unwrap_err().to_string().contains("state is null"));
    let large = keep(token, "convert_to(repeat('x', 65537), 'UTF8')").unwrap_err().to_string();
    assert!(large.contains("state has 65537 bytes"), "{large}");
    database.psql(&format!("SELECT gristmill.retry({id}, '{token}', '0 seconds')")).unwrap();
    assert_eq!(keep(token, "'late'").unwrap().trim(), "lease_lost");
    let shown = "SELECT convert_from(t.checkpoint, 'UTF8') FROM gristmill.tasks t";
    assert_eq!(database.psql(shown).unwrap().trim(), "page 7");
    let claim = claim(&store, "q", 1).await;
    assert_eq!(claim.tasks[0].checkpoint.as_deref(), Some(&b"page 7"[..]));
    assert_eq!(store.check().await.unwrap(), []);
    crate::support::done(&store, &claim).await;
    let left = database.psql("SELECT count(*) FROM gristmill.checkpoint").unwrap();
    assert_eq!(left.trim(), "0", "it goes with its task");
    assert_eq!(keep(token, "'late'").unwrap().trim(), "gone");
}

#[tokio::test]
async fn a_worker_of_sql_says_how_far_it_is() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1")]).await;
    let claimed =
        database.psql("SELECT c.id, c.token FROM gristmill.claim('q', lease_seconds => 9) c");
    let claimed = claimed.unwrap();
    let (id, token) = claimed.trim().split_once('|').unwrap();
    let tell = |token: &str, said: &str| {
        database.psql(&format!("SELECT gristmill.progress({id}, '{token}', {said})"))
    };
    let shown = "SELECT t.progress->>'done', t.progress->>'total', t.progress->>'message',
                        (t.progress->>'at')::timestamptz <= clock_timestamp(),
                        t.lease_until > clock_timestamp() + interval '7 seconds',
                        t.lease_until < clock_timestamp() + interval '10 seconds'
                   FROM gristmill.tasks t";
    let shown = || database.psql(shown).unwrap().trim().to_owned();
    assert_eq!(shown(), "||||t|t", "nothing was said");
    assert_eq!(tell(token, "3, 8, 'rows'").unwrap().trim(), "kept");
    assert_eq!(shown(), "3|8|rows|t|t|t", "the lease is as long as it was made for");
    assert_eq!(tell(token, "4").unwrap().trim(), "kept");
    assert_eq!(shown(), "4|||t|t|t");
    let stale = "00000000-0000-0000-0000-000000000000";
    assert_eq!(tell(stale, "5").unwrap().trim(), "lease_lost");
    assert!(tell(token, "NULL").unwrap_err().to_string().contains("done is null"));
    assert!(tell(token, "1, -2").unwrap_err().to_string().contains("total is -2: it is 0 or more"));
    assert_eq!(tell(token, "6, 6, repeat('ä', 9999)").unwrap().trim(), "kept");
    let read = store.get(gristmill_core::TaskId(id.parse().unwrap())).await.unwrap().unwrap();
    let read = read.lease.unwrap().progress.unwrap().progress;
    assert_eq!((read.done(), read.message().len()), (6, 256));
    assert_eq!(store.check().await.unwrap(), []);
    database.psql("UPDATE gristmill.deadline SET progress = '{\"1\": 7}'").unwrap();
    let read = store.get(gristmill_core::TaskId(id.parse().unwrap())).await.unwrap().unwrap();
    assert_eq!((read.damaged, read.lease.unwrap().progress), (None, None));
    assert_eq!(store.check().await.unwrap().len(), 1);
    database.psql("UPDATE gristmill.deadline SET progress = '[7]'").unwrap();
    assert_eq!(tell(token, "7").unwrap().trim(), "kept", "whatever stood there");
    assert!(shown().starts_with("7|"));
    database.psql(&format!("SELECT gristmill.complete({id}, '{token}')")).unwrap();
    assert_eq!(tell(token, "8").unwrap().trim(), "lease_lost");
    let left = database.psql("SELECT count(*) FROM gristmill.deadline").unwrap();
    assert_eq!(left.trim(), "0", "it goes with its lease");
}

#[tokio::test]
async fn a_worker_of_sql_returns_something_and_a_producer_reads_it() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    let kept =
        SettingsPatch { keep_result: Some(Some(Duration::from_secs(60))), ..Default::default() };
    declare(&store, "q", kept).await;
    put(&store, "q", vec![task("1"), task("2"), task("3"), task("4")]).await;
    let claim = || {
        let claimed = database.psql("SELECT c.id, c.token FROM gristmill.claim('q') c").unwrap();
        let (id, token) = claimed.trim().split_once('|').unwrap();
        (id.to_owned(), token.to_owned())
    };
    let result = |id: &str| {
        let asked = format!("SELECT r.state, r.result, r.error FROM gristmill.result({id}) r");
        database.psql(&asked).unwrap().trim().to_owned()
    };
    let (id, token) = claim();
    assert_eq!(result(&id), "open||");
    let large = format!("SELECT gristmill.complete({id}, '{token}', to_jsonb(repeat('x', 65535)))");
    let large = database.psql(&large).unwrap_err().to_string();
    assert!(large.contains("result has 65537 bytes and 65536 are allowed"), "{large}");
    let done = format!("SELECT gristmill.complete({id}, '{token}', '{{\"sum\": 3}}')");
    assert_eq!(database.psql(&done).unwrap().trim(), "recorded");
    assert_eq!(result(&id), "done|{\"sum\": 3}|");
    // Without a value; and failed.
    let (id, token) = claim();
    database.psql(&format!("SELECT gristmill.complete({id}, '{token}')")).unwrap();
    assert_eq!(result(&id), "done||");
    let (id, token) = claim();
    database.psql(&format!("SELECT gristmill.fail({id}, '{token}', 'no host')")).unwrap();
    assert_eq!(result(&id), "failed||no host");
    assert_eq!(result("99"), "not_known||");
    // In a transaction of one's own it comes true with the commit.
    let (id, token) = claim();
    let within = |end: &str| {
        let all = format!("BEGIN; SELECT gristmill.complete({id}, '{token}', '7'); {end};");
        database.psql(&all).unwrap();
        result(&id)
    };
    assert_eq!(within("ROLLBACK"), "open||");
    assert_eq!(within("COMMIT"), "done|7|");
    assert_eq!(store.check().await.unwrap(), []);
}
