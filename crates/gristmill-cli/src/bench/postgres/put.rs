//! Puts on PostgreSQL: in bulk, by callers that share commits, and by processes.

use std::time::Instant;

use gristmill::PostgresUrl;
use gristmill::postgres::bare::{Bare, Meter};

use super::super::load::{BenchError, Grain, Keyed, put_by};
use super::super::{Cost, Measured, Plan, Rounds, Row, rate};
use super::{BATCH, PAYLOAD, a_task, fresh, producers};

/// The most connections that single INSERTs are made over, and how many processes
/// there are.
const CONNECTIONS: usize = 8;
/// Puts of each before the first that is measured: statements are prepared and
/// connections made by then.
pub(super) const WARM_UP: usize = 20;
/// Rows a COPY: the most that a put takes.
const COPIED: usize = 10_000;

/// A bulk put, against UNNEST and against COPY: with the put's own commits, and
/// everything in one.
pub(in super::super) async fn bulk(url: &PostgresUrl, plan: Plan) -> Result<Measured, BenchError> {
    let (mut unnest, mut copy, mut one_copy) =
        (Rounds::default(), Rounds::default(), Rounds::default());
    let mut wal = Rounds::default();
    let meter = Meter::connect(url.reveal()).await?;
    for _ in 0..plan.rounds {
        let mill = fresh(url).await?;
        let written = meter.wal().await?;
        let start = Instant::now();
        mill.put_all((0..plan.tasks).map(Grain::new)).flush(BATCH).run().await?;
        let ours = rate(plan.tasks, start.elapsed());
        let ours_written = a_task(meter.wal().await?.saturating_sub(written), plan.tasks);
        mill.close().await?;

        let mut bare = Bare::create(url.reveal()).await?;
        let written = meter.wal().await?;
        let start = Instant::now();
        bare.insert(plan.tasks, BATCH, PAYLOAD).await?;
        unnest.pairs.push((ours, rate(plan.tasks, start.elapsed())));
        wal.pairs
            .push((ours_written, a_task(meter.wal().await?.saturating_sub(written), plan.tasks)));

        let mill = fresh(url).await?;
        let start = Instant::now();
        mill.put_all((0..plan.tasks).map(Grain::new)).flush(COPIED).run().await?;
        let large = rate(plan.tasks, start.elapsed());
        mill.close().await?;
        for (rounds, ours, a_commit) in
            [(&mut copy, large, COPIED), (&mut one_copy, ours, plan.tasks)]
        {
            let mut bare = Bare::create(url.reveal()).await?;
            let start = Instant::now();
            bare.copy(plan.tasks, a_commit, PAYLOAD).await?;
            rounds.pairs.push((ours, rate(plan.tasks, start.elapsed())));
        }
    }
    let what = "bulk put, flushes of 1,000 / bare UNNEST of 1,000s";
    let what_copy = "bulk put, flushes of 10,000 / COPY of 10,000s, a commit each";
    let what_one = "bulk put, flushes of 1,000 / one COPY of everything";
    let what_wal = "written ahead by a bulk put / by UNNEST of 1,000s";
    Ok(Measured {
        rows: vec![
            Row::against("bulk_put", what, unnest),
            Row::against("bulk_put_copy", what_copy, copy),
            Row::against("bulk_put_one_copy", what_one, one_copy),
        ],
        costs: vec![Cost::against("wal_bulk_put".to_owned(), "bytes/task", what_wal, wal)],
    })
}

/// A bulk put whose tasks all have keys, against one without any.
pub(in super::super) async fn keyed(url: &PostgresUrl, plan: Plan) -> Result<Row, BenchError> {
    let mut rounds = Rounds::default();
    for _ in 0..plan.rounds {
        let mut rates = [0.0; 2];
        for (one, keyed) in rates.iter_mut().zip([Keyed::All, Keyed::No]) {
            let mill = fresh(url).await?;
            let grains = (0..plan.tasks).map(|n| Grain::new(n).keyed(keyed));
            let start = Instant::now();
            mill.put_all(grains).flush(BATCH).run().await?;
            *one = rate(plan.tasks, start.elapsed());
            mill.close().await?;
        }
        rounds.pairs.push(rates.into());
    }
    let what = "bulk put, flushes of 1,000, every task with a key / none with one";
    Ok(Row::against("bulk_put_keyed", what, rounds))
}

/// So many callers of one process that put one task at a time, against what is
/// said in words.
pub(in super::super) async fn callers(
    url: &PostgresUrl,
    plan: Plan,
    callers: usize,
    name: &'static str,
) -> Result<Row, BenchError> {
    let tasks = (plan.tasks / 20).max(1);
    let mut rounds = Rounds::default();
    for _ in 0..plan.rounds {
        let mill = fresh(url).await?;
        put_by(callers, &mill, callers * WARM_UP).await?;
        let ours = rate(tasks, put_by(callers, &mill, tasks).await?);
        mill.close().await?;
        let bare = match callers {
            ..=CONNECTIONS => inserts(url, callers, tasks).await?,
            // More than a server would have connections for: they share commits.
            _ => {
                let mut bare = Bare::create(url.reveal()).await?;
                bare.insert(callers * WARM_UP, callers, PAYLOAD).await?;
                let start = Instant::now();
                bare.insert(tasks, callers, PAYLOAD).await?;
                rate(tasks, start.elapsed())
            }
        };
        rounds.pairs.push((ours, bare));
    }
    let what = match callers {
        1 => "one caller's puts / one connection's single INSERTs",
        ..=CONNECTIONS => "8 callers put a task each / 8 connections' single INSERTs",
        _ => "64 callers put a task each / one connection's INSERTs of 64 rows",
    };
    Ok(Row::against(name, what, rounds))
}

/// Producers that are processes of their own and put one task at a time, against
/// as many connections.
pub(in super::super) async fn processes(url: &PostgresUrl, plan: Plan) -> Result<Row, BenchError> {
    let tasks = (plan.tasks / 20).max(CONNECTIONS);
    let mut rounds = Rounds::default();
    for _ in 0..plan.rounds {
        let mill = fresh(url).await?;
        let ours = producers::put(url, CONNECTIONS, tasks).await?;
        mill.close().await?;
        rounds.pairs.push((ours, inserts(url, CONNECTIONS, tasks).await?));
    }
    let what = "8 processes put a task at a time / 8 connections' single INSERTs";
    Ok(Row::against("put_processes", what, rounds))
}

/// The rate of single INSERTs by so many connections.
async fn inserts(url: &PostgresUrl, connections: usize, tasks: usize) -> Result<f64, BenchError> {
    let mut all = vec![Bare::create(url.reveal()).await?];
    while all.len() < connections {
        all.push(Bare::join(url.reveal()).await?);
    }
    for bare in &mut all {
        bare.insert(WARM_UP, 1, PAYLOAD).await?;
    }
    let each = (tasks / connections).max(1);
    let start = Instant::now();
    let mut running = Vec::new();
    for mut bare in all {
        running.push(tokio::spawn(async move { bare.insert(each, 1, PAYLOAD).await }));
    }
    for inserts in running {
        inserts.await.map_err(|e| BenchError::Caller(e.to_string()))??;
    }
    Ok(rate(each * connections, start.elapsed()))
}
