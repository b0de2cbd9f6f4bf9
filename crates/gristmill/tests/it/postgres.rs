//! The library on PostgreSQL: puts and completions in the caller's transaction.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gristmill::port::{
    Backoff, ClaimRequest, Missed, Overlap, Payload, Rule, ScheduleDeclaration, ScheduleName,
    Token, WorkerId,
};
use gristmill::postgres::tokio_postgres::{Client, NoTls, connect};
use gristmill::worker::Worker;
use gristmill::{Error, Mill, QueueName, TaskType};
use gristmill_pgserver::{Database, Server};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::{Mail, first_lease_end, until};

/// Moves money from one account to another.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Transfer {
    from: i32,
    to: i32,
    cents: i64,
}

impl TaskType for Transfer {
    const QUEUE: &'static str = "transfers";
}

pub(crate) async fn database() -> Database {
    let made = tokio::task::spawn_blocking(|| Server::shared()?.database("mill", |_| Ok(())));
    made.await.unwrap().unwrap()
}

async fn client(database: &Database) -> Client {
    let (client, connection) = connect(&database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test]
async fn a_typed_put_stands_when_the_callers_transaction_commits() {
    let database = database().await;
    let mill = Mill::open(&database.url()).await.unwrap();
    mill.declare::<Mail>().await.unwrap();
    let mut client = client(&database).await;
    for (commits, standing) in [(false, 0), (true, 2)] {
        let transaction = client.transaction().await.unwrap();
        let mails = [Mail::to("ada"), Mail::to("bob")];
        let put = mill.put_all(mails).within(&transaction).await.unwrap();
        assert_eq!(put.answer().enqueued(), 2);
        assert_eq!(mill.inspect().queue("mails").await.unwrap().ready, 0, "not before");
        if commits {
            transaction.commit().await.unwrap();
            put.committed();
        } else {
            transaction.rollback().await.unwrap();
        }
        assert_eq!(mill.inspect().queue("mails").await.unwrap().ready, standing);
    }
    let memory = Mill::open("memory:").await.unwrap();
    let transaction = client.transaction().await.unwrap();
    let refused = memory.put(Mail::to("ada")).within(&transaction).await;
    assert!(matches!(refused, Err(Error::NotPostgres(_))), "{refused:?}");
}

/// A process that was not there when the server's clock was wrong knows nothing of
/// it, so it is told of what was left in the future.
#[tokio::test]
async fn what_a_wrong_clock_left_in_the_future_is_told() {
    let database = database().await;
    let mill = Mill::open(&database.url()).await.unwrap();
    mill.declare::<Mail>().await.unwrap();
    let schedule = ScheduleDeclaration {
        name: ScheduleName::new("tick").unwrap(),
        queue: QueueName::new("mails").unwrap(),
        rule: Rule::Every(Duration::from_secs(60)),
        zone: "UTC".to_owned(),
        payload: Some(Payload::json("{}")),
        options: Default::default(),
        missed: Missed::Once,
        overlap: Overlap::Allow,
    };
    mill.store().declare_schedule(schedule).await.unwrap();
    mill.put(Mail::to("ada")).await.unwrap();
    assert_eq!(mill.ahead_of_the_clock().await.unwrap(), []);
    let client = client(&database).await;
    let year = "clock_timestamp() + interval '1 year'";
    let left = format!(
        "UPDATE gristmill.schedule SET decided_until = {year}; \
         UPDATE gristmill.task SET created_at = {year}"
    );
    client.batch_execute(&left).await.unwrap();
    let told = mill.doctor().await.unwrap();
    let told: Vec<&str> = told.iter().map(|diagnosis| diagnosis.code).collect();
    assert!(told.contains(&"schedule_ahead") && told.contains(&"tasks_ahead"), "{told:?}");
    // The remedy that is told.
    let name = ScheduleName::new("tick").unwrap();
    for paused in [true, false] {
        mill.store().pause_schedule(&name, paused, "me").await.unwrap();
    }
    let told = mill.ahead_of_the_clock().await.unwrap();
    assert!(told.iter().all(|diagnosis| diagnosis.code != "schedule_ahead"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_stays_open_shows_in_the_metrics() {
    let database = database().await;
    let mill = Mill::open(&database.url()).await.unwrap();
    mill.declare::<Mail>().await.unwrap();
    let holder = client(&database).await;
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1";
    holder.batch_execute(begin).await.unwrap();
    let worker = Worker::new(&mill).handle(|_: Mail| async { Ok::<(), String>(()) });
    let handle = worker.start().await.unwrap();
    crate::within(Duration::from_secs(20), "it shows", async || {
        let text = mill.metrics().text();
        let line = text.lines().find_map(|l| l.strip_prefix("queue_oldest_transaction_seconds "));
        line.is_some_and(|seconds| seconds.parse::<f64>().unwrap() > 0.0)
    })
    .await;
    handle.stop().await.unwrap();
}

/// A digest: one a reader.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Digest(String);

impl TaskType for Digest {
    const QUEUE: &'static str = "digests";

    fn key(&self) -> Option<String> {
        Some(self.0.clone())
    }
}

/// A task's follow-up has a key that somebody's open transaction holds. Its own
/// settlement waits; those of its neighbours, which go with it in one call, and
/// all later ones do not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_follow_up_keeps_no_other_settlement_waiting() {
    let database = database().await;
    let mill = Mill::open(&database.url()).await.unwrap();
    mill.declare::<Mail>().await.unwrap();
    mill.declare::<Digest>().await.unwrap();
    let mut client = client(&database).await;
    let open = client.transaction().await.unwrap();
    let guard = mill.put(Digest("ada".to_owned())).within(&open).await.unwrap();
    let names = ["bob", "cleo", "ada", "dan", "eve"];
    mill.put_all(names.map(Mail::to)).run().await.unwrap();
    let worker =
        Worker::new(&mill).processors(4).handle(|mail: Mail, context: gristmill::Context| {
            let followed = context.follow_up(Digest(mail.to)).map_err(|error| error.to_string());
            async { followed }
        });
    let handle = worker.start().await.unwrap();
    let done = || handle.stats().report.done;
    until("the neighbours are done", async || done() >= 4).await;
    mill.put(Mail::to("finn")).await.unwrap();
    until("so is one after them", async || done() >= 5).await;
    assert_eq!(mill.inspect().queue("mails").await.unwrap().processing, 1, "the one that is held");
    open.commit().await.unwrap();
    guard.committed();
    until("so is the held one", async || done() >= 6).await;
    let report = handle.stop().await.unwrap();
    assert_eq!((report.done, report.lease_lost, report.not_done), (6, 0, 0));
    assert_eq!(mill.inspect().queue("digests").await.unwrap().ready, 6, "one a reader");
}

/// A handler completes in its own transaction and keeps that open for three
/// leases. The worker's other tasks are extended, settled and claimed meanwhile,
/// and nobody takes the one whose end is open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completion_that_stays_open_costs_no_other_task_its_lease() {
    const LEASE: Duration = Duration::from_secs(1);
    let database = database().await;
    let mill = Mill::open(&database.url()).await.unwrap();
    mill.declare::<Mail>().with(|settings| settings.lease = Some(LEASE)).await.unwrap();
    let url = Arc::new(database.url());
    let started = Arc::new(AtomicU32::new(0));
    let (tell, told) = tokio::sync::watch::channel(false);
    let runs = started.clone();
    let worker = Worker::new(&mill).processors(3).batch(1).handle(
        move |mail: Mail, context: gristmill::Context| {
            let (url, runs, mut told) = (url.clone(), runs.clone(), told.clone());
            async move {
                runs.fetch_add(1, Ordering::Relaxed);
                if mail.to == "slow" {
                    // Its lease has to be extended all the while.
                    told.wait_for(|over| *over).await.map_err(|e| e.to_string())?;
                }
                if mail.to != "open" {
                    return Ok(());
                }
                let (mut client, connection) =
                    connect(&url, NoTls).await.map_err(|e| e.to_string())?;
                tokio::spawn(connection);
                let transaction = client.transaction().await.map_err(|e| e.to_string())?;
                let guard = context.complete_in(&transaction).await.map_err(|e| e.to_string())?;
                told.wait_for(|over| *over).await.map_err(|e| e.to_string())?;
                transaction.commit().await.map_err(|e| e.to_string())?;
                guard.committed();
                Ok::<(), String>(())
            }
        },
    );
    mill.put_all(["open", "slow"].map(Mail::to)).run().await.unwrap();
    let handle = worker.start().await.unwrap();
    let start = Instant::now();
    let mut put = 0;
    while start.elapsed() < 3 * LEASE {
        mill.put(Mail::to("quick")).await.unwrap();
        put += 1;
        until("the others are settled", async || handle.stats().report.done >= put).await;
    }
    tell.send(true).unwrap();
    let processing = async || mill.inspect().queue("mails").await.unwrap().processing;
    until("all are done", async || processing().await == 0).await;
    let report = handle.stop().await.unwrap();
    assert_eq!((report.done, report.gone, report.lease_lost), (put + 1, 1, 0));
    assert_eq!(u64::from(started.load(Ordering::Relaxed)), put + 2, "each ran once");
}

/// Half of the attempts do the work and then break, before or after their
/// commit: whatever happens, each transfer is made once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_effect_in_the_completing_transaction_happens_exactly_once() {
    let database = database().await;
    let url = database.url();
    let mill = Mill::open(&url).await.unwrap();
    // Due again at once: a drain does not wait for what is delayed.
    let quick = Backoff { base: Duration::ZERO, cap: Duration::ZERO, jitter: false };
    mill.declare::<Transfer>()
        .with(|settings| {
            settings.backoff = Some(quick);
            settings.max_attempts = Some(None);
        })
        .await
        .unwrap();
    let setup = client(&database).await;
    setup
        .batch_execute(
            "CREATE TABLE account (id integer PRIMARY KEY, cents bigint NOT NULL);
             INSERT INTO account SELECT n, 1000 FROM generate_series(1, 4) n",
        )
        .await
        .unwrap();
    let transfers = (0..60).map(|n| Transfer { from: n % 4 + 1, to: (n + 1) % 4 + 1, cents: 7 });
    mill.put_all(transfers).run().await.unwrap();

    let tries = Arc::new(AtomicU32::new(0));
    let report = Worker::new(&mill)
        .handle(move |transfer: Transfer, context: gristmill::Context| {
            let (url, attempt) = (url.clone(), tries.fetch_add(1, Ordering::Relaxed));
            async move {
                let (mut client, connection) =
                    connect(&url, NoTls).await.map_err(|e| e.to_string())?;
                tokio::spawn(connection);
                let moved = async {
                    let transaction = client.transaction().await?;
                    let add = "UPDATE account SET cents = cents + $2 WHERE id = $1";
                    // Always in the same order, so that no two wait for each other.
                    let mut moves =
                        [(transfer.from, -transfer.cents), (transfer.to, transfer.cents)];
                    moves.sort_unstable();
                    for (account, cents) in moves {
                        transaction.execute(add, &[&account, &cents]).await?;
                    }
                    Ok::<_, gristmill::postgres::tokio_postgres::Error>(transaction)
                };
                let transaction = moved.await.map_err(|e| e.to_string())?;
                let guard = context.complete_in(&transaction).await.map_err(|e| e.to_string())?;
                if attempt % 4 == 1 {
                    return Err("broke before the commit".to_owned());
                }
                transaction.commit().await.map_err(|e| e.to_string())?;
                guard.committed();
                if attempt % 4 == 3 {
                    return Err("broke after the commit".to_owned());
                }
                Ok(())
            }
        })
        .processors(4)
        .drain(true)
        .run(std::future::pending())
        .await
        .unwrap();
    // The worker's own word comes after the transaction's: the task is gone.
    assert_eq!(report.gone, 60, "{report:?}");
    let total = "SELECT sum(cents)::bigint, min(cents), max(cents) FROM account";
    let row = setup.query_one(total, &[]).await.unwrap();
    let sums: (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    // Fifteen times in and fifteen times out of each account.
    assert_eq!(sums, (4000, 1000, 1000));
    let stats = mill.inspect().queue("transfers").await.unwrap();
    assert_eq!((stats.total(), stats.counters.done), (0, 60));
}

/// The heartbeat has a connection of its own runtime: over one that the
/// handlers' runtime drives it would stand still here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_every_thread_keep_their_leases() {
    let database = database().await;
    let mill = Mill::open(&database.url()).await.unwrap();
    let lease = Duration::from_secs(1);
    mill.declare::<Mail>().with(|s| s.lease = Some(lease)).await.unwrap();
    for n in 0..2 {
        mill.put(Mail::to(n)).await.unwrap();
    }
    // Somebody in another process, who takes what is left alone.
    let url = database.url();
    let (release, blocks) = std::sync::mpsc::channel::<()>();
    let (claimed, both_claimed) = oneshot::channel::<()>();
    let other = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mill = Mill::open(&url).await.unwrap();
            both_claimed.await.unwrap();
            let store = mill.store();
            let first = first_lease_end(&mill).await.unwrap();
            let mut looked = 0;
            until("ten leases", async || {
                let claim = store.claim(ClaimRequest {
                    queue: QueueName::new(Mail::QUEUE).unwrap(),
                    max: 1,
                    lease: None,
                    worker: WorkerId::random().unwrap(),
                    source: None,
                    token: Token::random().unwrap(),
                });
                assert_eq!(claim.await.unwrap().tasks, [], "a lease was lost");
                looked += 1;
                let end = first_lease_end(&mill).await.unwrap();
                end.since(first) >= lease * 10
            })
            .await;
            drop(release);
            looked
        })
    });
    let running = Arc::new(AtomicU32::new(0));
    let claimed = Arc::new(Mutex::new(Some(claimed)));
    let blocks = Mutex::new(blocks);
    let report = Worker::new(&mill)
        .handle(move |_: Mail| {
            if running.fetch_add(1, Ordering::SeqCst) == 1 {
                claimed.lock().unwrap().take().unwrap().send(()).unwrap();
            }
            // On a thread of the runtime, until the other one has seen enough.
            let _ = blocks.lock().unwrap().recv();
            async { Ok::<(), String>(()) }
        })
        .processors(2)
        .batch(1)
        .drain(true)
        .run(std::future::pending())
        .await
        .unwrap();
    assert!(other.join().unwrap() >= 10, "the other one looked all the time");
    assert_eq!((report.done, report.lease_lost), (2, 0));
    let stats = mill.inspect().queue("mails").await.unwrap();
    assert_eq!((stats.counters.claimed, stats.counters.expired), (2, 0));
}

/// Maintenance that does not get on, because somebody holds what it needs, holds
/// no heartbeat up: the lease outlives it many times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_that_hangs_holds_no_heartbeat_up() {
    let database = database().await;
    let mill = Mill::open(&database.url()).await.unwrap();
    mill.declare::<Mail>().lease(Duration::from_secs(1)).await.unwrap();
    mill.put(Mail::to("ada")).await.unwrap();
    let (begun, starts) = oneshot::channel();
    let (finish, finished) = oneshot::channel::<()>();
    let channels = Arc::new(Mutex::new(Some((begun, finished))));
    let worker = Worker::new(&mill).handle(move |_: Mail| {
        let channels = channels.lock().unwrap().take();
        async move {
            let (begun, finished) = channels.ok_or("it began twice")?;
            begun.send(()).map_err(|()| "nobody waits")?;
            finished.await.map_err(|error| error.to_string())
        }
    });
    let handle = worker.start().await.unwrap();
    starts.await.unwrap();
    let holder = client(&database).await;
    // Only the sweep and a worker's report need this table.
    let hold = "BEGIN; LOCK TABLE gristmill.document IN ACCESS EXCLUSIVE MODE";
    holder.batch_execute(hold).await.unwrap();
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                    AND wait_event_type = 'Lock' AND query LIKE '%due_chores%'";
    until("a sweep waits", async || database.psql(waits).unwrap() != "0").await;
    let other = Mill::open(&database.url()).await.unwrap().store();
    let first = first_lease_end(&mill).await.unwrap();
    until("four leases", async || {
        let request = ClaimRequest {
            queue: QueueName::new("mails").unwrap(),
            max: 1,
            lease: None,
            worker: WorkerId::new("other").unwrap(),
            source: None,
            token: Token::random().unwrap(),
        };
        let taken = other.claim(request).await.unwrap();
        assert!(taken.tasks.is_empty(), "the lease was prolonged all the while");
        let end = first_lease_end(&mill).await.unwrap();
        end.since(first) >= Duration::from_secs(4)
    })
    .await;
    holder.batch_execute("ROLLBACK").await.unwrap();
    finish.send(()).unwrap();
    let left = "SELECT count(*) FROM gristmill.tasks";
    until("it is done", async || database.psql(left).unwrap() == "0").await;
    handle.stop().await.unwrap();
}
