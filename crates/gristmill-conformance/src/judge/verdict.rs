//! The verdict: what must not be, each as a story of few lines, and what was seen,
//! for a run that saw too little proves nothing.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::case::{Case, Effect};
use super::event::{Phase, PutSaid, SettleSaid};
use super::gather::gather;
use super::journal::History;
use super::plan::Plan;
use super::rule;
use super::standing::Standing;

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The judge's rule, in a word.
    pub rule: String,
    /// What is wrong, in one sentence.
    pub words: String,
    /// The lines that show it.
    pub story: Vec<String>,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}: {}", self.rule, self.words)?;
        self.story.iter().try_for_each(|line| writeln!(f, "    {line}"))
    }
}

/// What a run saw.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Calls that were made.
    pub calls: u64,
    /// Answers to single tasks: puts, claims, settlements, operators' moves; and
    /// extensions and fires.
    pub operations: u64,
    /// Calls without an answer, or whose outcome is unknown.
    pub unknown: u64,
    /// Tasks put and acknowledged.
    pub enqueued: u64,
    /// Puts answered *duplicate*.
    pub duplicates: u64,
    /// Puts answered *replaced*.
    pub replaced: u64,
    /// Puts answered *duplicate* that stood by themselves later, because what stood for
    /// them ran before their commit, or at the same moment.
    #[serde(default)]
    pub put_again: u64,
    /// Tasks given to claims.
    pub taken: u64,
    /// Tasks that were given more than once.
    pub redelivered: u64,
    /// Settlements that were recorded.
    pub settled: u64,
    /// Settlements that were refused: lease lost, gone, already recorded.
    pub refused: u64,
    /// Settlements tried after another claim of the task was heard of.
    pub stale_tried: u64,
    /// Tasks an operator moved.
    pub moved: u64,
    /// Instants of schedules that were fired.
    pub fired: u64,
    /// Faults, by kind.
    pub faults: BTreeMap<String, u64>,
}

/// What a run shows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// What it saw.
    pub tally: Tally,
    /// What must not be; of one kind not more than a few are told.
    pub violations: Vec<Violation>,
    /// How many there were of each rule.
    pub counted: BTreeMap<String, u64>,
}

impl Verdict {
    /// Whether nothing was found.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.violations.is_empty()
    }
}

/// Most stories that are told of one rule, and most lines of one story.
const STORIES: u64 = 5;
const LINES: usize = 14;

/// What the rules found.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    history: &'a History,
    verdict: Verdict,
}

impl Found<'_> {
    /// Tells of a violation by the lines that show it.
    pub(crate) fn tell(&mut self, rule: &str, words: String, mut lines: Vec<usize>) {
        let count = self.verdict.counted.entry(rule.to_owned()).or_default();
        *count += 1;
        if *count > STORIES {
            return;
        }
        lines.sort_unstable();
        lines.dedup();
        let mut story: Vec<String> = Vec::new();
        let cut = lines.len().saturating_sub(LINES);
        for (nth, line) in lines.iter().enumerate() {
            // The beginning and the end show most.
            if cut > 0 && nth == LINES / 2 {
                story.push(format!("        ... {cut} lines ..."));
            }
            if cut == 0 || nth < LINES / 2 || nth >= LINES / 2 + cut {
                story.push(self.history.told(*line));
            }
        }
        self.verdict.violations.push(Violation { rule: rule.to_owned(), words, story });
    }
}

/// Judges a run by what was written down and what stands.
#[must_use]
pub fn judge(history: &History, plan: &Plan, standing: &Standing) -> Verdict {
    let case = gather(history, plan, standing);
    let verdict = Verdict { tally: tally(&case), ..Verdict::default() };
    let mut found = Found { history, verdict };
    for check in rule::ALL {
        check(&case, &mut found);
    }
    found.verdict
}

/// Judges the run in a folder.
///
/// # Errors
/// When the folder does not hold one.
pub fn judge_folder(folder: &Path) -> io::Result<Verdict> {
    let (plan, standing) = (Plan::read(folder)?, Standing::read(folder)?);
    Ok(judge(&History::read(folder)?, &plan, &standing))
}

fn tally(case: &Case<'_>) -> Tally {
    let mut tally = Tally::default();
    for placed in &case.history.lines {
        tally.calls += u64::from(placed.line.call.is_some());
        if let Some(fault) = placed.line.fault.as_ref().filter(|one| one.phase != Phase::End) {
            *tally.faults.entry(fault.kind.word().to_owned()).or_default() += 1;
        }
    }
    for put in &case.puts {
        match (&put.said, put.effect) {
            (Some(PutSaid::Enqueued(_)), Effect::Told) => tally.enqueued += 1,
            (Some(PutSaid::Duplicate(_)), Effect::Told) => {
                tally.duplicates += 1;
                tally.put_again += u64::from(case.seen.contains_key(&put.wanted.payload));
            }
            (Some(PutSaid::Replaced(_)), Effect::Told) => tally.replaced += 1,
            _ => {}
        }
        tally.operations += u64::from(put.effect == Effect::Told);
        tally.unknown += u64::from(put.effect == Effect::Unknown);
    }
    for end in &case.ends {
        tally.operations += u64::from(end.effect == Effect::Told);
        tally.unknown += u64::from(end.effect == Effect::Unknown);
        match &end.said {
            Some(SettleSaid::Recorded { .. }) => tally.settled += 1,
            Some(_) => tally.refused += 1,
            None => {}
        }
        tally.stale_tried += u64::from(rule::is_stale(case, end));
    }
    tally.unknown += case.claims.iter().filter(|one| one.effect == Effect::Unknown).count() as u64;
    tally.taken = case.takes.len() as u64;
    tally.redelivered = case.lives.values().filter(|life| life.takes.len() > 1).count() as u64;
    let acts = case.lives.values().flat_map(|life| &life.acts);
    tally.moved =
        acts.clone().filter(|act| act.may_be(&["cancel", "discard", "resolve", "retry"])).count()
            as u64;
    tally.fired = case.fires.iter().filter(|fire| fire.fired).count() as u64;
    let extended = case.extends.values().flatten().count() as u64;
    tally.operations += tally.taken + extended + acts.count() as u64;
    tally
}
