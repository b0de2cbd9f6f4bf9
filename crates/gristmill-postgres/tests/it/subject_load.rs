//! Subjects that come and go beside producers, workers and operators that speak
//! SQL: in the end no task stands without its subject, and no key has two tasks in
//! flight. The races one by one are in `subject_races`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gristmill_postgres::tokio_postgres::Client;
use gristmill_postgres::tokio_postgres::error::SqlState;

use crate::support::{application, database_within};

/// So few subjects that everybody meets everybody. None is made again: what is
/// left of one would be hidden.
const SHOP: &str = "
    CREATE SEQUENCE item_id;
    CREATE TABLE item (id integer PRIMARY KEY DEFAULT nextval('item_id'));
    SELECT gristmill.add_queue('q', '{\"bind\": {\"table\": \"item\", \"column\": \"id\"},
        \"lease\": 0.1, \"keep_done\": 600, \"max_attempts\": 4,
        \"backoff\": {\"base\": 0, \"cap\": 0}}')";

/// What each kind of client does in one go.
const PUT: &str = "INSERT INTO item SELECT FROM generate_series(1, 4);
    SELECT gristmill.enqueue_many('q', array_fill('{}'::jsonb, ARRAY[cardinality(k.keys)]), k.keys)
      FROM (SELECT ARRAY(SELECT n.id::text
                           FROM (SELECT i.id FROM item i ORDER BY i.id DESC LIMIT 8) n
                          ORDER BY n.id) AS keys) k";
/// Claims several and ends each in another way; some are forgotten.
const WORK: &str = "SELECT CASE floor(random() * 7)
        WHEN 0 THEN gristmill.complete(c.id, c.token)
        WHEN 1 THEN gristmill.error(c.id, c.token, 'x')
        WHEN 2 THEN gristmill.retry(c.id, c.token, interval '0')
        WHEN 3 THEN gristmill.release(c.id, c.token)
        WHEN 4 THEN gristmill.fail(c.id, c.token, 'x')
        WHEN 5 THEN (SELECT e.extended::text FROM gristmill.extend(c.token, 0.1) e) END
    FROM claimed c";
const CLAIM: &str = "DROP TABLE IF EXISTS claimed;
    CREATE TEMP TABLE claimed AS SELECT * FROM gristmill.claim('q', 6, 0.1)";
const OPERATE: &str = "SELECT gristmill.retry_failed('q'); SELECT gristmill.requeue_expired('q');
    SELECT gristmill.do_chore(c) FROM unnest((SELECT d.chores FROM gristmill.due_chores() d)) c
     WHERE c <> 'reclaim'";
/// Several at once, in the order of puts, as an application does that wants no
/// deadlocks of its own; and by a change.
const DELETE: &str = "DELETE FROM item WHERE id IN (SELECT i.id FROM item i
    WHERE i.id IN (SELECT r.id FROM item r ORDER BY random()
                    LIMIT greatest(3, (SELECT count(*) - 60 FROM item)))
    ORDER BY i.id FOR UPDATE)";
const CHANGE: &str = "UPDATE item SET id = nextval('item_id') WHERE id =
    (SELECT i.id FROM item i ORDER BY random() LIMIT 1)";

/// What went wrong for one kind of client, and how often it went.
#[derive(Debug, Default)]
struct Tally {
    rounds: AtomicU64,
    deadlocks: AtomicU64,
}

/// Does these statements again and again, each a transaction of its own.
async fn again(url: String, steps: &[&'static str], until: Instant, tally: Arc<Tally>) {
    let client = application(&url).await;
    client.batch_execute("SET synchronous_commit = off").await.unwrap();
    while Instant::now() < until {
        for step in steps {
            match client.batch_execute(step).await {
                Ok(()) => {}
                Err(error) if error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED) => {
                    println!("gave way: {error:?}");
                    tally.deadlocks.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => panic!("{step}: {error:?}"),
            }
        }
        tally.rounds.fetch_add(1, Ordering::Relaxed);
    }
}

/// Everything that must not be, each with a word.
async fn faults(client: &Client) -> Vec<String> {
    let rows = client
        .query(
            "SELECT 'orphan ' || t.state || ' ' || t.key FROM gristmill.shown t
              WHERE NOT EXISTS (SELECT 1 FROM item i WHERE i.id::text = t.key)
             UNION ALL
             SELECT 'in flight twice ' || t.key FROM gristmill.shown t
              WHERE t.in_flight GROUP BY t.key HAVING count(*) > 1
             UNION ALL
             SELECT 'without its place ' || t.id FROM gristmill.shown t
              WHERE t.in_flight AND NOT EXISTS (SELECT 1 FROM gristmill.flight f
                     WHERE f.id = t.id AND f.key = t.key AND f.queue = t.queue)
             UNION ALL
             SELECT 'place without task ' || f.key FROM gristmill.flight f
              WHERE f.id NOT IN (SELECT t.id FROM gristmill.shown t WHERE t.in_flight)
             UNION ALL
             SELECT 'counted ' || s.total FROM gristmill.stats() s
              WHERE s.total <> (SELECT count(*) FROM gristmill.shown t WHERE t.state <> 'done')",
            &[],
        )
        .await
        .unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn load(seconds: u64) {
    let database = database_within().await;
    let client = application(&database.url()).await;
    client.batch_execute(SHOP).await.unwrap();
    let until = Instant::now() + Duration::from_secs(seconds);
    let kinds: [(&str, usize, &[&'static str]); 4] = [
        ("producers", 2, &[PUT]),
        ("workers", 4, &[CLAIM, WORK]),
        ("operators", 1, &[OPERATE]),
        ("deleters", 3, &[DELETE, CHANGE]),
    ];
    let mut running = Vec::new();
    let mut tallies = Vec::new();
    for (name, count, steps) in kinds {
        let tally = Arc::new(Tally::default());
        tallies.push((name, tally.clone()));
        for _ in 0..count {
            running.push(tokio::spawn(again(database.url(), steps, until, tally.clone())));
        }
    }
    for ran in running {
        ran.await.unwrap();
    }
    println!("{tallies:?}");
    // A worker's statement is never the one that has to give way.
    for (name, tally) in &tallies {
        let given_way = tally.deadlocks.load(Ordering::Relaxed);
        assert!(*name != "workers" || given_way == 0, "{tallies:?}");
    }
    let found = faults(&client).await;
    assert!(found.is_empty(), "{tallies:?}: {found:#?}");
    let gone = client
        .query_one("SELECT sum(t.subject_gone)::bigint FROM gristmill.queue_stats() t", &[])
        .await
        .unwrap();
    assert!(gone.get::<_, i64>(0) > 0, "no subject went with a task: {tallies:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_task_is_left_without_its_subject_under_load() {
    load(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long"]
async fn no_task_is_left_without_its_subject_under_long_load() {
    load(60).await;
}
