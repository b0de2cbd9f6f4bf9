//! SQL clients and no Gristmill process: what time brings, they bring.

use std::time::{Duration, Instant};

use gristmill_pgserver::Database;
use gristmill_postgres::tokio_postgres::{Client, SimpleQueryMessage};

use crate::support::{application, database_within};

async fn one<T: for<'a> gristmill_postgres::tokio_postgres::types::FromSql<'a>>(
    client: &Client,
    sql: &str,
) -> T {
    client.query_one(sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
}

/// A task of key k, put while the completion of the one before was not committed:
/// nobody un-blocked it.
async fn missed(client: &Client, other: &Client) {
    client
        .batch_execute(
            "SELECT gristmill.add_queue('q'); SELECT * FROM gristmill.enqueue('q', '1', key => 'k');
             CREATE TABLE held AS SELECT id, token FROM gristmill.claim('q')",
        )
        .await
        .unwrap();
    // Both look before either commits.
    other
        .batch_execute("BEGIN; SELECT * FROM gristmill.enqueue('q', '2', key => 'k')")
        .await
        .unwrap();
    client.batch_execute("SELECT gristmill.complete(id, token) FROM held").await.unwrap();
    other.batch_execute("COMMIT").await.unwrap();
    assert!(one::<bool>(client, "SELECT blocked FROM gristmill.tasks").await, "it was missed");
}

#[tokio::test]
async fn a_claim_finds_what_nobody_unblocked() {
    let database = database_within().await;
    let (client, other) = (application(&database.url()).await, application(&database.url()).await);
    missed(&client, &other).await;
    // As after a second.
    client.batch_execute("DELETE FROM gristmill.chore").await.unwrap();
    let claim = "SELECT id FROM gristmill.claim('q')";
    client.simple_query(claim).await.unwrap();
    let claimed = client.simple_query(claim).await.unwrap();
    assert!(matches!(claimed.get(1), Some(SimpleQueryMessage::Row(_))), "{claimed:?}");
    let shared = "SELECT count(*) FROM gristmill.chore WHERE name = 'claims' AND at IS NOT NULL";
    assert_eq!(one::<i64>(&client, shared).await, 1, "and notes when it looked");
}

/// Counts that a claim sums up in a transaction that stays open keep nobody from
/// folding the others, and are counted once, whatever becomes of it.
#[tokio::test]
async fn counts_that_are_summed_up_in_an_open_transaction_are_passed_by() {
    let database = database_within().await;
    let (client, other) = (application(&database.url()).await, application(&database.url()).await);
    client
        .batch_execute(
            "SELECT gristmill.add_queue('q');
             SELECT gristmill.enqueue('q', '1') FROM generate_series(1, 10)",
        )
        .await
        .unwrap();
    for (end, left) in [("ROLLBACK", 10), ("COMMIT", 1)] {
        other.batch_execute("BEGIN; SELECT gristmill.sum_up(5)").await.unwrap();
        other.batch_execute("SELECT gristmill.sum_up(1000)").await.unwrap();
        let ready = "SELECT ready FROM gristmill.stats()";
        assert_eq!((one::<i64>(&client, ready).await, one::<i64>(&other, ready).await), (10, 10));
        client.batch_execute("SET lock_timeout = '2s'; SELECT gristmill.fold()").await.unwrap();
        other.batch_execute(end).await.unwrap();
        assert_eq!(one::<i64>(&client, "SELECT count(*) FROM gristmill.delta").await, left);
        assert_eq!(one::<i64>(&client, ready).await, 10);
    }
    client.batch_execute("SELECT gristmill.fold()").await.unwrap();
    let folded = "SELECT ready = 10 AND put = 10 FROM gristmill.total";
    assert!(one::<bool>(&client, folded).await);
}

#[tokio::test]
async fn a_claim_in_a_transaction_unblocks_what_it_meets_and_holds_no_chore() {
    let database = database_within().await;
    let (client, other) = (application(&database.url()).await, application(&database.url()).await);
    missed(&client, &other).await;
    client.batch_execute("DELETE FROM gristmill.chore").await.unwrap();
    // Something to fold also when a claim before has done that chore.
    let beside =
        "SELECT gristmill.add_queue('beside'); SELECT * FROM gristmill.enqueue('beside', '1')";
    client.batch_execute(beside).await.unwrap();
    other.batch_execute("BEGIN").await.unwrap();
    let claim = "SELECT id FROM gristmill.claim('q')";
    other.query(claim, &[]).await.unwrap();
    assert_eq!(other.query(claim, &[]).await.unwrap().len(), 1, "what the one before met");
    assert_eq!(one::<i64>(&client, "SELECT count(*) FROM gristmill.chore").await, 0);
    let locks = "SELECT count(*) FROM pg_locks l WHERE l.locktype = 'advisory'
                    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())";
    assert_eq!(one::<i64>(&client, locks).await, 0, "it keeps nobody from a chore");
    let folded = "SELECT count(*) FROM gristmill.maintain() WHERE chore = 'fold' AND done > 0";
    assert_eq!(one::<i64>(&client, folded).await, 1);
    other.batch_execute("COMMIT").await.unwrap();
}

#[tokio::test]
async fn maintain_does_all_that_time_brings() {
    let database = database_within().await;
    let (client, other) = (application(&database.url()).await, application(&database.url()).await);
    missed(&client, &other).await;
    client
        .batch_execute(
            "SELECT gristmill.add_queue('kept', keep_done => '1 s', keep_failed => '1 s',
                 settings => '{\"id_window\": 1}');
             SELECT * FROM gristmill.enqueue_many('kept', ARRAY['1', '2', '3', '4']::jsonb[],
                 caller_ids => ARRAY['a', 'b', 'c', 'd']);
             CREATE TABLE claimed AS SELECT id, token FROM gristmill.claim('kept', 3);
             SELECT gristmill.complete(min(id), min(token::text)::uuid) FROM claimed;
             SELECT gristmill.fail(max(id), min(token::text)::uuid, 'no') FROM claimed;
             SELECT * FROM gristmill.enqueue('kept', '5', delay => '1 hour');
             -- As after two hours.
             UPDATE gristmill.deadline SET until = until - interval '2 hours';
             UPDATE gristmill.done SET resolved_at = resolved_at - interval '2 hours';
             UPDATE gristmill.failed SET failed_at = failed_at - interval '2 hours';
             UPDATE gristmill.put_id SET until = until - interval '2 hours';
             UPDATE gristmill.delayed SET run_at = run_at - interval '2 hours';
             UPDATE gristmill.task SET run_at = run_at - interval '2 hours' WHERE delayed",
        )
        .await
        .unwrap();
    other
        .batch_execute("BEGIN; SELECT * FROM gristmill.enqueue('q', '3', key => 'k')")
        .await
        .unwrap();
    other.batch_execute("COMMIT").await.unwrap();
    let rows = client.query("SELECT chore, done, more FROM gristmill.maintain()", &[]).await;
    let done: Vec<(String, i64, bool)> =
        rows.unwrap().iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    let chores: Vec<&str> = done.iter().map(|(chore, ..)| chore.as_str()).collect();
    assert!(done.iter().all(|(_, _, more)| !more), "{done:?}");
    for chore in ["reclaim", "promote", "unblock", "ids", "done", "failed", "fold"] {
        assert!(chores.contains(&chore), "{chore}: {done:?}");
    }
    let left = "SELECT count(*) FROM gristmill.delta";
    assert!(one::<i64>(&client, left).await <= 5, "only what came after the fold");
    let markers = "SELECT count(*) FROM gristmill.marker";
    assert_eq!(one::<i64>(&client, markers).await, 0);
    // The clock went back: no lease is longer than it was made for.
    client
        .batch_execute(
            "SELECT * FROM gristmill.claim('kept');
             UPDATE gristmill.deadline SET until = until + interval '2 hours';
             SELECT * FROM gristmill.maintain()",
        )
        .await
        .unwrap();
    let longest =
        "SELECT max(until) - clock_timestamp() <= interval '181 s' FROM gristmill.deadline";
    assert!(one::<bool>(&client, longest).await);
}

#[tokio::test]
async fn maintain_waits_for_nobody() {
    let database = database_within().await;
    let (client, other) = (application(&database.url()).await, application(&database.url()).await);
    client
        .batch_execute(
            "SELECT gristmill.add_queue('q'); SELECT * FROM gristmill.enqueue('q', '1');
             INSERT INTO gristmill.document
             VALUES ('worker', 'w', 1, '{}', '2001-01-01', '2001-01-01', 3600000000)",
        )
        .await
        .unwrap();
    other.batch_execute("BEGIN; UPDATE gristmill.document SET keep = keep").await.unwrap();
    let rows =
        client.query("SELECT chore, done, more FROM gristmill.maintain()", &[]).await.unwrap();
    let told = |name: &str| {
        let row = rows.iter().find(|row| row.get::<_, &str>(0) == name);
        row.map(|row| (row.get::<_, i64>(1), row.get::<_, bool>(2)))
    };
    assert_eq!(told("documents"), Some((0, true)), "left for another time");
    assert_eq!(told("fold"), Some((1, false)), "and the others are done");
    other.batch_execute("ROLLBACK").await.unwrap();
}

/// One thing that cannot be done is no reason to do nothing else.
#[tokio::test]
async fn a_chore_that_fails_spoils_neither_the_claim_nor_the_others() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    client
        .batch_execute(
            "SELECT gristmill.add_queue('q'); SELECT * FROM gristmill.enqueue('q', '1');
             SELECT * FROM gristmill.enqueue('q', '2');
             SELECT * FROM gristmill.enqueue('q', '3', delay => '1 second');
             UPDATE gristmill.delayed SET run_at = run_at - interval '1 hour';
             ALTER TABLE gristmill.minute RENAME COLUMN put TO something_else",
        )
        .await
        .unwrap();
    let rows = client.query("SELECT chore, done, more FROM gristmill.maintain()", &[]).await;
    let told: Vec<(String, i64, bool)> =
        rows.unwrap().iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    assert!(told.contains(&("fold".to_owned(), 0, true)), "{told:?}");
    assert!(told.contains(&("promote".to_owned(), 1, false)), "{told:?}");
    client.batch_execute("CREATE TABLE one AS SELECT * FROM gristmill.claim('q')").await.unwrap();
    // What a share cannot even begin with.
    let lost = "ALTER TABLE gristmill.document RENAME TO elsewhere; DELETE FROM gristmill.chore";
    client.batch_execute(lost).await.unwrap();
    client.batch_execute("CREATE TABLE two AS SELECT * FROM gristmill.claim('q')").await.unwrap();
    let claimed = "SELECT (SELECT count(*) FROM one) + (SELECT count(*) FROM two)";
    assert_eq!(one::<i64>(&client, claimed).await, 2);
}

/// How long some puts, claims and completions take, and a look at the numbers.
/// Each second cycle sends its statements with parameters, as drivers do, and the
/// others without, as psql does.
async fn cycles(client: &Client, count: usize) -> (Duration, Duration) {
    let (mut looks, mut puts) = (Vec::new(), Vec::new());
    let put = client.prepare("SELECT * FROM gristmill.enqueue($1, '1')").await.unwrap();
    let work = "SELECT gristmill.complete(c.id, c.token) FROM gristmill.claim($1) c";
    let (bound, plain) = (client.prepare(work).await.unwrap(), work.replace("$1", "'q'"));
    for nth in 0..count {
        let begun = Instant::now();
        client.query(&put, &[&"q"]).await.unwrap();
        puts.push(begun.elapsed());
        if nth % 2 == 0 {
            client.query(&bound, &[&"q"]).await.unwrap();
        } else {
            client.batch_execute(&plain).await.unwrap();
        }
        if nth % 20 == 0 {
            let begun = Instant::now();
            client.query("SELECT * FROM gristmill.stats()", &[]).await.unwrap();
            looks.push(begun.elapsed());
        }
    }
    looks.sort();
    puts.sort();
    (looks[looks.len() / 2], puts[puts.len() / 2])
}

/// A database where tasks go their way by SQL alone.
async fn busy() -> (Database, Client) {
    let database = database_within().await;
    let client = application(&database.url()).await;
    let begin = "SET synchronous_commit = off; SELECT gristmill.add_queue('q', capacity => 9)";
    client.batch_execute(begin).await.unwrap();
    (database, client)
}

/// What claims do on the way keeps the counts few: each cycle leaves three, and a
/// thirtieth part of the claims sums up.
async fn counts_are_few(client: &Client, most: i64) {
    let waiting: i64 = one(client, "SELECT count(*) FROM gristmill.delta").await;
    assert!(waiting < most, "{waiting} counts wait to be folded");
}

#[tokio::test]
async fn without_a_process_counts_stay_few() {
    let (_database, client) = busy().await;
    cycles(&client, 600).await;
    counts_are_few(&client, 600).await;
}

#[tokio::test]
#[ignore = "long: 24,000 tasks one by one"]
async fn long_without_a_process_numbers_and_puts_stay_quick() {
    let (_database, client) = busy().await;
    cycles(&client, 24_000).await;
    counts_are_few(&client, 1_500).await;
    // Beside a store that is new, round by round: the machine is as busy for both.
    let (_new, fresh) = busy().await;
    let (mut looks, mut puts) = ((0.0, 0.0), (0.0, 0.0));
    for _ in 0..10 {
        let (look, put) = cycles(&fresh, 100).await;
        (looks.0, puts.0) = (looks.0 + look.as_secs_f64(), puts.0 + put.as_secs_f64());
        let (look, put) = cycles(&client, 100).await;
        (looks.1, puts.1) = (looks.1 + look.as_secs_f64(), puts.1 + put.as_secs_f64());
    }
    println!("stats {looks:?}, puts {puts:?}");
    assert!(looks.1 < looks.0 * 1.5 && puts.1 < puts.0 * 1.5, "stats {looks:?}, puts {puts:?}");
}
