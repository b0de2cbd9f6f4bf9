//! What is said: progress while it runs, the verdict, the ledger.

use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use gristmill_conformance::judge::{FaultKind, Verdict};

use crate::Result;
use crate::ledger::Entry;
use crate::place::Kind;

/// Says what a run shows.
pub(crate) fn tell(entry: &Entry, json: bool) {
    if json {
        println!("{}", serde_json::to_string(entry).unwrap_or_default());
        return;
    }
    println!(
        "store {}, seed {}, {} s with {}",
        entry.store,
        entry.seed,
        entry.seconds,
        words(&entry.faults)
    );
    tell_verdict(&entry.verdict);
    if !entry.verdict.is_sound() {
        println!("the journals are in {}", entry.folder);
    }
}

fn words(faults: &[String]) -> String {
    if faults.is_empty() { "no faults".to_owned() } else { faults.join(", ") }
}

fn tell_verdict(verdict: &Verdict) {
    let tally = &verdict.tally;
    println!(
        "{} calls, {} operations judged, {} unknown; {} tasks put, {} given out ({} more than once), {} settled, {} refused ({} stale)",
        tally.calls,
        tally.operations,
        tally.unknown,
        tally.enqueued,
        tally.taken,
        tally.redelivered,
        tally.settled,
        tally.refused,
        tally.stale_tried
    );
    let faults: Vec<String> = tally.faults.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    if !faults.is_empty() {
        println!("faults: {}", faults.join(", "));
    }
    if verdict.is_sound() {
        println!("nothing was found");
        return;
    }
    for violation in &verdict.violations {
        println!("\n{violation}");
    }
    let counted: Vec<String> =
        verdict.counted.iter().map(|(rule, n)| format!("{n} × {rule}")).collect();
    println!("FOUND: {}", counted.join(", "));
}

/// Judges a folder once more.
pub(crate) fn judge(folder: &Path, json: bool) -> Result<bool> {
    let verdict = crate::run::verdict(folder)?;
    if json {
        println!("{}", serde_json::to_string(&verdict).unwrap_or_default());
    } else {
        tell_verdict(&verdict);
    }
    Ok(verdict.is_sound())
}

/// Says which faults there are.
pub(crate) fn faults(store: &str, json: bool) {
    let kind = Kind::read(store);
    let usual = kind.usual();
    for fault in FaultKind::ALL {
        let allowed = kind.allows(*fault);
        let note = match &allowed {
            Ok(()) if usual.contains(fault) => "yes",
            Ok(()) => "when named",
            Err(why) => why,
        };
        if json {
            let line = serde_json::json!({"fault": fault.word(), "possible": allowed.is_ok(), "note": note});
            println!("{line}");
        } else {
            println!("{:<18} {note}", fault.word());
        }
    }
}

/// What is said while a run goes on, on stderr, about twice a second on a terminal
/// and every ten seconds elsewhere.
#[derive(Debug)]
pub(crate) struct Progress {
    begun: Instant,
    time: Duration,
    said: Instant,
    quiet: bool,
    every: Duration,
    terminal: bool,
}

impl Progress {
    pub(crate) fn new(time: Duration, quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let every = if terminal { Duration::from_millis(500) } else { Duration::from_secs(10) };
        let begun = Instant::now();
        Progress { begun, time, said: begun, quiet, every, terminal }
    }

    pub(crate) fn step(&mut self, folder: &Path) {
        if self.quiet || self.said.elapsed() < self.every {
            return;
        }
        self.said = Instant::now();
        let written: u64 = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let journal = entry.path().extension().is_some_and(|ending| ending == "jsonl");
                journal.then(|| entry.metadata().ok()).flatten()
            })
            .map(|metadata| metadata.len())
            .sum();
        let (gone, all) = (self.begun.elapsed().as_secs(), self.time.as_secs());
        self.say(&format!("{gone} of {all} s, {} KiB written down", written / 1024));
    }

    pub(crate) fn say(&self, words: &str) {
        if self.quiet {
            return;
        }
        if self.terminal {
            eprint!("\r\x1b[K{words}");
        } else {
            eprintln!("{words}");
        }
    }

    pub(crate) fn end(&self) {
        if self.terminal && !self.quiet {
            eprint!("\r\x1b[K");
        }
    }
}
