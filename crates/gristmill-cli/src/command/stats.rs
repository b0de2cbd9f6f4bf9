//! `stats`: the numbers of every queue, from kept counts; once, or again and again with
//! what moved in between.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use comfy_table::Cell;
use gristmill::port::Counters;
use gristmill::{Mill, QueueName, QueueStats};
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
    /// How often to look again.
    watch: Option<Duration>,
}

/// The shortest time that says anything about a rate.
const SHORTEST: Duration = Duration::from_millis(100);

/// What moved a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Rates {
    pub(crate) put: f64,
    pub(crate) done: f64,
    pub(crate) failed: f64,
}

impl Rates {
    /// What moved between two looks. A count that fell was begun anew.
    pub(crate) fn between(before: &Counters, after: &Counters, took: Duration) -> Self {
        let rate = |before: u64, after: u64| {
            let moved = after.saturating_sub(before);
            let rate = moved as f64 / took.as_secs_f64().max(f64::MIN_POSITIVE);
            (rate * 10.0).round() / 10.0
        };
        Rates {
            put: rate(before.put, after.put),
            done: rate(before.done, after.done),
            failed: rate(before.failed, after.failed),
        }
    }
}

/// A rate as people read it: `0`, `3.5`, `1200`.
pub(crate) fn rate_text(rate: f64) -> String {
    if rate >= 10.0 || rate == 0.0 { format!("{rate:.0}") } else { format!("{rate:.1}") }
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
    #[serde(skip_serializing_if = "Option::is_none")]
    rates: Option<Rates>,
}

impl Stats {
    pub(crate) fn meant(args: StatsArgs) -> Result<Self, Failure> {
        let watch = args.watch.as_deref().map(duration::parse).transpose();
        let watch = watch.map_err(|why| Failure::usage(format!("--watch: {why}")))?;
        if watch.is_some_and(|every| every < SHORTEST) {
            let least = duration::show(SHORTEST);
            return Err(Failure::usage(format!(
                "--watch is too often: at least {least} is needed"
            )));
        }
        Ok(Stats { queue: args.queue.as_deref().map(QueueName::new).transpose()?, watch })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        if let Some(every) = self.watch {
            return self.watch(&mill, every, session).await;
        }
        let stats = self.look(&mill).await?;
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
            let all: Vec<StatsJson<'_>> = stats.iter().map(|stats| json(stats, None)).collect();
            session.output.value(&all)
        } else if stats.is_empty() {
            session.output.line(NONE)
        } else {
            session.output.line(text(&stats, None))
        }
    }

    async fn look(&self, mill: &Mill) -> Result<Vec<QueueStats>, Failure> {
        Ok(match &self.queue {
            Some(queue) => vec![mill.inspect().queue(queue.as_str()).await?],
            None => mill.inspect().stats().await?,
        })
    }

    /// Shows them again and again, until a signal ends it or nobody reads.
    async fn watch(&self, mill: &Mill, every: Duration, session: &Session) -> Result<(), Failure> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let in_place = std::io::stdout().is_terminal() && !dumb && !session.output.json;
        let mut before: HashMap<QueueName, Counters> = HashMap::new();
        let mut looked = Instant::now();
        loop {
            let stats = self.look(mill).await?;
            let took = looked.elapsed();
            looked = Instant::now();
            let rates: Vec<Rates> = stats
                .iter()
                .map(|now| match before.get(&now.queue) {
                    Some(before) => Rates::between(before, &now.counters, took),
                    None => Rates::default(),
                })
                .collect();
            let first = before.is_empty() && !stats.is_empty();
            before = stats.iter().map(|now| (now.queue.clone(), now.counters)).collect();
            if session.output.json {
                let all = stats.iter().zip(&rates).map(|(stats, rates)| json(stats, Some(*rates)));
                // Of the first look there is nothing to compare with.
                if !first {
                    session.output.value(&all.collect::<Vec<_>>())?;
                }
            } else {
                let shown =
                    if stats.is_empty() { NONE.to_owned() } else { text(&stats, Some(&rates)) };
                let clear = if in_place { CLEAR } else { "" };
                let gap = if in_place { "" } else { "\n" };
                session.output.line(format_args!("{clear}{shown}{gap}"))?;
            }
            tokio::time::sleep(every).await;
        }
    }
}

/// To the terminal's upper left corner, and nothing below.
const CLEAR: &str = "\x1b[H\x1b[J";

const NONE: &str = "no queues yet: declare one with 'gristmill queue add NAME'";

fn json(stats: &QueueStats, rates: Option<Rates>) -> StatsJson<'_> {
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
        rates,
    }
}

fn text(stats: &[QueueStats], rates: Option<&[Rates]>) -> String {
    let mut headings = vec![
        "queue",
        ">ready",
        ">delayed",
        ">blocked",
        ">processing",
        ">failed",
        ">total",
        ">wait",
    ];
    match rates {
        Some(_) => headings.extend([">put/s", ">done/s", ">failed/s", ""]),
        None => headings.extend([">done", ""]),
    }
    let mut table = table::new(&headings);
    for (at, queue) in stats.iter().enumerate() {
        let mut row = vec![
            Cell::new(&queue.queue),
            Cell::new(queue.ready),
            Cell::new(queue.delayed),
            Cell::new(queue.blocked),
            Cell::new(queue.processing),
            table::alarming(queue.failed),
            Cell::new(queue.total()),
            Cell::new(queue.oldest_ready.map_or_else(|| "-".to_owned(), duration::show)),
        ];
        match rates {
            Some(rates) => {
                let rates = rates.get(at).copied().unwrap_or_default();
                let shown = [rates.put, rates.done, rates.failed].map(rate_text);
                row.extend(shown.map(Cell::new));
            }
            None => row.push(Cell::new(queue.counters.done)),
        }
        row.push(table::warning(if queue.paused { "paused" } else { "" }));
        table.add_row(row);
    }
    table::text(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_what_moved_a_second() {
        let (mut before, mut after) = (Counters::default(), Counters::default());
        (before.put, after.put, before.done, after.done) = (10, 15, 9, 4);
        let rates = Rates::between(&before, &after, Duration::from_secs(2));
        assert_eq!(rates, Rates { put: 2.5, done: 0.0, failed: 0.0 });
        let shown = [0.0, 2.5, 9.94, 1234.5].map(rate_text);
        assert_eq!(shown, ["0", "2.5", "9.9", "1234"]);
    }
}
