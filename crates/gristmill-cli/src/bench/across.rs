//! How soon a worker begins what another process puts: an open loop of puts by a
//! process of its own, while the worker settles what it began before.
//!
//! The producer puts at its pace whether or not the last task has begun, as
//! requests arrive at a service. Both processes note the machine's time, which is
//! the same for both.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gristmill::worker::Worker;
use gristmill::{Mill, PostgresUrl, StoreUrl};
use tokio::process::Command;

use super::load::{BenchError, Grain};
use super::{Latency, Measured, Plan, Row, files, postgres, sqlite};

/// From one put to the next: 200 a second.
const PACE: Duration = Duration::from_millis(5);
/// Puts before the first that is measured.
const WARM_UP: usize = 20;
/// The producer names its store by this, which nobody else can read.
const STORE: &str = "GRISTMILL_STORE";
/// How long the last task may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);

/// When each task began, by its number, in nanoseconds of the machine's time.
type Begun = Arc<Mutex<HashMap<usize, u128>>>;

#[derive(Debug, Default)]
struct Waits {
    called: Vec<Duration>,
    answered: Vec<Duration>,
}

/// What the producer's process does: puts at its pace, and says of each when it
/// was called and when it was answered.
pub(crate) async fn produce(url: &StoreUrl, puts: usize) -> Result<String, BenchError> {
    let mill = Mill::open_at(url).await?;
    let mut pace = tokio::time::interval(PACE);
    let mut running = Vec::new();
    for number in 0..WARM_UP + puts {
        pace.tick().await;
        let mill = mill.clone();
        running.push(tokio::spawn(async move {
            let called = now();
            mill.put(Grain::new(number)).await?;
            Ok::<_, gristmill::Error>((number, called, now()))
        }));
    }
    let mut said = Vec::new();
    for put in running {
        let (number, called, answered) =
            put.await.map_err(|e| BenchError::Caller(e.to_string()))??;
        said.push(format!("{number} {called} {answered}"));
    }
    mill.close().await?;
    Ok(said.join("\n"))
}

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

/// On SQLite.
pub(super) async fn on_sqlite(folder: &Path, plan: Plan) -> Result<Measured, BenchError> {
    let mut waits = Waits::default();
    for number in 0..plan.rounds {
        let file = sqlite::Round::new(folder, "across", number);
        let mill = file.mill().await?;
        measure(&mill, &format!("sqlite://{}", file.0.display()), plan, &mut waits).await?;
        mill.close().await?;
    }
    Ok(rows(waits))
}

/// On files.
pub(super) async fn on_files(folder: &Path, plan: Plan) -> Result<Measured, BenchError> {
    let mut waits = Waits::default();
    for number in 0..plan.rounds {
        let spool = files::Round::new(folder, "across", number);
        let mill = spool.mill().await?;
        measure(&mill, &format!("files://{}", spool.0.display()), plan, &mut waits).await?;
        mill.close().await?;
    }
    Ok(rows(waits))
}

/// On PostgreSQL.
pub(super) async fn on_postgres(url: &PostgresUrl, plan: Plan) -> Result<Measured, BenchError> {
    let mut waits = Waits::default();
    for _ in 0..plan.rounds {
        let mill = postgres::fresh(url).await?;
        measure(&mill, &postgres::at(url), plan, &mut waits).await?;
        mill.close().await?;
    }
    Ok(rows(waits))
}

fn rows(waits: Waits) -> Measured {
    let what = "another process puts 200 a second: its put's answer to the handler's start";
    let what_called = "the same from its put's call";
    let (answered, called) = (Latency::of(waits.answered, None), Latency::of(waits.called, None));
    let rows = vec![
        Row::late("start_across", what, answered, true),
        Row::late("start_across_put", what_called, called, true),
    ];
    Measured { rows, costs: Vec::new() }
}

/// One worker here, one producer in a process of its own.
async fn measure(mill: &Mill, url: &str, plan: Plan, waits: &mut Waits) -> Result<(), BenchError> {
    let begun = Begun::default();
    let notes = begun.clone();
    let worker = Worker::new(mill)
        .handle(move |grain: Grain| {
            let at = now();
            // A map is valid whatever a panicking holder did.
            notes.lock().unwrap_or_else(PoisonError::into_inner).insert(grain.number(), at);
            async { Ok::<(), String>(()) }
        })
        .start()
        .await?;
    let failed = |error: std::io::Error| BenchError::Caller(format!("no producer: {error}"));
    let puts = (plan.tasks / 200).clamp(20, 1_000);
    let producer = Command::new(std::env::current_exe().map_err(failed)?)
        .args(["bench", "--produce", &puts.to_string()])
        .env(STORE, url)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(failed)?;
    let said = String::from_utf8_lossy(&producer.stdout);
    let count = || begun.lock().unwrap_or_else(PoisonError::into_inner).len();
    let over = tokio::time::Instant::now() + PATIENCE;
    while count() < WARM_UP + puts && tokio::time::Instant::now() < over {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    worker.stop().await?;
    let begun = begun.lock().unwrap_or_else(PoisonError::into_inner);
    for line in said.lines() {
        let mut words = line.split(' ').map(str::parse::<u128>);
        let (Some(Ok(number)), Some(Ok(called)), Some(Ok(answered))) =
            (words.next(), words.next(), words.next())
        else {
            return Err(BenchError::Caller(format!("a producer that says '{line}'")));
        };
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(at) = begun.get(&number).filter(|_| number >= WARM_UP) else { continue };
        let since = |then: u128| {
            Duration::from_nanos(u64::try_from(at.saturating_sub(then)).unwrap_or(u64::MAX))
        };
        waits.called.push(since(called));
        waits.answered.push(since(answered));
    }
    if waits.called.is_empty() {
        return Err(BenchError::Caller("the producer put nothing".to_owned()));
    }
    Ok(())
}
