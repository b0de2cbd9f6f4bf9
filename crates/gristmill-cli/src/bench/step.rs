//! What is measured of each store, step by step.

use std::path::PathBuf;

use gristmill::{PostgresUrl, StoreUrl};

use super::load::BenchError;
use super::{
    Measured, Plan, across, files, http, limits, memory, postgres, returned, sqlite, start, worker,
};

/// Where it is measured.
#[derive(Debug)]
pub(crate) enum Target {
    /// In memory.
    Memory,
    /// In database files of this folder; memory beside it.
    Sqlite(PathBuf),
    /// In spools in this folder.
    Files(PathBuf),
    /// In a schema of its own on the server that the URL names.
    Postgres(PostgresUrl),
}

/// One measurement, of a row or of a few that are measured together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    BulkPut,
    BulkKeyed,
    ClaimSettle,
    WorkerDrain,
    AwkwardDrain,
    WaitingDrain,
    Put1,
    Put8,
    Put64,
    Put256,
    PutProcesses,
    MemoryCycle,
    StartMemory,
    StartSqlite,
    StartFiles,
    StartPostgres,
    StartAcross,
    Http,
    Idle,
    Limits,
    Returned,
}

use Step::{
    AwkwardDrain, BulkKeyed, BulkPut, ClaimSettle, Http, Idle, Limits, MemoryCycle, Put1, Put8,
    Put64, Put256, PutProcesses, Returned, StartAcross, StartFiles, StartMemory, StartPostgres,
    StartSqlite, WaitingDrain, WorkerDrain,
};

impl Step {
    /// The name of its row, of the first of its rows, or of all of them.
    pub(crate) fn name(self) -> &'static str {
        match self {
            BulkPut => "bulk_put",
            BulkKeyed => "bulk_put_keyed",
            ClaimSettle => "claim_settle",
            WorkerDrain => "worker_drain",
            AwkwardDrain => "drain_errors",
            WaitingDrain => "drain_waiting",
            Put1 => "put_1",
            Put8 => "put_8",
            Put64 => "put_64",
            Put256 => "put_256",
            PutProcesses => "put_processes",
            MemoryCycle => "memory_cycle",
            StartMemory => "start_memory",
            StartSqlite => "start_sqlite",
            StartFiles => "start_files",
            StartPostgres => "start_postgres",
            StartAcross => "start_across",
            Http => "http",
            Idle => "idle",
            Limits => "limits",
            Returned => "result_wait",
        }
    }

    /// What a person is told while it runs.
    pub(crate) fn doing(self) -> &'static str {
        match self {
            BulkPut => "bulk put",
            BulkKeyed => "bulk put, a key each",
            ClaimSettle => "claim and settle",
            WorkerDrain => "a worker",
            AwkwardDrain => "a worker whose tasks fail, have follow-ups or keys",
            WaitingDrain => "a worker whose handlers wait",
            Put1 => "one caller",
            Put8 => "8 callers, a task each",
            Put64 => "64 callers, a task each",
            Put256 => "256 callers, a task each",
            PutProcesses => "8 processes, a task each",
            MemoryCycle => "put, claim and done in memory",
            StartMemory => "put to start in memory",
            StartSqlite | StartFiles | StartPostgres => "put to start",
            StartAcross => "put by another process to start",
            Http => "the service over loopback",
            Idle => "an idle worker",
            Limits => "limited queues and turns",
            Returned => "waiting for a result",
        }
    }
}

impl Target {
    /// What a store's URL means here. Files are made in `folder`, whatever file
    /// the URL names: nobody's store is measured with.
    pub(crate) fn of(url: StoreUrl, folder: PathBuf) -> Self {
        match url {
            StoreUrl::Sqlite(_) => Target::Sqlite(folder),
            StoreUrl::Files(_) => Target::Files(folder),
            StoreUrl::Postgres(url) => Target::Postgres(url),
            _ => Target::Memory,
        }
    }

    /// Everything that can be measured of it, in this order.
    pub(crate) fn steps(&self) -> &'static [Step] {
        match self {
            Target::Memory => &[MemoryCycle, StartMemory, Limits, Returned],
            Target::Sqlite(_) => &[
                BulkPut,
                ClaimSettle,
                WorkerDrain,
                Put64,
                Put256,
                MemoryCycle,
                StartMemory,
                StartSqlite,
                StartAcross,
                Http,
                Limits,
                Returned,
            ],
            Target::Files(_) => {
                &[BulkPut, ClaimSettle, WorkerDrain, StartFiles, StartAcross, Limits, Returned]
            }
            Target::Postgres(_) => &[
                BulkPut,
                BulkKeyed,
                ClaimSettle,
                WorkerDrain,
                AwkwardDrain,
                WaitingDrain,
                Put1,
                Put8,
                Put64,
                PutProcesses,
                StartPostgres,
                StartAcross,
                Idle,
                Limits,
                Returned,
            ],
        }
    }

    pub(crate) async fn measure(&self, step: Step, plan: Plan) -> Result<Measured, BenchError> {
        Ok(match (self, step) {
            (_, MemoryCycle) => memory::all(plan).await?.into(),
            (target, Limits) => limits::all(target, plan).await?,
            (target, Returned) => returned::all(target, plan).await?,
            (_, StartMemory) => start::on_memory(plan).await?,
            (Target::Sqlite(folder), step) => match step {
                BulkPut => sqlite::bulk_put(folder, plan).await?.into(),
                ClaimSettle => sqlite::claim_settle(folder, plan).await?.into(),
                WorkerDrain => worker::on_sqlite(folder, plan).await?.into(),
                Put64 => sqlite::callers(folder, plan, 64, step.name()).await?.into(),
                Put256 => sqlite::callers(folder, plan, 256, step.name()).await?.into(),
                StartSqlite => start::on_sqlite(folder, plan).await?.into(),
                StartAcross => across::on_sqlite(folder, plan).await?,
                Http => http::rows(folder, plan).await?,
                other => return Err(BenchError::NotHere(other.name())),
            },
            (Target::Files(folder), step) => match step {
                BulkPut => files::bulk_put(folder, plan).await?.into(),
                ClaimSettle => files::claim_settle(folder, plan).await?.into(),
                WorkerDrain => worker::on_files(folder, plan).await?.into(),
                StartFiles => start::on_files(folder, plan).await?.into(),
                StartAcross => across::on_files(folder, plan).await?,
                other => return Err(BenchError::NotHere(other.name())),
            },
            (Target::Postgres(url), step) => match step {
                BulkPut => postgres::put::bulk(url, plan).await?,
                BulkKeyed => postgres::put::keyed(url, plan).await?.into(),
                ClaimSettle => postgres::drain::by_port(url, plan).await?,
                WorkerDrain => postgres::drain::by_process(url, plan).await?,
                AwkwardDrain => postgres::awkward::drains(url, plan).await?,
                WaitingDrain => postgres::awkward::waiting(url, plan).await?.into(),
                Put1 => postgres::put::callers(url, plan, 1, step.name()).await?.into(),
                Put8 => postgres::put::callers(url, plan, 8, step.name()).await?.into(),
                Put64 => postgres::put::callers(url, plan, 64, step.name()).await?.into(),
                PutProcesses => postgres::put::processes(url, plan).await?.into(),
                StartPostgres => start::on_postgres(url, plan).await?,
                StartAcross => across::on_postgres(url, plan).await?,
                Idle => postgres::idle::worker(url, plan).await?,
                other => return Err(BenchError::NotHere(other.name())),
            },
            (Target::Memory, other) => return Err(BenchError::NotHere(other.name())),
        })
    }

    /// Leaves nothing behind on a server; files go with their rounds.
    pub(crate) async fn clear(&self) -> Result<(), BenchError> {
        match self {
            Target::Postgres(url) => postgres::clear(url).await,
            _ => Ok(()),
        }
    }
}
