//! The ledger: a line a run, and what all of them come to.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use gristmill_conformance::judge::Verdict;
use serde::{Deserialize, Serialize};

use crate::Result;

/// A run's result: a line of the ledger.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) store: String,
    pub(crate) seed: u64,
    /// How long clients and faults went on.
    pub(crate) seconds: u64,
    /// How long all of it took.
    pub(crate) took: u64,
    pub(crate) judged_in_ms: u64,
    pub(crate) faults: Vec<String>,
    pub(crate) folder: String,
    pub(crate) verdict: Verdict,
}

impl Entry {
    /// Appends it to the ledger, whole: several runs may write at once.
    pub(crate) fn append(&self, ledger: &Path) -> Result<()> {
        let words = |error: std::io::Error| format!("{}: {error}", ledger.display());
        if let Some(folder) = ledger.parent() {
            std::fs::create_dir_all(folder).map_err(words)?;
        }
        let mut line = serde_json::to_string(self).map_err(|error| error.to_string())?;
        line.push('\n');
        let file = OpenOptions::new().create(true).append(true).open(ledger);
        file.and_then(|mut file| file.write_all(line.as_bytes())).map_err(words)
    }
}

/// What the runs of one store come to.
#[derive(Debug, Default, Serialize)]
struct Sum {
    runs: u64,
    minutes: f64,
    calls: u64,
    operations: u64,
    unknown: u64,
    enqueued: u64,
    taken: u64,
    stale_tried: u64,
    runs_with_a_finding: u64,
    faults: BTreeMap<String, u64>,
}

impl Sum {
    fn add(&mut self, entry: &Entry) {
        let tally = &entry.verdict.tally;
        self.runs += 1;
        #[expect(clippy::cast_precision_loss, reason = "minutes of runs are few")]
        let minutes = entry.seconds as f64 / 60.0;
        self.minutes += minutes;
        self.calls += tally.calls;
        self.operations += tally.operations;
        self.unknown += tally.unknown;
        self.enqueued += tally.enqueued;
        self.taken += tally.taken;
        self.stale_tried += tally.stale_tried;
        self.runs_with_a_finding += u64::from(!entry.verdict.is_sound());
        for (kind, count) in &tally.faults {
            *self.faults.entry(kind.clone()).or_default() += count;
        }
    }

    fn row(&self, name: &str) -> String {
        format!(
            "| {name} | {} | {:.0} | {} | {} | {} | {} | {} | {} |",
            self.runs,
            self.minutes,
            self.operations,
            self.enqueued,
            self.taken,
            self.unknown,
            self.stale_tried,
            self.runs_with_a_finding
        )
    }
}

/// Sums a ledger up, as a table for people or JSON for programs.
pub(crate) fn sum_up(ledger: &Path, json: bool) -> Result<bool> {
    let text = std::fs::read_to_string(ledger);
    let text = text.map_err(|error| format!("{}: {error}", ledger.display()))?;
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    let mut all = Sum::default();
    for (number, line) in text.lines().enumerate() {
        let entry: Entry = serde_json::from_str(line)
            .map_err(|error| format!("{}: line {}: {error}", ledger.display(), number + 1))?;
        sums.entry(entry.store.clone()).or_default().add(&entry);
        all.add(&entry);
    }
    let sound = all.runs_with_a_finding == 0;
    if json {
        sums.insert("all".to_owned(), all);
        println!("{}", serde_json::to_string(&sums).unwrap_or_default());
        return Ok(sound);
    }
    println!(
        "| store | runs | minutes | operations | tasks put | given out | unknown | stale tried | runs with a finding |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (store, sum) in &sums {
        println!("{}", sum.row(store));
    }
    println!("{}", all.row("all"));
    let faults: Vec<String> = all.faults.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    println!("\nfaults: {}", faults.join(", "));
    Ok(sound)
}
