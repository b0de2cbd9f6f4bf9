//! What a claim and a deleted subject cost, by their plans: the index that is
//! meant, no sort, and as many rows as are taken, whatever stands around them.

use std::sync::{Arc, Mutex};

use futures_util::future::poll_fn;
use gristmill_core::{Fair, NewTask, Per, Rate, SettingsPatch, Start};
use gristmill_postgres::tokio_postgres::types::{ToSql, Type};
use gristmill_postgres::tokio_postgres::{self, AsyncMessage, Client, NoTls};
use serde_json::Value;

use crate::support::{
    application, claim, database_within, declare, keyed, put, stats, store, task,
};

/// A queue whose due tasks stand behind what may not cost anything.
const BACKLOG: &str = include_str!("backlog.sql");

/// Runs a statement and brings the plan of every statement within, as run.
async fn plans(url: &str, call: &str, answers: usize) -> Vec<Value> {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let ear = heard.clone();
    let driver = tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notice(notice) = message {
                ear.lock().unwrap().push(notice.message().to_owned());
            }
        }
    });
    client
        .batch_execute(
            "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0;
             SET auto_explain.log_nested_statements = on; SET auto_explain.log_analyze = on;
             SET auto_explain.log_timing = off; SET auto_explain.log_format = json;
             SET auto_explain.log_level = notice; SET client_min_messages = notice",
        )
        .await
        .unwrap();
    let rows = client.query(call, &[]).await.unwrap();
    assert_eq!(rows.len(), answers, "{call}");
    drop(client);
    driver.await.unwrap();
    let texts = heard.lock().unwrap();
    let plans = texts.iter().filter_map(|text| text.split_once("plan:\n"));
    plans.map(|(_, plan)| serde_json::from_str(plan).expect("a plan")).collect()
}

/// The statements of plain puts, by their names.
fn put_statement(name: &str) -> &'static str {
    let all = include_str!("../../src/sql/put.sql");
    let found = all.split("-- name: ").find_map(|text| text.strip_prefix(name));
    found.expect("a statement of this name")
}

/// To plan a put takes longer than to carry it out.
#[tokio::test]
async fn plain_puts_are_not_planned_each_time() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    let client = application(&database.url()).await;
    client.batch_execute("SET enable_seqscan = off").await.unwrap();
    let (refused, patience, now) = (0i32, 10i32, None::<std::time::SystemTime>);
    for name in ["put_plain", "put_keyed", "put_new"] {
        let text = put_statement(name);
        let keyed = [
            Type::TEXT,
            Type::BYTEA_ARRAY,
            Type::TEXT_ARRAY,
            Type::INT2,
            Type::INT4,
            Type::INT4,
            Type::TIMESTAMPTZ,
        ];
        let plain = [Type::TEXT, Type::BYTEA_ARRAY, Type::INT2, Type::INT4, Type::TIMESTAMPTZ];
        let types = if name == "put_plain" { &plain[..] } else { &keyed[..] };
        let statement = client.prepare_typed(text, types).await.unwrap();
        for round in 0..20 {
            let count = 1 + round % 8;
            let payloads = vec![b"{}".as_slice(); count];
            let keys: Vec<_> = (0..count).map(|nth| format!("{name} {round} {nth}")).collect();
            let values: &[&(dyn ToSql + Sync)] = if name == "put_plain" {
                &[&"q", &payloads, &0i16, &refused, &now]
            } else {
                &[&"q", &payloads, &keys, &0i16, &refused, &patience, &now]
            };
            client.query(&statement, values).await.unwrap();
        }
        assert_plan_is_kept(&client, name, text).await;
    }
    let text = put_statement("put_one");
    let types = [Type::TEXT, Type::BYTEA, Type::INT2, Type::TIMESTAMPTZ];
    let statement = client.prepare_typed(text, &types).await.unwrap();
    for _ in 0..20 {
        client.query(&statement, &[&"q", &b"{}".as_slice(), &0i16, &now]).await.unwrap();
    }
    assert_plan_is_kept(&client, "put_one", text).await;
}

/// Of twenty times that a statement ran. The server tries a few plans of its own for each
/// before it keeps one.
async fn assert_plan_is_kept(client: &Client, name: &str, text: &str) {
    let planned = "SELECT generic_plans FROM pg_prepared_statements WHERE statement = $1";
    let kept: i64 = client.query_one(planned, &[&text]).await.unwrap().get(0);
    assert!(kept >= 14, "{name}: a kept plan served {kept} of 20 times");
}

/// Every node of a plan.
fn nodes<'a>(plan: &'a Value, found: &mut Vec<&'a Value>) {
    found.push(plan);
    for inner in plan.get("Plans").and_then(Value::as_array).into_iter().flatten() {
        nodes(inner, found);
    }
}

fn number(node: &Value, name: &str) -> f64 {
    node.get(name).and_then(Value::as_f64).unwrap_or(0.0)
}

#[tokio::test]
async fn a_claim_visits_what_it_takes() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    for queue in ["plain", "sourced"] {
        declare(&store, queue, SettingsPatch::default()).await;
    }
    database.psql(BACKLOG).unwrap();
    for call in [
        "SELECT * FROM gristmill.claim('plain', 10)",
        "SELECT * FROM gristmill.claim('sourced', 10, source => 'mine')",
    ] {
        let plans = plans(&database.url(), call, 10).await;
        let mut visited = 0.0;
        let mut used = false;
        for plan in &plans {
            // Three claims in a hundred look for blocked tasks whose key became free, at a
            // bounded number of them (`do_some`): that is no part of finding what to take.
            let text = plan["Query Text"].as_str().unwrap_or_default();
            let most = if text.contains("LIMIT p_look") { 1000.0 } else { 100.0 };
            let mut all = Vec::new();
            nodes(&plan["Plan"], &mut all);
            for node in all {
                if node.get("Relation Name").and_then(Value::as_str) != Some("task") {
                    continue;
                }
                let kind = node["Node Type"].as_str().unwrap_or_default();
                assert_ne!(kind, "Seq Scan", "{call}: {plan:#}");
                let rows = number(node, "Actual Rows") + number(node, "Rows Removed by Filter");
                let rows = rows * number(node, "Actual Loops").max(1.0);
                assert!(rows <= most, "{call} visited {rows} rows by {text}");
                visited += if most > 100.0 { 0.0 } else { rows };
                let index = node.get("Index Name").and_then(Value::as_str);
                used |= matches!(index, Some("task_pick" | "task_source"));
            }
            let text = plan.to_string();
            let picks = text.contains("task_pick") || text.contains("task_source");
            assert!(!(picks && text.contains("\"Node Type\":\"Sort\"")), "a sort: {plan:#}");
        }
        assert!(used, "{call} uses its index");
        assert!(visited <= 100.0, "{call} visited {visited} rows for ten tasks");
    }
}

/// How many rows of the store's tables the statements of a call visit.
async fn visited(url: &str, call: &str, answers: usize) -> f64 {
    let tables = ["task", "flight", "failed", "done", "delayed", "lease", "subject_failed"];
    let mut visited = 0.0;
    for plan in plans(url, call, answers).await {
        let mut all = Vec::new();
        nodes(&plan["Plan"], &mut all);
        for node in all {
            let of = node.get("Relation Name").and_then(Value::as_str).unwrap_or_default();
            if tables.contains(&of) {
                let rows = number(node, "Actual Rows") + number(node, "Rows Removed by Filter");
                visited += rows * number(node, "Actual Loops").max(1.0);
            }
        }
    }
    visited
}

/// However old the statistics are: of blocked tasks those that are blocked, and of a queue
/// its own, beside a look at a bounded number of others.
#[tokio::test]
async fn a_page_visits_what_its_filter_names() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    let client = application(&database.url()).await;
    client
        .batch_execute("ALTER TABLE gristmill.task SET (autovacuum_enabled = false)")
        .await
        .unwrap();
    client.batch_execute("VACUUM ANALYZE gristmill.task").await.unwrap();
    for queue in ["before", "asked", "behind"] {
        declare(&store, queue, SettingsPatch::default()).await;
    }
    let many = || vec![task("x"); 10_000];
    let keys = || (0..100).map(|n| keyed(&n.to_string())).collect();
    put(&store, "before", many()).await;
    put(&store, "asked", keys()).await;
    assert_eq!(claim(&store, "asked", 100).await.tasks.len(), 100);
    put(&store, "asked", keys()).await;
    put(&store, "asked", vec![task("x"); 200]).await;
    put(&store, "behind", many()).await;
    let number = "(SELECT number FROM gristmill.queue WHERE name = 'asked')";
    let mut dear = Vec::new();
    for statistics in ["old", "new"] {
        for (queue, blocked) in [("NULL", "true"), (number, "true"), (number, "NULL")] {
            let call = format!(
                "SELECT * FROM gristmill.look(9223372036854775807, true, 10, 10000, '{{pending}}',
                     {queue}, NULL, NULL, NULL, NULL, NULL, NULL, {blocked}, NULL, NULL, 200000)
                  WHERE cardinality(ids) = 10"
            );
            let visited = visited(&database.url(), &call, 1).await;
            if visited >= 1_000.0 {
                dear.push(format!("{statistics} statistics, {queue}, {blocked}: {visited} rows"));
            }
        }
        client.batch_execute("VACUUM ANALYZE gristmill.task").await.unwrap();
    }
    assert_eq!(dear, [""; 0]);
}

/// Of groups that have used up their tokens, and have tasks in front, one entry each.
#[tokio::test]
async fn a_claim_visits_each_exhausted_group_once() {
    const GROUPS: usize = 2_000;
    let database = database_within().await;
    let store = store(&database.url()).await;
    let hour = std::time::Duration::from_secs(3600);
    let per_group = SettingsPatch {
        rate: Some(Some(Rate::new(1, hour))),
        rate_per: Some(Per::Group),
        ..SettingsPatch::default()
    };
    declare(&store, "taken", per_group.clone()).await;
    declare(&store, "turns", SettingsPatch { fair: Some(Fair::Group), ..per_group }).await;
    let of = |n: usize| NewTask { group: Some(format!("g{n:04}")), ..task("x") };
    let source = |n: usize| NewTask { source: Some("mine".to_owned()), ..of(n) };
    for queue in ["taken", "turns"] {
        for _ in 0..2 {
            put(&store, queue, (0..GROUPS).map(source).collect()).await;
        }
        for _ in 0..GROUPS / 1_000 {
            assert_eq!(claim(&store, queue, 1_000).await.tasks.len(), 1_000);
        }
        put(&store, queue, vec![of(GROUPS)]).await;
    }
    for (call, answers) in [
        ("SELECT * FROM gristmill.claim('taken', 10)", 1),
        ("SELECT * FROM gristmill.claim('taken', 10)", 0),
        ("SELECT * FROM gristmill.claim('taken', 10, source => 'mine')", 0),
        ("SELECT * FROM gristmill.claim('turns', 10)", 1),
        ("SELECT * FROM gristmill.claim('turns', 10)", 0),
    ] {
        let visited = visited(&database.url(), call, answers).await;
        assert!(visited <= 3.0 * GROUPS as f64, "{call} visited {visited} entries");
    }
}

/// Whatever else is being worked on, and however old the statistics are.
#[tokio::test]
async fn a_settlement_visits_its_own_lease() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    let client = application(&database.url()).await;
    client
        .batch_execute("ALTER TABLE gristmill.lease SET (autovacuum_enabled = false)")
        .await
        .unwrap();
    for table in ["lease", "queue"] {
        client.batch_execute(&format!("VACUUM ANALYZE gristmill.{table}")).await.unwrap();
    }
    for _ in 0..3 {
        put(&store, "q", (0..400).map(|n| task(&n.to_string())).collect()).await;
    }
    client
        .batch_execute(
            "CREATE TABLE mine (id bigint, token uuid);
             DO $$ BEGIN FOR i IN 1..1000 LOOP
                 INSERT INTO mine SELECT c.id, c.token FROM gristmill.claim('q', 1) c;
             END LOOP; END $$",
        )
        .await
        .unwrap();
    for (ended, nth) in [("complete(m.id, m.token)", 1), ("error(m.id, m.token, 'x')", 2)] {
        let call = format!(
            "SELECT gristmill.{ended} FROM
                 (SELECT * FROM mine ORDER BY id LIMIT 1 OFFSET {nth}) m"
        );
        let visited = visited(&database.url(), &call, 1).await;
        assert!(visited < 30.0, "{ended} visited {visited} rows");
    }
}

#[tokio::test]
async fn a_deleted_subject_costs_its_own_tasks() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    // What the statistics say is as old as an empty store.
    for step in [
        "CREATE TABLE item (id integer PRIMARY KEY);
         SELECT gristmill.add_queue('q', '{\"bind\": {\"table\": \"item\", \"column\": \"id\"}}',
             keep_done => '1 day');
         ALTER TABLE gristmill.task SET (autovacuum_enabled = false);
         ALTER TABLE gristmill.flight SET (autovacuum_enabled = false);
         ALTER TABLE gristmill.lease SET (autovacuum_enabled = false);
         ALTER TABLE gristmill.failed SET (autovacuum_enabled = false);
         ALTER TABLE gristmill.done SET (autovacuum_enabled = false)",
        "VACUUM ANALYZE gristmill.task",
        "VACUUM ANALYZE gristmill.flight",
        "VACUUM ANALYZE gristmill.lease",
        "VACUUM ANALYZE gristmill.failed",
        "VACUUM ANALYZE gristmill.done",
        "INSERT INTO item SELECT generate_series(1, 10000);
         INSERT INTO gristmill.task (id, queue, key, run_at, created_at, payload)
         SELECT nextval('gristmill.task_id'), 10000, n::text, now(), now(), ''
           FROM generate_series(1, 10000) n;
         INSERT INTO gristmill.failed (id, queue, key, run_at, created_at, payload)
         SELECT nextval('gristmill.task_id'), 10000, n::text, now(), now(), ''
           FROM generate_series(1, 10000) n;
         INSERT INTO gristmill.done (id, queue, key, run_at, created_at, resolved_at, payload)
         SELECT nextval('gristmill.task_id'), 10000, n::text, now(), now(), now(), ''
           FROM generate_series(1, 10000) n;
         SELECT count(*) FROM gristmill.claim('q', 1000);
         SELECT count(*) FROM gristmill.claim('q', 1000)",
    ] {
        client.batch_execute(step).await.unwrap();
    }
    let url = database.url();
    for (call, most) in [
        ("DELETE FROM item WHERE id = 9000", 40.0),
        ("DELETE FROM item WHERE id = 1", 40.0),
        ("DELETE FROM item WHERE id BETWEEN 8001 AND 8100", 3000.0),
    ] {
        let cost = visited(&url, call, 0).await;
        assert!(cost <= most, "{call} visited {cost} rows");
    }
    for _ in 0..8 {
        let cost = visited(&url, "SELECT gristmill.sweep_subjects(500)", 1).await;
        assert!(cost <= 1000.0, "a sweep of 500 visited {cost} rows");
    }
    let left = client.query_one("SELECT count(*) FROM gristmill.tasks", &[]).await.unwrap();
    assert_eq!(left.get::<_, i64>(0), 30_000 - 3 * 102, "nothing else went");
}

#[tokio::test]
async fn what_a_jump_back_makes_undue_is_counted_in_steps() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    // What the statistics say is as old as an empty store.
    let client = application(&database.url()).await;
    for table in ["task", "delayed"] {
        let off = format!("ALTER TABLE gristmill.{table} SET (autovacuum_enabled = false)");
        client.batch_execute(&off).await.unwrap();
        client.batch_execute(&format!("VACUUM ANALYZE gristmill.{table}")).await.unwrap();
    }
    for queue in ["q", "r"] {
        declare(&store, queue, SettingsPatch::default()).await;
        let later = Start::After(std::time::Duration::from_secs(90));
        let ready = |n: i16| NewTask { priority: n % 2, ..task("x") };
        put(&store, queue, (0..600).map(ready).collect()).await;
        let delayed = NewTask { start: later, ..task("x") };
        put(&store, queue, vec![delayed; 600]).await;
    }
    let first = "SELECT * FROM gristmill.count_undue(NULL, NULL, NULL, NULL, 100,
                                                     now() - interval '1 hour')";
    let cost = visited(&database.url(), first, 1).await;
    assert!(cost <= 600.0, "a step of 100 visited {cost} rows");
    assert_eq!(stats(&store, "q").await.ready, 500);
    client
        .batch_execute(
            "DO $$
             DECLARE
                 v_from  record;
                 v_steps integer := 1;
                 v_now   timestamptz := now() - interval '1 hour';
             BEGIN
                 SELECT * INTO v_from
                   FROM gristmill.count_undue(NULL, NULL, NULL, NULL, 100, v_now);
                 WHILE v_from.queue IS NOT NULL LOOP
                     SELECT * INTO v_from FROM gristmill.count_undue(
                         v_from.queue, v_from.level, v_from.run_at, v_from.id, 100, v_now);
                     v_steps := v_steps + 1;
                 END LOOP;
                 ASSERT v_steps = 25, format('%s steps', v_steps);
             END $$",
        )
        .await
        .unwrap();
    for queue in ["q", "r"] {
        let stats = stats(&store, queue).await;
        assert_eq!((stats.ready, stats.delayed), (0, 1200), "{queue}");
    }
}
