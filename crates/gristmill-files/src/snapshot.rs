//! The state file: everything but the tasks' files as of a checkpoint, and
//! where the intent goes on from there.

use std::io::{BufRead, BufReader};

use gristmill_core::memory::State as Ledger;
use gristmill_core::{Result, Timestamp};
use gristmill_text::LastSeenText;
use serde::{Deserialize, Serialize};

use crate::ending_text::EndingText;
use crate::errors::{At, corrupt};
use crate::fact::Fact;
use crate::schedule_text::ScheduleText;
use crate::spool::{STATE, Spool};
use crate::task_file::sum;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Opening {
    gristmill_state: u32,
    segment: u64,
}

/// All facts of a ledger.
fn facts(ledger: &Ledger, now: Timestamp) -> Vec<Fact> {
    let mut facts = vec![Fact::NextId(ledger.next_id())];
    for queue in ledger.all_queues() {
        let number = queue.number;
        facts.push(Fact::queue(queue));
        facts.extend(ledger.counters(number).map(|counters| Fact::counters(number, counters)));
        facts.extend(ledger.all_minutes(number, now).map(|minute| Fact::minute(number, minute)));
        let turns = ledger.all_turns(number);
        facts.extend(turns.map(|(priority, group)| Fact::turn(number, priority, group)));
        let buckets = ledger.all_buckets(number);
        facts.extend(buckets.map(|(group, full_at)| Fact::bucket(number, group, Some(full_at))));
    }
    facts.extend(ledger.tokens().filter_map(|token| ledger.lease_record(token)).map(Fact::lease));
    facts.extend(ledger.all_schedules().map(|s| Fact::Schedule(Box::new(ScheduleText::new(s)))));
    facts.extend(ledger.all_documents().map(Fact::document));
    facts.extend(ledger.all_endings().map(|(id, e)| Fact::Ending(EndingText::new(id, e))));
    facts.extend(ledger.last_seen().map(|seen| Fact::Clock(LastSeenText::new(seen))));
    facts
}

fn line(text: &mut String, value: &impl Serialize) -> Result<()> {
    text.push_str(&serde_json::to_string(value).map_err(|e| corrupt("the state", e))?);
    text.push('\n');
    Ok(())
}

/// The state file's text: the intent before `segment` is in it.
pub(crate) fn text(ledger: &Ledger, segment: u64, now: Timestamp) -> Result<String> {
    let mut text = String::new();
    line(&mut text, &Opening { gristmill_state: 1, segment })?;
    for fact in facts(ledger, now) {
        line(&mut text, &fact)?;
    }
    let sum = sum(&text);
    text.push_str(&sum);
    text.push('\n');
    Ok(text)
}

/// The segment that the state file goes on from.
pub(crate) fn segment(spool: &Spool) -> Result<u64> {
    let path = spool.at(STATE);
    let mut first = String::new();
    let file = std::fs::File::open(&path).at(&path)?;
    BufReader::new(file).read_line(&mut first).at(&path)?;
    let opening: Opening =
        serde_json::from_str(&first).map_err(|e| corrupt(&path.display().to_string(), e))?;
    Ok(opening.segment)
}

/// Reads the state file into an empty ledger; the segment to go on from.
pub(crate) fn read(spool: &Spool, ledger: &mut Ledger) -> Result<u64> {
    walk(spool, |fact| fact.restore(ledger))
}

/// Reads the state file and leaves it at that: can every line be read?
pub(crate) fn check(spool: &Spool) -> Result<()> {
    walk(spool, |_| Ok(())).map(drop)
}

/// Reads the state file fact by fact; the segment to go on from.
fn walk(spool: &Spool, mut each: impl FnMut(Fact) -> Result<()>) -> Result<u64> {
    let path = spool.at(STATE);
    let text = std::fs::read_to_string(&path).at(&path)?;
    let damaged = |why: &str| corrupt(&path.display().to_string(), why);
    let (body, said) = text
        .trim_end()
        .rsplit_once('\n')
        .map(|(body, _)| text.split_at(body.len() + 1))
        .ok_or_else(|| damaged("it is cut short"))?;
    if sum(body) != said.trim_end() {
        return Err(damaged("it does not fit its checksum"));
    }
    let mut lines = body.lines();
    let opening: Opening = lines
        .next()
        .and_then(|line| serde_json::from_str(line).ok())
        .ok_or_else(|| damaged("it does not begin as it should"))?;
    for line in lines {
        let fact: Fact = serde_json::from_str(line).map_err(|e| damaged(&e.to_string()))?;
        each(fact)?;
    }
    Ok(opening.segment)
}
