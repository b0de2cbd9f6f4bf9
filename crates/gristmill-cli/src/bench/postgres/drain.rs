//! Drains on PostgreSQL: by the store's verbs, by a worker, and by bare
//! statements that lease a batch by one row; what each costs the server.

use std::time::{Duration, Instant};

use gristmill::postgres::bare::{Bare, Dead, Meter};
use gristmill::{Mill, PostgresUrl};

use super::super::load::{BenchError, Grain, drain, work_off};
use super::super::{Cost, Measured, Plan, Rounds, Row, rate};
use super::{BATCH, PAYLOAD, SCHEMA, a_task, fresh};

/// Processors of the larger worker: each claims for itself.
const PROCESSORS: usize = 4;

/// What a drain came to.
#[derive(Debug, Clone, Copy)]
struct Drained {
    tasks: usize,
    took: Duration,
    wal: u64,
    dead: Dead,
}

/// Ours and bare, a pair a round.
type Pairs = Vec<(Drained, Drained)>;

fn rounds(pairs: &Pairs, of: impl Fn(&Drained) -> f64) -> Rounds {
    Rounds { pairs: pairs.iter().map(|(ours, bare)| (of(ours), of(bare))).collect() }
}

fn rates(pairs: &Pairs) -> Rounds {
    rounds(pairs, |drained| rate(drained.tasks, drained.took))
}

fn costs(name: &str, pairs: &Pairs) -> Vec<Cost> {
    let a_task_of = |of: fn(&Drained) -> u64| rounds(pairs, |d| a_task(of(d), d.tasks));
    let dead = "rows/task";
    vec![
        Cost::against(
            format!("wal_{name}"),
            "bytes/task",
            "written ahead by the drain / by one lease row a batch",
            a_task_of(|drained| drained.wal),
        ),
        Cost::against(
            format!("dead_{name}"),
            dead,
            "row versions that put and drain made dead",
            a_task_of(|drained| drained.dead.made),
        ),
        Cost::against(
            format!("dead_left_{name}"),
            dead,
            "of them, those that stood after the drain",
            a_task_of(|drained| drained.dead.left),
        ),
        Cost::against(
            format!("vacuums_{name}"),
            "runs",
            "how often vacuum came by meanwhile",
            rounds(pairs, |drained| a_task(drained.dead.vacuums, 1)),
        ),
    ]
}

/// Drains by claims and settlements without a worker.
pub(in super::super) async fn by_port(
    url: &PostgresUrl,
    plan: Plan,
) -> Result<Measured, BenchError> {
    let mut pairs = Pairs::new();
    for _ in 0..plan.rounds {
        pairs.push((verbs(url, plan).await?, by_hand(url, plan, 1).await?));
    }
    let what = "claim and settle in 1,000s / bare, one lease row a batch of 1,000";
    Ok(Measured {
        rows: vec![Row::against("claim_settle", what, rates(&pairs))],
        costs: costs("claim_settle", &pairs),
    })
}

/// Drains by one worker process with a typed handler that does nothing. Its
/// claims grow to a thousand tasks by themselves, which is what the bare
/// statements take at once.
pub(in super::super) async fn by_process(
    url: &PostgresUrl,
    plan: Plan,
) -> Result<Measured, BenchError> {
    let (mut alone, mut several, mut each) = (Pairs::new(), Pairs::new(), Pairs::new());
    for _ in 0..plan.rounds {
        let ours = by_worker(url, plan, 1).await?;
        let bare = by_hand(url, plan, 1).await?;
        alone.push((ours, bare));
        let ours = by_worker(url, plan, PROCESSORS).await?;
        several.push((ours, bare));
        each.push((ours, by_hand(url, plan, PROCESSORS).await?));
    }
    let what = "worker with a typed no-op handler / bare, one lease row a batch of 1,000";
    let what_several = "4 processors / the same on one connection";
    let what_each = "4 processors / the same on 4 connections";
    Ok(Measured {
        rows: vec![
            Row::against("worker_drain", what, rates(&alone)),
            Row::against("worker_drain_4", what_several, rates(&several)),
            Row::against("worker_drain_4_each", what_each, rates(&each)),
        ],
        costs: costs("worker_drain", &alone),
    })
}

async fn full(url: &PostgresUrl, plan: Plan) -> Result<Mill, BenchError> {
    let mill = fresh(url).await?;
    mill.put_all((0..plan.tasks).map(Grain::new)).flush(BATCH).run().await?;
    Ok(mill)
}

async fn verbs(url: &PostgresUrl, plan: Plan) -> Result<Drained, BenchError> {
    let mill = full(url, plan).await?;
    let meter = Meter::connect(url.reveal()).await?;
    let written = meter.wal().await?;
    let start = Instant::now();
    let tasks = drain(&mill, BATCH).await?;
    let took = start.elapsed();
    let wal = meter.wal().await?.saturating_sub(written);
    mill.close().await?;
    Ok(Drained { tasks, took, wal, dead: meter.dead(Some(SCHEMA)).await? })
}

async fn by_worker(
    url: &PostgresUrl,
    plan: Plan,
    processors: usize,
) -> Result<Drained, BenchError> {
    let mill = full(url, plan).await?;
    let meter = Meter::connect(url.reveal()).await?;
    let written = meter.wal().await?;
    let (tasks, took) = work_off(&mill, Some(processors)).await?;
    let wal = meter.wal().await?.saturating_sub(written);
    mill.close().await?;
    Ok(Drained { tasks, took, wal, dead: meter.dead(Some(SCHEMA)).await? })
}

async fn by_hand(url: &PostgresUrl, plan: Plan, connections: usize) -> Result<Drained, BenchError> {
    let mut first = Bare::create(url.reveal()).await?;
    first.insert(plan.tasks, BATCH, PAYLOAD).await?;
    let mut all = vec![first];
    while all.len() < connections {
        all.push(Bare::join(url.reveal()).await?);
    }
    let meter = Meter::connect(url.reveal()).await?;
    let written = meter.wal().await?;
    let start = Instant::now();
    let mut running = Vec::new();
    for bare in all {
        running.push(tokio::spawn(async move {
            let mut deleted = 0;
            loop {
                match bare.lease_then_delete(BATCH).await? {
                    0 => return Ok::<usize, gristmill::StoreError>(deleted),
                    n => deleted += n,
                }
            }
        }));
    }
    let mut tasks = 0;
    for drain in running {
        tasks += drain.await.map_err(|e| BenchError::Caller(e.to_string()))??;
    }
    let took = start.elapsed();
    let wal = meter.wal().await?.saturating_sub(written);
    Ok(Drained { tasks, took, wal, dead: meter.dead(None).await? })
}
