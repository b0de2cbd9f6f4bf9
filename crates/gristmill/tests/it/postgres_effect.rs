//! An effect in the transaction that completes its task happens exactly once,
//! whenever workers are killed.
//!
//! A worker is this test binary again. It writes a line before each attempt and
//! one after it, so that a kill can hit it at work and the parent can tell.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use gristmill::port::{Backoff, Token};
use gristmill::postgres::tokio_postgres::{Client, Error, NoTls, connect};
use gristmill::worker::{Context, Worker};
use gristmill::{Mill, TaskType};
use gristmill_pgserver::{Database, Server};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

const WORKERS: usize = 8;

/// Moves money from the one account to the other.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Payment {
    number: i64,
    cents: i64,
}

impl TaskType for Payment {
    const QUEUE: &'static str = "payments";
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of the tests below, started by them"]
async fn child() {
    let Ok(folder) = std::env::var("GRISTMILL_EFFECT_FOLDER") else { return };
    let folder = PathBuf::from(folder);
    let url = std::fs::read_to_string(folder.join("url")).unwrap();
    let log = File::create(log_of(&folder, std::process::id())).unwrap();
    let log = Arc::new(log);
    let mill = Mill::open(&url).await.unwrap();
    let (client, connection) = connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let client = Arc::new(Mutex::new(client));
    let worker = Worker::new(&mill).handle(move |payment: Payment, context: Context| {
        let (client, log) = (client.clone(), log.clone());
        async move {
            let note = |what: &str| {
                let line = format!("{what} {} {}\n", context.id, context.attempt);
                (&*log).write_all(line.as_bytes()).unwrap();
            };
            note("start");
            let paid = pay(&mut *client.lock().await, &payment, &context).await;
            note("end");
            paid
        }
    });
    worker.processors(1).run(std::future::pending()).await.unwrap();
}

/// The handler: money, ledger and completion in one transaction.
async fn pay(client: &mut Client, payment: &Payment, context: &Context) -> Result<(), String> {
    let words = |error: Error| error.to_string();
    let transaction = client.transaction().await.map_err(words)?;
    let entry = "INSERT INTO ledger (payment, cents) VALUES ($1, $2)";
    transaction.execute(entry, &[&payment.number, &payment.cents]).await.map_err(words)?;
    // Time in which a kill may hit it, before the rows that all of them need.
    transaction.batch_execute("SELECT pg_sleep(0.01)").await.map_err(words)?;
    for (account, cents) in [("from", -payment.cents), ("to", payment.cents)] {
        let add = "UPDATE account SET cents = cents + $2 WHERE name = $1";
        transaction.execute(add, &[&account, &cents]).await.map_err(words)?;
    }
    let guard = context.complete_in(&transaction).await.map_err(|e| e.to_string())?;
    transaction.commit().await.map_err(words)?;
    guard.committed();
    Ok(())
}

fn log_of(folder: &Path, process: u32) -> PathBuf {
    folder.join(format!("{process}.log"))
}

/// A worker that does not outlive its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    fn start(folder: &Path) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "postgres_effect::child", "--ignored", "--nocapture"])
            .env("GRISTMILL_EFFECT_FOLDER", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Process(child)
    }

    /// How many attempts it began and ended.
    fn attempts(&self, folder: &Path) -> (usize, usize) {
        let log = std::fs::read_to_string(log_of(folder, self.0.id())).unwrap_or_default();
        let count = |what| log.lines().filter(|line| line.starts_with(what)).count();
        (count("start"), count("end"))
    }
}

/// Numbers from a seed that a failed run has printed.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        let seed = match std::env::var("GRISTMILL_SEED") {
            Ok(seed) => seed.parse().unwrap(),
            Err(_) => {
                u64::from_be_bytes(Token::random().unwrap().to_bytes()[..8].try_into().unwrap())
            }
        };
        println!("GRISTMILL_SEED={seed}");
        Dice(seed | 1)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).unwrap()
    }
}

async fn made() -> (Database, Mill) {
    let made = tokio::task::spawn_blocking(|| Server::shared()?.database("mill", |_| Ok(())));
    let database = made.await.unwrap().unwrap();
    let mill = Mill::open(&database.url()).await.unwrap();
    let soon = Duration::from_millis(10);
    mill.declare::<Payment>()
        .with(|settings| {
            // A killed worker's tasks are back soon, as often as it takes.
            settings.lease = Some(Duration::from_secs(1));
            settings.backoff = Some(Backoff { base: soon, cap: soon, jitter: false });
            settings.max_attempts = Some(None);
            settings.batch_size = Some(4);
        })
        .await
        .unwrap();
    let tables = "CREATE TABLE account (name text PRIMARY KEY, cents bigint NOT NULL);
                  INSERT INTO account VALUES ('from', 0), ('to', 0);
                  CREATE TABLE ledger (payment bigint NOT NULL, cents bigint NOT NULL)";
    database.psql(tables).unwrap();
    (database, mill)
}

/// Pays with eight workers. So many of them are killed at work, at random
/// moments, and replaced; then the rest is let finish.
async fn the_sum_is_right_whoever_is_killed(payments: i64, kills: usize) {
    let mut dice = Dice::new();
    let (database, mill) = made().await;
    let each = (0..payments).map(|number| Payment { number, cents: 1 + number % 97 });
    let sum: i64 = each.clone().map(|payment| payment.cents).sum();
    mill.put_all(each).run().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("url"), database.url()).unwrap();

    let standing = || async { mill.inspect().queue("payments").await.unwrap().total() };
    let mut workers: Vec<Process> = (0..WORKERS).map(|_| Process::start(folder.path())).collect();
    let (mut killed, mut at_work) = (0, 0);
    while killed < kills {
        let victim = &mut workers[dice.below(WORKERS)];
        // Now at its first attempt, now at a later one.
        let attempt = 1 + dice.below(5);
        let began = || victim.attempts(folder.path()).0 >= attempt;
        crate::until("an attempt", async || began() || standing().await == 0).await;
        if standing().await == 0 {
            break;
        }
        victim.0.kill().unwrap();
        victim.0.wait().unwrap();
        killed += 1;
        let (begun, ended) = victim.attempts(folder.path());
        at_work += usize::from(begun > ended);
        *victim = Process::start(folder.path());
    }
    crate::within(Duration::from_secs(180), "all end", async || standing().await == 0).await;
    drop(workers);

    let stats = mill.inspect().queue("payments").await.unwrap();
    let expired = stats.counters.expired;
    println!("{killed} killed, {at_work} of them at work; {expired} tasks came back");
    let paid = "SELECT count(*), count(DISTINCT payment), sum(cents) FROM ledger";
    let paid = database.psql(paid).unwrap();
    assert_eq!(paid.trim(), format!("{payments}|{payments}|{sum}"), "each once");
    let accounts = database.psql("SELECT name, cents FROM account ORDER BY name").unwrap();
    assert_eq!(accounts.trim(), format!("from|-{sum}\nto|{sum}"));
    assert_eq!((stats.counters.done, stats.failed), (payments.unsigned_abs(), 0));
    // A run in which nobody was caught at work proves nothing.
    assert!(killed >= kills / 2 && at_work > kills / 4 && expired > 0);
}

#[tokio::test]
async fn the_effect_happens_once_whoever_is_killed() {
    the_sum_is_right_whoever_is_killed(300, 12).await;
}

#[tokio::test]
#[ignore = "long: three hundred workers are killed"]
async fn the_effect_happens_once_whoever_is_killed_again_and_again() {
    the_sum_is_right_whoever_is_killed(5_000, 300).await;
}
