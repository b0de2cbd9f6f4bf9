//! How soon an idle worker begins: from a put to the start of its handler.
//!
//! The next put comes when the task before is settled and a pause has passed.
//! Without that its commit would stand in the way of the put that is measured,
//! and the worker would not be idle but on its way back to waiting.

use std::path::Path;
use std::time::{Duration, Instant};

use gristmill::sqlite::bare::Bare;
use gristmill::worker::{Worker, WorkerHandle};
use gristmill::{Mill, PostgresUrl};
use tokio::sync::mpsc;

use super::load::{BenchError, Grain};
use super::sqlite::Round;
use super::{Latency, Measured, Plan, Row, files, postgres};

/// How long a worker is left idle before the next put: longer than any store
/// holds back word of the put before.
const IDLE: Duration = Duration::from_millis(10);
/// Puts before the first that is measured: statements are prepared and
/// connections made by then.
const WARM_UP: usize = 10;

/// The waits of one round, in the order of the puts.
#[derive(Debug, Default)]
struct Waits {
    /// From the put's call.
    called: Vec<Duration>,
    /// From the put's answer; nothing where the handler was quicker.
    answered: Vec<Duration>,
}

impl Waits {
    fn add(&mut self, more: Waits) {
        self.called.extend(more.called);
        self.answered.extend(more.answered);
    }
}

/// From a put's call, in memory: by a task of the runtime, as most callers are
/// whose program serves requests, and by a thread outside, such as the one
/// that runs `main`, which first has to wake one of the runtime's.
pub(super) async fn on_memory(plan: Plan) -> Result<Measured, BenchError> {
    let (mut inside, mut outside) = (Waits::default(), Waits::default());
    for _ in 0..plan.rounds {
        let mill = Mill::open("memory:").await?;
        mill.declare::<Grain>().await?;
        outside.add(put_to_start(&mill, &mill, puts(plan)).await?);
        let caller = tokio::spawn(async move { put_to_start(&mill, &mill, puts(plan)).await });
        inside.add(caller.await.map_err(|e| BenchError::Caller(e.to_string()))??);
    }
    let what = "memory: put by a task of the runtime to the handler's start, idle worker";
    let what_outside = "memory: put by another thread to the handler's start, idle worker";
    let (inside, outside) = (Latency::of(inside.called, None), Latency::of(outside.called, None));
    let rows = vec![
        Row::late("start_memory", what, inside, false),
        Row::late("start_memory_outside", what_outside, outside, false),
    ];
    Ok(Measured { rows, costs: Vec::new() })
}

/// The same on SQLite, against one commit of a bare insert.
pub(super) async fn on_sqlite(folder: &Path, plan: Plan) -> Result<Row, BenchError> {
    let (mut waits, mut commits) = (Waits::default(), Vec::new());
    for number in 0..plan.rounds {
        let file = Round::new(folder, "start", number);
        let mill = file.mill().await?;
        waits.add(put_to_start(&mill, &mill, puts(plan)).await?);
        mill.close().await?;

        let file = Round::new(folder, "commit", number);
        let mut bare = Bare::create(&file.0)?;
        bare.insert(WARM_UP, 1, &[b'x'; 100])?;
        for _ in 0..puts(plan) {
            tokio::time::sleep(IDLE).await;
            let start = Instant::now();
            bare.insert(1, 1, &[b'x'; 100])?;
            commits.push(start.elapsed());
        }
    }
    let what = "SQLite: put to the handler's start, idle worker / one bare commit";
    Ok(Row::late("start_sqlite", what, Latency::of(waits.called, Some(commits)), true))
}

/// The same on files, against one file that is written, synced and renamed.
pub(super) async fn on_files(folder: &Path, plan: Plan) -> Result<Row, BenchError> {
    let (mut waits, mut commits) = (Waits::default(), Vec::new());
    for number in 0..plan.rounds {
        let spool = files::Round::new(folder, "start", number);
        let mill = spool.mill().await?;
        waits.add(put_to_start(&mill, &mill, puts(plan)).await?);
        mill.close().await?;

        let spool = files::Round::new(folder, "commit", number);
        let mut bare = gristmill::files::bare::Bare::create(&spool.0)?;
        bare.put(WARM_UP, &[b'x'; 100])?;
        for _ in 0..puts(plan) {
            tokio::time::sleep(IDLE).await;
            let start = Instant::now();
            bare.put(1, &[b'x'; 100])?;
            commits.push(start.elapsed());
        }
    }
    let what = "files: put to the handler's start, idle worker / one bare file, synced";
    Ok(Row::late("start_files", what, Latency::of(waits.called, Some(commits)), true))
}

/// On PostgreSQL, from the put's answer and from its call, against one commit
/// of a bare insert; and from the answer of a put that the worker hears of from
/// the server alone, as if another process had made it.
pub(super) async fn on_postgres(url: &PostgresUrl, plan: Plan) -> Result<Measured, BenchError> {
    let (mut waits, mut commits) = (Waits::default(), Vec::new());
    let mut notified = Waits::default();
    for _ in 0..plan.rounds {
        let mill = postgres::fresh(url).await?;
        waits.add(put_to_start(&mill, &mill, puts(plan)).await?);
        let other = postgres::again(url).await?;
        notified.add(put_to_start(&other, &mill, puts(plan)).await?);
        other.close().await?;
        mill.close().await?;

        let mut bare = gristmill::postgres::bare::Bare::create(url.reveal()).await?;
        bare.insert(WARM_UP, 1, &[b'x'; 100]).await?;
        for _ in 0..puts(plan) {
            tokio::time::sleep(IDLE).await;
            let start = Instant::now();
            bare.insert(1, 1, &[b'x'; 100]).await?;
            commits.push(start.elapsed());
        }
    }
    let what = "a put's answer to the handler's start, idle worker; beside it one bare commit";
    let answered = Latency::of(waits.answered, Some(commits.clone()));
    let what_notified = "the same when another store handle put it, as a process of its own would";
    let notified = Latency::of(notified.answered, Some(commits.clone()));
    let what_called = "a put's call to the handler's start, idle worker / one bare commit";
    let called = Latency::of(waits.called, Some(commits));
    let rows = vec![
        // What comes after the commit is not measured by it.
        Row { ratio: None, ..Row::late("start_postgres", what, answered, true) },
        Row { ratio: None, ..Row::late("start_postgres_other", what_notified, notified, true) },
        Row::late("start_postgres_put", what_called, called, true),
    ];
    Ok(Measured { rows, costs: Vec::new() })
}

fn puts(plan: Plan) -> usize {
    (plan.tasks / 1_000).clamp(10, 1_000)
}

/// Puts by `putting`, one by one, while a worker of `working` waits.
async fn put_to_start(putting: &Mill, working: &Mill, puts: usize) -> Result<Waits, BenchError> {
    let (tell, mut started) = mpsc::unbounded_channel();
    let worker = Worker::new(working)
        .handle(move |_: Grain| {
            // Nobody listens any more: the measurement is over.
            let _ = tell.send(Instant::now());
            async { Ok::<(), String>(()) }
        })
        .start()
        .await?;
    let mut waits = Waits::default();
    for number in 0..WARM_UP + puts {
        tokio::time::sleep(IDLE).await;
        let called = Instant::now();
        putting.put(Grain::new(number)).await?;
        let answered = Instant::now();
        let ended = || BenchError::Caller("the worker ended".to_owned());
        let start = started.recv().await.ok_or_else(ended)?;
        if number >= WARM_UP {
            waits.called.push(start.saturating_duration_since(called));
            waits.answered.push(start.saturating_duration_since(answered));
        }
        settled(&worker, number + 1).await;
    }
    worker.stop().await?;
    Ok(waits)
}

/// Returns when so many attempts are over, in whatever way.
async fn settled(worker: &WorkerHandle, attempts: usize) {
    let is_open = || {
        let report = worker.stats().report;
        let over = report.done + report.not_done + report.lease_lost + report.gone;
        usize::try_from(over).is_ok_and(|over| over < attempts)
    };
    while is_open() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
