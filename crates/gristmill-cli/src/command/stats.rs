//! `stats`: the numbers of every queue, from kept counts.

use std::time::Duration;

use comfy_table::Cell;
use gristmill::port::Counters;
use gristmill::{QueueName, QueueStats};
use serde::Serialize;

use super::Session;
use crate::args::StatsArgs;
use crate::failure::Failure;
use crate::output::{count, table};
use crate::store::Missing;
use gristmill_contract::duration;

/// Show all queues, or one.
#[derive(Debug)]
pub(crate) struct Stats {
    queue: Option<QueueName>,
}

/// A queue's numbers under their stable names.
#[derive(Serialize)]
struct StatsJson<'a> {
    queue: &'a str,
    ready: u64,
    delayed: u64,
    processing: u64,
    failed: u64,
    total: u64,
    wait_ms: u64,
    paused: bool,
    blocked: u64,
    /// What happened since the queue was declared.
    counters: serde_json::Map<String, serde_json::Value>,
}

impl Stats {
    pub(crate) fn meant(args: StatsArgs) -> Result<Self, Failure> {
        Ok(Stats { queue: args.queue.as_deref().map(QueueName::new).transpose()? })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        let stats = match &self.queue {
            Some(queue) => vec![mill.inspect().queue(queue.as_str()).await?],
            None => mill.inspect().stats().await?,
        };
        let set_aside = match mill.files() {
            Some(files) => files.set_aside().await?.len() as u64,
            None => 0,
        };
        let open_puts = match mill.postgres() {
            Some(postgres) => postgres.open_puts().await.unwrap_or_default(),
            None => Vec::new(),
        };
        mill.close().await?;
        for open in open_puts {
            session.output.warn(&format!("{open}: see 'gristmill doctor'"));
        }
        if set_aside > 0 {
            // Not in the table: it belongs to no queue any more.
            let files = count(set_aside, "file");
            let warning = format!("{files} in corrupt/ could not be read: see 'gristmill check'");
            session.output.warn(&warning);
        }
        if session.output.json {
            let all: Vec<StatsJson<'_>> = stats.iter().map(json).collect();
            session.output.value(&all)
        } else if stats.is_empty() {
            session.output.line("no queues yet: declare one with 'gristmill queue add NAME'")
        } else {
            session.output.line(text(&stats))
        }
    }
}

fn json(stats: &QueueStats) -> StatsJson<'_> {
    let wait = stats.oldest_ready.unwrap_or(Duration::ZERO);
    let counters = Counters::NAMES.iter().zip(stats.counters.values());
    StatsJson {
        queue: stats.queue.as_str(),
        ready: stats.ready,
        delayed: stats.delayed,
        blocked: stats.blocked,
        processing: stats.processing,
        failed: stats.failed,
        total: stats.total(),
        wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
        paused: stats.paused,
        counters: counters.map(|(name, n)| ((*name).to_owned(), n.into())).collect(),
    }
}

fn text(stats: &[QueueStats]) -> String {
    let mut table = table::new(&[
        "queue",
        ">ready",
        ">delayed",
        ">blocked",
        ">processing",
        ">failed",
        ">total",
        ">wait",
        ">done",
        "",
    ]);
    for queue in stats {
        table.add_row(vec![
            Cell::new(&queue.queue),
            Cell::new(queue.ready),
            Cell::new(queue.delayed),
            Cell::new(queue.blocked),
            Cell::new(queue.processing),
            table::alarming(queue.failed),
            Cell::new(queue.total()),
            Cell::new(queue.oldest_ready.map_or_else(|| "-".to_owned(), duration::show)),
            Cell::new(queue.counters.done),
            table::warning(if queue.paused { "paused" } else { "" }),
        ]);
    }
    table::text(&table)
}
