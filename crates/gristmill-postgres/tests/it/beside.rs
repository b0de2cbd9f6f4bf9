//! What others do beside an open transaction, beside each other, and beside
//! maintenance that has much to do.

use std::time::{Duration, Instant};

use gristmill_core::policy::keeping;
use gristmill_core::{
    ClaimRequest, ExtendAnswer, Extension, OnDuplicate, Outcome, SettingsPatch, SettleAnswer,
    Store, Unique,
};
use tokio::time::MissedTickBehavior;
use tokio_postgres::Client;

use crate::support::{
    application, asking, beside, claim, database_within, declare, done, keyed, put, settlements,
    stats, store, task,
};

/// Far longer than it takes, and far shorter than anybody should wait.
const SOON: Duration = Duration::from_secs(20);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, what).await.expect("nobody waits")
}

fn slots(slots: u32) -> SettingsPatch {
    SettingsPatch { slots: Some(Some(slots)), ..SettingsPatch::default() }
}

/// A claim that is open in somebody's transaction holds its tasks, and nobody
/// else's claim.
#[tokio::test]
async fn rule_02_a_claim_beside_an_open_one_takes_others_at_once() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", (0..6).map(|n| keyed(&n.to_string())).collect()).await;
    let other = application(&database.url()).await;
    other.batch_execute("BEGIN").await.unwrap();
    let theirs = other.query("SELECT id FROM gristmill.claim('q', 3)", &[]).await.unwrap();
    assert_eq!(theirs.len(), 3);
    // Patience that a claim which waits for a row would use up.
    let client = application(&database.url()).await;
    client.batch_execute("SET lock_timeout = '2s'").await.unwrap();
    let ours = client.query("SELECT id FROM gristmill.claim('q', 6)", &[]).await.unwrap();
    assert_eq!(ours.len(), 3, "the others, at once");
    assert!(soon(claim(&store, "q", 6)).await.tasks.is_empty());
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(soon(claim(&store, "q", 6)).await.tasks.len(), 3);
}

/// Many keys go into flight at once, and somebody takes one of them at that moment: its
/// task is set aside, and the others are claimed.
#[tokio::test]
async fn rule_06_a_key_that_is_taken_meanwhile_is_set_aside_by_a_claim_of_many() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", (0..20).map(|n| keyed(&format!("{n:02}"))).collect()).await;
    let first = "INSERT INTO gristmill.flight (queue, key, id)
                 SELECT number, '07', 0 FROM gristmill.queue WHERE name = 'q'";
    soon(beside(&database.url(), first, "SELECT * FROM gristmill.claim('q', 20)")).await.unwrap();
    let stats = stats(&store, "q").await;
    assert_eq!((stats.ready, stats.blocked, stats.processing), (0, 1, 19));
}

#[tokio::test]
async fn a_queue_with_slots_goes_on_behind_tasks_that_are_held() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    let settings = SettingsPatch { on_duplicate: Some(OnDuplicate::Replace), ..slots(4) };
    declare(&store, "q", settings).await;
    let keys: Vec<String> = (0..12).map(|n| format!("{n:02}")).collect();
    put(&store, "q", keys.iter().map(|key| keyed(key)).collect()).await;
    let mut application = application(&database.url()).await;
    let open = application.transaction().await.unwrap();
    // More than a claim used to try.
    for key in &keys[..8] {
        open.execute("SELECT * FROM gristmill.enqueue('q', '{}', key => $1)", &[key])
            .await
            .unwrap();
    }
    for key in &keys[8..] {
        let taken = soon(claim(&store, "q", 1)).await;
        assert_eq!(taken.tasks[0].key.as_ref(), Some(key), "the first that nobody holds");
    }
    open.rollback().await.unwrap();
}

#[tokio::test]
async fn a_claim_of_slots_in_an_open_transaction_holds_nobody_for_long() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", slots(4)).await;
    put(&store, "q", vec![keyed("1"), keyed("2")]).await;
    let mut application = application(&database.url()).await;
    let open = application.transaction().await.unwrap();
    open.query("SELECT * FROM gristmill.claim('q')", &[]).await.unwrap();
    let beside = soon(claim(&store, "q", 1)).await;
    assert!(beside.tasks.is_empty(), "whose slot is free is not known yet");
    open.commit().await.unwrap();
    assert_eq!(soon(claim(&store, "q", 1)).await.tasks.len(), 1);
}

/// Rule 9: another source's tasks in front cost a claim of this one nothing, on a
/// queue with slots as on any other.
#[tokio::test]
async fn rule_09_slots_of_one_source_do_not_walk_over_another() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", slots(4)).await;
    let backlog = "INSERT INTO gristmill.task (id, queue, run_at, created_at, slotted, source, grp,
                       payload)
                   SELECT nextval('gristmill.task_id'), q.number, now() - interval '1 hour', now(),
                          true, CASE WHEN n % 50000 = 0 THEN 'mine' ELSE 'theirs' END,
                          'g' || (n % 3), 'x'
                     FROM gristmill.queue q, generate_series(1, 100000) n
                    WHERE q.name = 'q'";
    database.psql(backlog).unwrap();
    let client = application(&database.url()).await;
    client.batch_execute("BEGIN").await.unwrap();
    let taken =
        client.query("SELECT id FROM gristmill.claim('q', source => 'mine')", &[]).await.unwrap();
    assert_eq!(taken.len(), 1);
    let visited: i64 = client
        .query_one(
            "SELECT (coalesce(idx_tup_fetch, 0) + seq_tup_read)::bigint
               FROM pg_stat_xact_user_tables WHERE relname = 'task'",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert!(visited < 100, "a claim of one task visited {visited} rows");
}

/// Two bulk puts of the same keys in opposite order, on every path: neither is
/// told of a deadlock.
#[tokio::test]
async fn bulk_puts_of_the_same_keys_never_deadlock() {
    for settings in [
        SettingsPatch::default(),
        SettingsPatch { unique: Some(Unique::Active), ..SettingsPatch::default() },
        SettingsPatch { on_duplicate: Some(OnDuplicate::Replace), ..SettingsPatch::default() },
        SettingsPatch { capacity: Some(Some(100_000)), ..SettingsPatch::default() },
    ] {
        let database = database_within().await;
        let store = store(&database.url()).await;
        declare(&store, "q", settings).await;
        let (one, two) = (application(&database.url()).await, application(&database.url()).await);
        for _ in 0..2 {
            let rising = "SELECT count(*) FROM gristmill.enqueue_many('q',
                array_fill('{}'::jsonb, ARRAY[500]),
                ARRAY(SELECT n::text FROM generate_series(1, 500) n ORDER BY n))";
            let falling = rising.replace("ORDER BY n))", "ORDER BY n DESC))");
            let put = soon(async {
                tokio::join!(one.query_one(rising, &[]), two.query_one(&falling, &[]))
            })
            .await;
            put.0.unwrap();
            put.1.unwrap();
            let taken = claim(&store, "q", 1000).await;
            done(&store, &taken).await;
        }
    }
}

/// Makes much to do, under statistics from when every table was empty: `blocked`
/// tasks stand behind keys in flight, `due` fall due at once. `client` has plans of
/// that time, too.
async fn burden(client: &Client, blocked: u32, due: u32) {
    for table in ["task", "flight", "delayed", "lease", "deadline", "marker", "delta"] {
        let empty = format!("ALTER TABLE gristmill.{table} SET (autovacuum_enabled = false)");
        client.batch_execute(&empty).await.unwrap();
        client.batch_execute(&format!("VACUUM ANALYZE gristmill.{table}")).await.unwrap();
    }
    for chore in ["promote", "unblock", "markers", "fold"] {
        client.query("SELECT * FROM gristmill.do_chore($1)", &[&chore]).await.unwrap();
    }
    let backlog = format!(
        "INSERT INTO gristmill.task (id, queue, run_at, created_at, blocked, key, payload)
         SELECT nextval('gristmill.task_id'), q.number, now(), now(), true, 'k' || n, 'x'
           FROM gristmill.queue q, generate_series(1, {blocked}) n WHERE q.name = 'q';
         INSERT INTO gristmill.flight (queue, key, id)
         SELECT q.number, 'k' || n, -n FROM gristmill.queue q, generate_series(1, {blocked} - 10) n
          WHERE q.name = 'q';
         WITH due AS (
             INSERT INTO gristmill.task (id, queue, run_at, created_at, delayed, payload)
             SELECT nextval('gristmill.task_id'), q.number, now() - interval '1 second', now(),
                    true, 'x'
               FROM gristmill.queue q, generate_series(1, {due}) n WHERE q.name = 'q'
             RETURNING run_at, id, queue)
         INSERT INTO gristmill.delayed (run_at, id, queue) SELECT * FROM due;
         INSERT INTO gristmill.delta (at, queue, delayed, blocked)
         SELECT now(), q.number, {due}, {blocked} FROM gristmill.queue q WHERE q.name = 'q'"
    );
    client.batch_execute(&backlog).await.unwrap();
}

/// The longest step of what a burden asks for.
async fn maintenance(blocked: u32, due: u32) -> Duration {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    let client = application(&database.url()).await;
    burden(&client, blocked, due).await;
    let mut longest = Duration::ZERO;
    let mut unblocked = 0;
    for chore in ["promote", "unblock", "fold"] {
        loop {
            let begun = Instant::now();
            let row = client
                .query_one("SELECT done, more FROM gristmill.do_chore($1)", &[&chore])
                .await
                .unwrap();
            longest = longest.max(begun.elapsed());
            unblocked += if chore == "unblock" { row.get::<_, i64>(0) } else { 0 };
            if !row.get::<_, bool>(1) {
                break;
            }
        }
    }
    assert_eq!(unblocked, 10, "those whose key is free, and no others");
    let now = stats(&store, "q").await;
    assert_eq!((now.delayed, now.blocked), (0, u64::from(blocked) - 10));
    longest
}

#[tokio::test]
async fn rate_of_a_chores_step_is_bounded_under_stale_plans() {
    // Quadratic, five thousand took three and a half seconds.
    let longest = maintenance(12_000, 12_000).await;
    assert!(longest < Duration::from_millis(1500), "one step took {longest:?}");
}

#[tokio::test]
#[ignore = "a million tasks"]
async fn long_rate_of_a_million_due_and_a_hundred_thousand_blocked() {
    let longest = maintenance(100_000, 1_000_000).await;
    println!("the longest step took {longest:?}");
    assert!(longest < Duration::from_millis(200), "one step took {longest:?}");
}

/// While sweeps work a burden off, heartbeats are answered within a third of their
/// lease, and a task whose worker died is back within its lease and a second.
async fn leases_beside_maintenance(blocked: u32, due: u32) {
    const LEASE: Duration = Duration::from_secs(3);
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    declare(&store, "held", SettingsPatch::default()).await;
    declare(&store, "orphan", SettingsPatch::default()).await;
    put(&store, "held", vec![keyed("1")]).await;
    put(&store, "orphan", vec![keyed("1")]).await;
    burden(&application(&database.url()).await, blocked, due).await;

    let held = store.claim(ClaimRequest { lease: Some(LEASE), ..asking("held", 1) }).await.unwrap();
    let orphan =
        store.claim(ClaimRequest { lease: Some(LEASE), ..asking("orphan", 1) }).await.unwrap();
    assert_eq!((held.tasks.len(), orphan.tasks.len()), (1, 1));
    let claimed = Instant::now();
    let sweeping = tokio::spawn({
        let store = store.clone();
        async move {
            // As a worker does: about once a second, until nothing is left.
            let mut pace = tokio::time::interval(Duration::from_millis(500));
            pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
            pace.tick().await;
            while store.sweep().await.unwrap().promoted > 0 {
                pace.tick().await;
            }
        }
    });
    let mut slowest = Duration::ZERO;
    let mut back = None;
    let mut pace = tokio::time::interval(Duration::from_millis(50));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while back.is_none() || !sweeping.is_finished() {
        let begun = Instant::now();
        let extension = Extension::new(held.token, LEASE);
        let answers = store.extend(vec![extension]).await.unwrap();
        slowest = slowest.max(begun.elapsed());
        assert!(matches!(answers[..], [ExtendAnswer::Extended { .. }]), "{answers:?}");
        if back.is_none() && stats(&store, "orphan").await.pending() == 1 {
            back = Some(claimed.elapsed());
        }
        pace.tick().await;
    }
    sweeping.await.unwrap();
    let back = back.unwrap();
    println!("the slowest heartbeat took {slowest:?}, the orphan was back after {back:?}");
    assert!(slowest < LEASE / 3, "a heartbeat took {slowest:?}");
    assert!(back < LEASE + Duration::from_secs(1), "the orphan was back after {back:?}");
    assert_eq!(stats(&store, "q").await.delayed, 0);
    assert!(done(&store, &held).await.iter().all(SettleAnswer::is_recorded));
}

#[tokio::test]
#[ignore = "a million tasks"]
async fn long_rate_of_leases_beside_a_million_due_and_a_hundred_thousand_blocked() {
    leases_beside_maintenance(100_000, 1_000_000).await;
}

/// A hundred thousand duplicates in one open transaction leave markers that claims
/// do not walk over.
#[tokio::test]
#[ignore = "a hundred thousand tasks"]
async fn long_rate_of_claims_beside_a_hundred_thousand_open_duplicates() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    for thousand in 0..100 {
        let keys = (0..1000).map(|n| keyed(&format!("{}", thousand * 1000 + n)));
        put(&store, "q", keys.collect()).await;
    }
    let mut quiet = Vec::new();
    for _ in 0..20 {
        quiet.push(timed_claim(&store).await);
    }
    let mut application = application(&database.url()).await;
    let open = application.transaction().await.unwrap();
    for thousand in 20..100 {
        let put = "SELECT count(*) FROM gristmill.enqueue_many('q',
            array_fill('{}'::jsonb, ARRAY[1000]),
            ARRAY(SELECT n::text FROM generate_series($1::int * 1000, $1::int * 1000 + 999) n))";
        open.query_one(put, &[&thousand]).await.unwrap();
    }
    let mut beside = Vec::new();
    for _ in 0..20 {
        beside.push(timed_claim(&store).await);
    }
    quiet.sort();
    beside.sort();
    println!("quiet {:?}, beside {:?}", quiet[10], beside[10]);
    assert!(beside[10] < quiet[10] * 2, "{:?} against {:?}", beside[10], quiet[10]);
    open.commit().await.unwrap();
}

async fn timed_claim(store: &gristmill_postgres::PostgresStore) -> Duration {
    let begun = Instant::now();
    let taken = store.claim(asking("q", 100)).await.unwrap();
    let took = begun.elapsed();
    assert_eq!(taken.tasks.len(), 100);
    done(store, &taken).await;
    took
}

/// The setting changes between two statements of one settle call: a task that went
/// back is not left under its old lease as well.
#[tokio::test]
async fn rule_02_a_setting_that_changes_in_between_leaves_no_task_under_two_leases() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("a"), task("b"), task("c")]).await;
    let held = claim(&store, "q", 3).await;
    let client = application(&database.url()).await;
    client
        .batch_execute(
            "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN UPDATE gristmill.queue SET keep_done = '1 hour'; RETURN NULL; END $$;
             CREATE TRIGGER keep AFTER INSERT ON gristmill.task EXECUTE FUNCTION keep()",
        )
        .await
        .unwrap();
    let mut settlements = settlements(&held, &Outcome::Done);
    settlements[0].outcome = Outcome::Error("it failed".to_owned());
    store.settle(settlements).await.unwrap();
    let standing = "SELECT (SELECT count(*) FROM gristmill.lease), \
                           (SELECT count(*) FROM gristmill.task)";
    let row = client.query_one(standing, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (0, 1), "leases, tasks");
}

/// A shorter time that somebody says may leave a hundred thousand at once.
#[tokio::test]
async fn minutes_past_their_time_go_in_steps() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "a", SettingsPatch::default()).await;
    declare(&store, "b", SettingsPatch::default()).await;
    let client = application(&database.url()).await;
    let old = "INSERT INTO gristmill.minute (queue, at, put, done, failed)
               SELECT q.number, date_trunc('minute', now()) - i * interval '1 minute', 1, 0, 0
                 FROM gristmill.queue q, generate_series(1440, 1440 + 2999) i";
    client.batch_execute(old).await.unwrap();
    let step = async || {
        let chore = "SELECT done, more FROM gristmill.do_chore('minutes')";
        let row = client.query_one(chore, &[]).await.unwrap();
        (row.get::<_, i64>(0), row.get::<_, bool>(1))
    };
    assert_eq!(step().await, (0, false), "a week is kept");
    let change = keeping::change(None, keeping::LEAST).unwrap();
    store.save_document(change).await.unwrap();
    let due = client.query_one("SELECT chores FROM gristmill.due_chores()", &[]).await.unwrap();
    assert!(due.get::<_, Vec<String>>(0).iter().any(|chore| chore == "minutes"));
    assert_eq!(step().await, (5_000, true));
    let (done, more) = step().await;
    // The youngest ones may have come of age meanwhile.
    assert!((998..=1_000).contains(&done) && !more, "{done}");
}
