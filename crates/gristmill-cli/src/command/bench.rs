//! `bench`: the rates of the core beside the bare limits.

use std::path::PathBuf;
use std::time::Duration;

use comfy_table::Cell;
use gristmill::StoreUrl;
use serde::Serialize;

use super::Session;
use crate::args::BenchArgs;
use crate::bench::{self, BenchError, Cost, Measured, Plan, Row, Step, Target, produce};
use crate::failure::{Exit, Failure};
use crate::output::table;
use crate::progress;

/// Measure with this plan, in this folder.
#[derive(Debug)]
pub(crate) struct Bench {
    plan: Plan,
    folder: PathBuf,
    only: Vec<String>,
    /// The other process of a measurement that has one.
    produce: Option<usize>,
    /// One of the other processes of a measurement that has several.
    put_when_told: Option<usize>,
}

/// A measured rate under its stable names.
#[derive(Serialize)]
struct RowJson {
    name: &'static str,
    rate: f64,
    bare: Option<f64>,
    ratio: Option<f64>,
    durable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bare_p50_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bare_p99_us: Option<f64>,
}

/// A measured cost under its stable names.
#[derive(Serialize)]
struct CostJson<'a> {
    name: &'a str,
    unit: &'a str,
    cost: f64,
    bare: f64,
    ratio: Option<f64>,
}

/// One entry of the list.
#[derive(Serialize)]
#[serde(untagged)]
enum EntryJson<'a> {
    Row(RowJson),
    Cost(CostJson<'a>),
}

impl Bench {
    pub(crate) fn meant(args: BenchArgs) -> Self {
        let plan = Plan { tasks: args.tasks as usize, rounds: args.rounds as usize };
        let produce = args.produce.map(|puts| puts as usize);
        let put_when_told = args.put_when_told.map(|tasks| tasks as usize);
        Bench { plan, folder: args.folder, only: args.only, produce, put_when_told }
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        if let Some(puts) = self.produce {
            let said = produce(&session.url(), puts).await.map_err(failure)?;
            return session.output.line(said);
        }
        if let (Some(tasks), StoreUrl::Postgres(url)) = (self.put_when_told, session.url()) {
            return bench::put_when_told(url.reveal(), tasks).await.map_err(failure);
        }
        if !self.folder.is_dir() {
            let folder = self.folder.display();
            return Err(Failure::usage(format!("--folder {folder} is no folder: make it first")));
        }
        let target = Target::of(session.url(), self.folder);
        let steps = chosen(target.steps(), &self.only)?;
        let measured = measure(&target, &steps, self.plan).await;
        // Also after a failure: nothing stays behind.
        let cleared = target.clear().await;
        let measured = measured.map_err(failure)?;
        cleared.map_err(failure)?;
        if session.output.json {
            session.output.value(&json(&measured))
        } else if measured.costs.is_empty() {
            session.output.line(rows_text(&measured.rows))
        } else {
            let (rows, costs) = (rows_text(&measured.rows), costs_text(&measured.costs));
            session.output.line(format!("{rows}\n\n{costs}"))
        }
    }
}

fn failure(error: BenchError) -> Failure {
    Failure::new(Exit::Wrong, "bench", error.to_string())
}

async fn measure(target: &Target, steps: &[Step], plan: Plan) -> Result<Measured, BenchError> {
    let bar = progress::steps("measuring");
    let mut measured = Measured::default();
    for step in steps {
        bar.set_message(step.doing());
        bar.inc(1);
        measured.add(target.measure(*step, plan).await?);
    }
    bar.finish_and_clear();
    Ok(measured)
}

/// Those that were asked for, in the order of the list; all when none was.
fn chosen(steps: &[Step], only: &[String]) -> Result<Vec<Step>, Failure> {
    let unknown = only.iter().find(|name| !steps.iter().any(|step| step.name() == **name));
    if let Some(name) = unknown {
        let names: Vec<_> = steps.iter().map(|step| step.name()).collect();
        let names = names.join(", ");
        return Err(Failure::usage(format!("--only {name}: of this store there are {names}")));
    }
    let wanted = |step: &Step| only.is_empty() || only.iter().any(|name| step.name() == name);
    Ok(steps.iter().copied().filter(wanted).collect())
}

fn json(measured: &Measured) -> Vec<EntryJson<'_>> {
    let rows = measured.rows.iter().map(|row| EntryJson::Row(row_json(row)));
    rows.chain(measured.costs.iter().map(|cost| EntryJson::Cost(cost_json(cost)))).collect()
}

fn rounded(value: f64, places: f64) -> f64 {
    (value * places).round() / places
}

fn cost_json(cost: &Cost) -> CostJson<'_> {
    CostJson {
        name: &cost.name,
        unit: cost.unit,
        cost: rounded(cost.ours, 1000.0),
        bare: rounded(cost.bare, 1000.0),
        ratio: cost.ratio.map(|ratio| rounded(ratio, 1000.0)),
    }
}

fn row_json(row: &Row) -> RowJson {
    RowJson {
        name: row.name,
        rate: rounded(row.rate, 1.0),
        bare: row.bare.map(|bare| rounded(bare, 1.0)),
        ratio: row.ratio.map(|ratio| rounded(ratio, 1000.0)),
        durable: row.durable,
        p50_us: row.latency.map(|latency| micros(latency.p50)),
        p99_us: row.latency.map(|latency| micros(latency.p99)),
        bare_p50_us: row.latency.and_then(|latency| latency.bare_p50).map(micros),
        bare_p99_us: row.latency.and_then(|latency| latency.bare_p99).map(micros),
    }
}

fn micros(span: Duration) -> f64 {
    (span.as_secs_f64() * 1e7).round() / 10.0
}

fn rows_text(rows: &[Row]) -> String {
    let mut table = table::new(&[
        "name",
        ">tasks/s",
        ">bare/s",
        ">ratio",
        ">p50",
        ">p99",
        ">bare p50",
        "durable",
        "what",
    ]);
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let time = |span: Option<Duration>| or_none(span.map(|span| format!("{:.0} µs", micros(span))));
    for row in rows {
        table.add_row(vec![
            Cell::new(row.name),
            Cell::new(format!("{:.0}", row.rate)),
            Cell::new(or_none(row.bare.map(|bare| format!("{bare:.0}")))),
            Cell::new(or_none(row.ratio.map(|ratio| format!("{ratio:.2}")))),
            Cell::new(time(row.latency.map(|latency| latency.p50))),
            Cell::new(time(row.latency.map(|latency| latency.p99))),
            Cell::new(time(row.latency.and_then(|latency| latency.bare_p50))),
            Cell::new(if row.durable { "yes" } else { "no" }),
            Cell::new(row.what),
        ]);
    }
    table::text(&table)
}

fn costs_text(costs: &[Cost]) -> String {
    let mut table = table::new(&["name", ">ours", ">bare", ">ratio", "unit", "what"]);
    for cost in costs {
        table.add_row(vec![
            Cell::new(&cost.name),
            Cell::new(format!("{:.2}", cost.ours)),
            Cell::new(format!("{:.2}", cost.bare)),
            Cell::new(cost.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))),
            Cell::new(cost.unit),
            Cell::new(cost.what),
        ]);
    }
    table::text(&table)
}
