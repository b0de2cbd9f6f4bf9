//! What SQL clients may say: drivers that leave the types of their parameters
//! open, and every argument that cannot be one, refused by its name.

use std::time::Duration;

use gristmill_core::policy::next_fire::FireTimes;
use gristmill_core::{Rule, SettingsPatch, Store};
use gristmill_postgres::tokio_postgres::Client;
use gristmill_postgres::tokio_postgres::error::SqlState;

use crate::support::{application, claim, database_within, declare, store};

/// A call that must be refused, and the argument that the refusal names.
const REFUSED: &[(&str, &str)] = &[
    ("enqueue(NULL, '1')", "queue"),
    ("enqueue('q', NULL)", "payload"),
    ("enqueue('q', '1', key => '')", "key"),
    ("enqueue('q', '1', key => repeat('k', 513))", "key"),
    ("enqueue('q', '1', key => repeat('ü', 257))", "key"),
    ("enqueue('q', '1', \"group\" => '')", "group"),
    ("enqueue('q', '1', source => repeat('s', 513))", "source"),
    ("enqueue('q', '1', caller_id => '')", "caller_id"),
    ("enqueue('q', '1', delay => '-1 second')", "delay"),
    ("enqueue('q', '1', delay => '-100000 years')", "delay"),
    ("enqueue('q', '1', delay => '100000 years')", "delay"),
    ("enqueue('q', '1', delay => '1 day', run_at => now())", "delay"),
    ("enqueue('q', '1', run_at => 'infinity')", "run_at"),
    ("enqueue('q', '1', run_at => '-infinity')", "run_at"),
    ("enqueue('q', '1', run_at => '12000-01-01')", "run_at"),
    ("enqueue('q', '1', run_at => '1969-12-31 UTC')", "run_at"),
    ("enqueue('q', '1', priority => 500000)", "priority"),
    ("enqueue('q', '1', priority => -32769)", "priority"),
    ("enqueue('q', '1', priority => NULL)", "priority"),
    ("enqueue('q', '1', headers => 'null')", "headers"),
    ("enqueue('q', '1', headers => '[1, 2]')", "headers"),
    ("enqueue('q', '1', headers => '\"text\"')", "headers"),
    ("enqueue('q', '1', headers => '{\"shop\": 17}')", "headers"),
    ("enqueue('q', '1', headers => '{\"a\": null}')", "headers"),
    ("enqueue('q', '1', headers => '{\"\": \"a\"}')", "headers"),
    ("enqueue('q', '1', headers => jsonb_build_object('a', repeat('x', 4096)))", "headers"),
    ("enqueue('q', '1', timeout => '0 seconds')", "timeout"),
    ("enqueue('q', '1', timeout => '-1 second')", "timeout"),
    ("enqueue('q', '1', timeout => '2 years')", "timeout"),
    ("enqueue('q', '1', max_attempts => 0)", "max_attempts"),
    ("enqueue('q', '1', backoff => '3')", "backoff"),
    ("enqueue('q', '1', backoff => '{\"first\": 1}')", "backoff"),
    ("enqueue('q', '1', backoff => '{\"jitter\": 1}')", "backoff"),
    ("enqueue('q', '1', backoff => '{\"base\": -1}')", "backoff.base"),
    ("enqueue('q', '1', backoff => '{\"cap\": \"2 years\"}')", "backoff.cap"),
    ("enqueue_many('q', ARRAY['1']::jsonb[], max_attempts => 0)", "max_attempts"),
    ("enqueue('q', to_jsonb(repeat('x', 1048576)))", "payload"),
    ("enqueue_many('q', NULL)", "payloads"),
    ("enqueue_many('q', ARRAY['1', NULL]::jsonb[])", "payloads"),
    ("enqueue_many('q', '[0:1]={1,2}'::jsonb[])", "payloads"),
    ("enqueue_many('q', ARRAY[['1'], ['2']]::jsonb[])", "payloads"),
    ("enqueue_many('q', array_fill('1'::jsonb, ARRAY[10001]))", "payloads"),
    ("enqueue_many('q', ARRAY['1', '2', '3']::jsonb[], ARRAY['a'])", "keys"),
    ("enqueue_many('q', ARRAY['1', '2']::jsonb[], '[0:1]={za,zb}')", "keys"),
    ("enqueue_many('q', ARRAY['1', '2']::jsonb[], ARRAY[['a'], ['b']])", "keys"),
    ("enqueue_many('q', ARRAY['1', '2']::jsonb[], ARRAY['a', ''])", "keys"),
    ("enqueue_many('q', ARRAY['1']::jsonb[], caller_ids => ARRAY['a', 'b'])", "caller_ids"),
    ("enqueue_many('q', ARRAY['1']::jsonb[], caller_ids => '[2:2]={a}')", "caller_ids"),
    ("enqueue_many('q', ARRAY['1']::jsonb[], caller_ids => ARRAY[''])", "caller_ids"),
    ("enqueue_many('q', ARRAY['1']::jsonb[], delay => '-1 s')", "delay"),
    ("enqueue_many('q', ARRAY['1', '2']::jsonb[], delays => ARRAY['1 s']::interval[])", "delays"),
    ("enqueue_many('q', ARRAY['1']::jsonb[], delays => ARRAY['-1 s']::interval[])", "delays"),
    (
        "enqueue_many('q', ARRAY['1']::jsonb[], delays => ARRAY['1 s']::interval[], \
         run_ats => ARRAY[now()])",
        "delays",
    ),
    (
        "enqueue_many('q', ARRAY['1']::jsonb[], run_ats => ARRAY['infinity']::timestamptz[])",
        "run_ats",
    ),
    ("enqueue_many('q', ARRAY['1']::jsonb[], run_ats => ARRAY[now(), now()])", "run_ats"),
    ("enqueue_many('q', ARRAY['1']::jsonb[], priorities => ARRAY[40000])", "priorities"),
    ("enqueue_many('q', ARRAY['1']::jsonb[], priorities => '{}')", "priorities"),
    ("enqueue_many('q', ARRAY['1']::jsonb[], groups => ARRAY[''])", "groups"),
    ("enqueue_many('q', ARRAY['1']::jsonb[], groups => '[0:0]={a}')", "groups"),
    ("enqueue_many('q', ARRAY['1']::jsonb[], sources => ARRAY[repeat('s', 513)])", "sources"),
    ("enqueue_many('q', ARRAY['1']::jsonb[], sources => ARRAY['a', 'b'])", "sources"),
    ("claim(NULL)", "queue"),
    ("claim('q', NULL)", "limit"),
    ("claim('q', 0)", "limit"),
    ("claim('q', lease_seconds => 0.05)", "lease_seconds"),
    ("claim('q', lease_seconds => 'NaN')", "lease_seconds"),
    ("claim('q', lease_seconds => 'infinity')", "lease_seconds"),
    ("claim('q', lease_seconds => 1e9)", "lease_seconds"),
    ("claim('q', source => '')", "source"),
    ("claim('q', worker => '')", "worker"),
    ("claim('q', worker => 'worker@host1:4711')", "worker"),
    ("claim('q', worker => 'ünïcode')", "worker"),
    ("claim('q', worker => repeat('w', 65))", "worker"),
    ("complete(NULL, gen_random_uuid())", "id"),
    ("complete(1, NULL)", "token"),
    ("complete_many(NULL, gen_random_uuid())", "ids"),
    ("complete_many(ARRAY[1, NULL], gen_random_uuid())", "ids"),
    ("complete_many(ARRAY[[1], [2]], gen_random_uuid())", "ids"),
    ("complete_many(ARRAY[1], NULL)", "token"),
    ("error(1, gen_random_uuid(), NULL)", "error"),
    ("error(NULL, gen_random_uuid(), 'x')", "id"),
    ("fail(1, gen_random_uuid(), NULL)", "error"),
    ("retry(1, gen_random_uuid(), NULL)", "after"),
    ("retry(1, gen_random_uuid(), '-1 s')", "after"),
    ("release(1, gen_random_uuid(), '-1 s')", "after"),
    ("release(1, gen_random_uuid(), started => NULL)", "started"),
    ("extend(NULL)", "token"),
    ("extend(gen_random_uuid(), 0)", "lease_seconds"),
    ("cancel(NULL)", "id"),
    ("resolve(NULL)", "id"),
    ("discard(NULL)", "id"),
    ("retry_failed_task(NULL)", "id"),
    ("retry_failed(NULL)", "queue"),
    ("pause(NULL)", "queue"),
    ("resume(NULL)", "queue"),
    ("wake(NULL)", "queue"),
    ("maintain(NULL)", "seconds"),
    ("maintain(0)", "seconds"),
    ("add_queue(NULL)", "name"),
    ("add_queue('no spaces')", "name"),
    ("add_queue('r', NULL)", "settings"),
    ("add_schedule(NULL, 'q', '* * * * *')", "name"),
    ("add_schedule('s s', 'q', '* * * * *')", "name"),
    ("add_schedule('s', NULL, '* * * * *')", "queue"),
    ("add_schedule('s', 'q')", "cron"),
    ("add_schedule('s', 'q', '* * * * *', every => '1 hour')", "cron"),
    ("add_schedule('s', 'q', '61 * * * *')", "cron"),
    ("add_schedule('s', 'q', every => '1 ms')", "every"),
    ("add_schedule('s', 'q', every => '2 years')", "every"),
    ("add_schedule('s', 'q', '* * * * *', payload => NULL)", "payload"),
    ("add_schedule('s', 'q', '* * * * *', zone => 'Mars/Olympus')", "zone"),
    ("add_schedule('s', 'q', '* * * * *', zone => NULL)", "zone"),
    ("add_schedule('s', 'q', '* * * * *', missed => 'never')", "missed"),
    ("add_schedule('s', 'q', '* * * * *', overlap => NULL)", "overlap"),
    ("pause_schedule(NULL)", "name"),
    ("fire_schedule(NULL)", "name"),
    ("remove_schedule(NULL)", "name"),
];

async fn code_of(client: &Client, sql: &str) -> (SqlState, Option<String>, String) {
    let error = client.batch_execute(sql).await.expect_err(sql);
    let said = error.as_db_error().expect("the server's answer");
    (said.code().clone(), said.column().map(str::to_owned), said.message().to_owned())
}

#[tokio::test]
async fn an_argument_that_cannot_be_one_is_refused_by_its_name() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    client.batch_execute("SELECT gristmill.add_queue('q')").await.unwrap();
    for (call, argument) in REFUSED {
        let (code, column, said) =
            code_of(&client, &format!("SELECT * FROM gristmill.{call}")).await;
        assert_eq!(code, SqlState::from_code("GM400"), "{call}: {said}");
        assert_eq!(column.as_deref(), Some(*argument), "{call}: {said}");
        assert!(said.starts_with(argument), "{call}: {said}");
    }
    for (call, argument) in [
        ("enqueue('emial', '1')", "queue"),
        ("claim('emial')", "queue"),
        ("retry_failed('emial')", "queue"),
        ("requeue_expired('emial')", "queue"),
        ("add_schedule('s', 'emial', '* * * * *')", "queue"),
        ("pause_schedule('s')", "name"),
        ("resume_schedule('s')", "name"),
    ] {
        let (code, column, said) =
            code_of(&client, &format!("SELECT * FROM gristmill.{call}")).await;
        assert_eq!(code, SqlState::from_code("GM404"), "{call}: {said}");
        assert_eq!(column.as_deref(), Some(argument), "{call}: {said}");
    }
    let stand = "SELECT FROM gristmill.shown UNION ALL SELECT FROM gristmill.schedule";
    assert!(client.query(stand, &[]).await.unwrap().is_empty(), "nothing of it stands");
}

/// Drivers of many languages send their parameters without types: the server
/// must be able to tell them from the name and the number alone.
#[tokio::test]
async fn no_function_needs_the_types_of_its_parameters() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    let twice = "SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'gristmill'::regnamespace
                  GROUP BY 1 HAVING count(*) > 1";
    assert!(client.query(twice, &[]).await.unwrap().is_empty(), "a name has two functions");
    let all = "SELECT p.proname::text, p.pronargs::integer FROM pg_proc p
                WHERE p.pronamespace = 'gristmill'::regnamespace AND p.prosecdef
                  AND p.prorettype <> 'trigger'::regtype";
    let all = client.query(all, &[]).await.unwrap();
    assert!(all.len() > 20, "{} functions", all.len());
    for row in all {
        let (name, arguments): (String, i32) = (row.get(0), row.get(1));
        let list: Vec<String> = (1..=arguments).map(|nth| format!("${nth}")).collect();
        let sql = format!("SELECT * FROM gristmill.{name}({})", list.join(", "));
        client.prepare(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

#[tokio::test]
async fn a_claim_by_sql_lasts_as_declared_and_brings_the_headers() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    let client = application(&database.url()).await;
    let lease = Some(Duration::from_secs(5));
    declare(&store, "declared", SettingsPatch { lease, ..SettingsPatch::default() }).await;
    client
        .batch_execute(
            "SELECT gristmill.add_queue('said', lease => '7 seconds');
             SELECT gristmill.add_queue('silent');
             SELECT gristmill.enqueue(q, '1', headers => '{\"traceparent\": \"00-1\"}')
               FROM unnest(ARRAY['declared', 'said', 'silent']) q",
        )
        .await
        .unwrap();
    for (queue, seconds) in [("declared", 5.0), ("said", 7.0), ("silent", 180.0)] {
        let claim = "SELECT headers ->> 'traceparent', token,
                            extract(epoch FROM lease_until - clock_timestamp())::float8
                       FROM gristmill.claim($1)";
        let row = client.query_one(claim, &[&queue]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), "00-1");
        let left: f64 = row.get(2);
        assert!(left <= seconds && left > seconds - 2.0, "{queue}: {left}");
        // Prolonged for as long as it was made for.
        let extend = format!(
            "WITH e AS MATERIALIZED (SELECT extended FROM gristmill.extend((
                 SELECT token FROM gristmill.lease l JOIN gristmill.queue q ON q.number = l.queue
                  WHERE q.name = '{queue}')))
             SELECT extract(epoch FROM d.lease)::float8 FROM e, gristmill.deadline d
               JOIN gristmill.queue q ON q.number = d.queue WHERE q.name = '{queue}' AND e.extended"
        );
        let length: f64 = client.query_one(&extend, &[]).await.unwrap().get(0);
        assert!((length - seconds).abs() < 0.001, "{queue}: {length}");
    }
}

#[tokio::test]
async fn many_are_put_later_in_their_group_and_of_their_source() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    let client = application(&database.url()).await;
    let put = "SELECT gristmill.add_queue('q');
        SELECT * FROM gristmill.enqueue_many('q', ARRAY['1', '2']::jsonb[], delay => '1 hour',
            priority => 3, \"group\" => 'g', source => 's', headers => '{\"a\": \"b\"}')";
    client.batch_execute(put).await.unwrap();
    let stand = "SELECT count(*) FROM gristmill.tasks t WHERE t.priority = 3 AND t.\"group\" = 'g'
        AND t.source = 's' AND t.run_at - t.created_at BETWEEN '59 minutes' AND '61 minutes'
        AND t.headers = '{\"a\": \"b\"}'";
    assert_eq!(client.query_one(stand, &[]).await.unwrap().get::<_, i64>(0), 2);
    assert!(claim(&store, "q", 9).await.tasks.is_empty());
}

/// Each task has its own; where it has none, what is said for all, or the default.
#[tokio::test]
async fn of_many_each_has_a_time_a_priority_a_group_and_a_source_of_its_own() {
    let database = database_within().await;
    database.psql("SELECT gristmill.add_queue('q')").unwrap();
    let put = |said: &str| {
        let call = format!(
            "SELECT count(*) FROM gristmill.enqueue_many('q', ARRAY['1', '2', '3']::jsonb[], {said})"
        );
        assert_eq!(database.psql(&call).unwrap(), "3", "{said}");
        let stand =
            "SELECT (extract(epoch FROM t.run_at - t.created_at) / 60)::integer, t.priority,
                t.\"group\", t.source FROM gristmill.tasks t ORDER BY t.payload::text";
        let stand = database.psql(stand).unwrap();
        database.psql("SELECT gristmill.cancel(t.id) FROM gristmill.tasks t").unwrap();
        stand
    };
    let stand = put(
        "delays => ARRAY['1 hour', NULL, '2 hours']::interval[], priorities => ARRAY[NULL, -2, 3],
         groups => ARRAY['g', NULL, 'h'], sources => ARRAY[NULL, 's', NULL]",
    );
    assert_eq!(stand, "60|0|g|\n0|-2||s\n120|3|h|");
    let stand = put(
        "delays => ARRAY['1 hour', NULL, NULL]::interval[], delay => '5 minutes', priority => 7,
         run_ats => ARRAY[NULL, NULL, now() + interval '20 minutes'],
         priorities => ARRAY[NULL, 0, NULL], \"group\" => 'all', groups => ARRAY[NULL, 'g', NULL],
         source => 'web', sources => ARRAY[NULL, NULL, 's']",
    );
    assert_eq!(stand, "60|7|all|web\n5|0|g|web\n20|7|all|s");
    // What begins now stands in the order of the list, whether it says so or not.
    let order = "SELECT string_agg(t.payload::text, ' ' ORDER BY t.run_at, t.id)
                   FROM gristmill.tasks t";
    database
        .psql(
            "SELECT gristmill.enqueue_many('q', ARRAY['1', '2', '3']::jsonb[],
                 delays => ARRAY[NULL, '0 s', NULL]::interval[])",
        )
        .unwrap();
    assert_eq!(database.psql(order).unwrap(), "1 2 3");
    database.psql("SELECT gristmill.cancel(t.id) FROM gristmill.tasks t").unwrap();
    // As node-postgres and psycopg send them: without types.
    let client = application(&database.url()).await;
    client
        .batch_execute(
            "PREPARE untyped AS SELECT * FROM gristmill.enqueue_many($1, $2, $3, delays => $4,
                 priorities => $5, groups => $6, sources => $7, run_ats => $8);
             EXECUTE untyped('q', '{1,2}', '{a,NULL}', '{\"1 day\",NULL}', '{1,2}', '{g,NULL}', NULL,
                 NULL)",
        )
        .await
        .unwrap();
    let stand = "SELECT count(*) FROM gristmill.tasks t
                  WHERE t.priority = 1 AND t.key = 'a' AND t.\"group\" = 'g'";
    assert_eq!(database.psql(stand).unwrap(), "1");
}

/// By SQL as by hand: whatever the rule and a pause say, and deciding nothing.
#[tokio::test]
async fn a_schedule_is_fired_by_sql_as_by_hand() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    let client = application(&database.url()).await;
    let add = "SELECT gristmill.add_queue('q'); SELECT gristmill.add_queue('full', capacity => 1);
        SELECT gristmill.add_schedule('often', 'q', every => '1 day', payload => '{\"n\": 1}');
        SELECT gristmill.add_schedule('alone', 'q', every => '1 day', overlap => 'skip');
        SELECT gristmill.add_schedule('full', 'full', every => '1 day');
        SELECT gristmill.enqueue('full', '1'); SELECT gristmill.pause_schedule('often')";
    client.batch_execute(add).await.unwrap();
    let before = store.schedules().await.unwrap();
    let fire = |name: &str| {
        let call = format!("SELECT outcome, id, reason FROM gristmill.fire_schedule('{name}')");
        database.psql(&call).unwrap()
    };
    let (first, second) = (fire("often"), fire("often"));
    assert!(first.starts_with("fired|") && second.starts_with("fired|"), "{first} {second}");
    let alone = fire("alone");
    assert_eq!(fire("alone"), alone.replace("fired", "overlaps"), "the one before stands");
    assert_eq!(fire("full"), "refused||queue_full");
    let tasks = claim(&store, "q", 9).await.tasks;
    assert_eq!(tasks.len(), 3);
    assert_eq!(tasks[0].payload.bytes.as_ref(), b"{\"n\": 1}");
    assert_eq!(tasks[0].headers["gristmill-schedule"], "often");
    let after = store.schedules().await.unwrap();
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before.decided_until, after.decided_until, "nothing is decided");
        let fired = after.declared.name.as_str() != "full";
        assert_eq!(after.last_fire.is_some(), fired);
        assert_eq!(after.last_tasks.len(), usize::from(fired));
    }
    let at: gristmill_core::Timestamp = tasks[1].headers["gristmill-fire"].parse().unwrap();
    assert_eq!(after.iter().find(|one| one.paused).unwrap().last_fire, Some(at));
    // A finder is code: the program that has it is asked.
    database.psql("UPDATE gristmill.schedule SET payload = NULL WHERE name = 'often'").unwrap();
    assert_eq!(fire("often"), "asked||");
    let asked = store.schedules().await.unwrap();
    assert!(asked.iter().find(|one| one.paused).unwrap().asked().is_some());
    let (code, ..) = code_of(&client, "SELECT gristmill.fire_schedule('nobody')").await;
    assert_eq!(code, SqlState::from_code("GM404"));
}

/// What SQL takes as a rule is what the scheduler can read.
#[tokio::test]
async fn a_cron_expression_is_one_for_sql_when_it_is_one_for_the_scheduler() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    client.batch_execute("SELECT gristmill.add_queue('q')").await.unwrap();
    for cron in [
        "* * * * *",
        "0 0 * * *",
        "15,45 0 * * *",
        "0,30 1,2,3 * * *",
        "30 2 * * 1-6",
        "0 0 1,15 * 0",
        "30 2 25-31 3,10 *",
        "*/20 2 * * *",
        "*/15 0-3 * * *",
        "45 0-23/3 * * 7",
        "30 6 * * MON-FRI",
        "30 6 * jan,Jul sun",
        "0 30 6 * * *",
        "0 30 6 * * * 2030",
        "@daily",
        "@hourly",
        "0 0 29 2 *",
        // And none of these.
        "",
        "* * * *",
        "* * * * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "5-1 * * * *",
        "*/0 * * * *",
        "a * * * *",
        "0 0 30 2 *",
        "0 0 31 4,6 *",
        "@fortnightly",
    ] {
        let read = FireTimes::new(&Rule::Cron(cron.to_owned()), "UTC");
        let add = format!("SELECT gristmill.add_schedule('s', 'q', '{cron}')");
        let added = client.batch_execute(&add).await;
        assert_eq!(added.is_ok(), read.is_ok(), "'{cron}': {added:?}, {read:?}");
    }
}

#[tokio::test]
async fn schedules_of_sql_are_those_of_every_program() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    let client = application(&database.url()).await;
    let add = "SELECT gristmill.add_queue('q');
        SELECT gristmill.add_schedule('morning', 'q', '30 6 * * MON-FRI', payload => '{\"n\": 1}',
            zone => 'Europe/Athens', missed => 'skip', overlap => 'skip');
        SELECT gristmill.add_schedule('often', 'q', every => '90 seconds')";
    client.batch_execute(add).await.unwrap();
    let all = store.schedules().await.unwrap();
    let [morning, often] = all.as_slice() else { panic!("{all:?}") };
    morning.declared.check().unwrap();
    assert_eq!(morning.declared.rule, Rule::Cron("30 6 * * MON-FRI".to_owned()));
    assert_eq!(morning.declared.zone, "Europe/Athens");
    assert_eq!(morning.declared.missed.as_str(), "skip");
    assert_eq!(morning.declared.overlap.as_str(), "skip");
    let payload = morning.declared.payload.as_ref().unwrap();
    assert_eq!(payload.bytes.as_ref(), b"{\"n\": 1}");
    assert_eq!(often.declared.rule, Rule::Every(Duration::from_secs(90)));
    // Declared again, it is as said now, and what was decided stays so.
    let ask = |sql: &str| database.psql(&format!("SELECT gristmill.{sql}")).unwrap();
    assert_eq!(ask("add_schedule('often', 'q', every => '1 minute')"), "f");
    assert_eq!(ask("pause_schedule('often')"), "t");
    assert_eq!(ask("pause_schedule('often')"), "f");
    let paused = store.schedules().await.unwrap();
    assert_eq!(paused[1].decided_until, often.decided_until);
    assert_eq!((paused[1].paused, paused[1].paused_by.as_deref()), (true, Some("postgres")));
    assert_eq!(ask("resume_schedule('often')"), "t");
    let resumed = store.schedules().await.unwrap();
    assert!(!resumed[1].paused && resumed[1].decided_until > often.decided_until);
    assert_eq!(
        database.psql("SELECT name, queue, cron, every FROM gristmill.schedules()").unwrap(),
        "morning|q|30 6 * * MON-FRI|\noften|q||00:01:00"
    );
    assert_eq!(
        (ask("remove_schedule('often')"), ask("remove_schedule('often')")),
        ("t".into(), "f".into())
    );
    assert_eq!(store.schedules().await.unwrap().len(), 1);
}
