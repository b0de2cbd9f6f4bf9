//! Callers' ids, in `ids/`. They outlive their tasks and may be many, so a
//! checkpoint writes those that are new to a file of its own, named after the
//! segment it leads to, and not all of them again. Now and then one file is
//! written with all, and the others go.

use std::collections::BTreeSet;

use gristmill_core::memory::State as Ledger;
use gristmill_core::{Result, Timestamp};
use serde::{Deserialize, Serialize};

use crate::errors::{At, corrupt};
use crate::fact::Fact;
use crate::spool::{IDS, Spool};
use crate::task_file::sum;

/// So many files are made one.
const MANY: usize = 32;

/// A queue's number and a caller's id.
pub(crate) type Id = (u32, String);

/// The first line of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Opening {
    gristmill_ids: u32,
    /// When the last of them is forgotten.
    until: i64,
    /// All there are: older files are not needed.
    whole: bool,
}

/// What a checkpoint writes.
#[derive(Debug)]
pub(crate) struct Text(Option<String>);

impl Text {
    pub(crate) fn as_str(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// The segments that have a file, oldest first.
fn segments(spool: &Spool) -> Result<Vec<u64>> {
    let folder = spool.at(IDS);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).at(&folder)? {
        let name = entry.at(&folder)?.file_name();
        found.extend(name.to_str().and_then(|name| name.parse::<u64>().ok()));
    }
    found.sort_unstable();
    Ok(found)
}

/// Their file's name in the folder.
pub(crate) fn name(segment: u64) -> String {
    format!("{IDS}/{segment:08}")
}

/// The new ids as they are now.
pub(crate) fn text(spool: &Spool, ledger: &Ledger, new: &BTreeSet<Id>) -> Result<Text> {
    let whole = segments(spool)?.len() >= MANY;
    let mut facts = Vec::new();
    let mut until = i64::MIN;
    let mut add = |number: u32, id: &str| {
        if let Some(known) = ledger.caller_id(number, id) {
            until = until.max(known.2.as_micros());
            facts.push(Fact::caller_id(number, id, Some(known)));
        }
    };
    if whole {
        for queue in ledger.all_queues() {
            ledger.caller_ids(queue.number).for_each(|(id, _)| add(queue.number, id));
        }
    } else {
        new.iter().for_each(|(number, id)| add(*number, id));
    }
    if facts.is_empty() && !whole {
        return Ok(Text(None));
    }
    let mut text = String::new();
    let line = |value: serde_json::Result<String>| value.map_err(|e| corrupt("callers' ids", e));
    text.push_str(&line(serde_json::to_string(&Opening { gristmill_ids: 1, until, whole }))?);
    text.push('\n');
    for fact in facts {
        text.push_str(&line(serde_json::to_string(&fact))?);
        text.push('\n');
    }
    let sum = sum(&text);
    text.push_str(&sum);
    text.push('\n');
    Ok(Text(Some(text)))
}

/// Makes them durable; before the state that leads to the segment is.
pub(crate) fn write(spool: &Spool, segment: u64, text: &Text) -> Result<()> {
    match &text.0 {
        Some(text) => spool.replace_in(IDS, &name(segment), text.as_bytes()),
        None => Ok(()),
    }
}

/// Reads those that belong to the state of a segment. A later file was written
/// for a state that never was.
pub(crate) fn read(spool: &Spool, ledger: &mut Ledger, segment: u64) -> Result<()> {
    for segment in segments(spool)?.into_iter().filter(|found| *found <= segment) {
        let (_, facts) = parse(spool, segment)?;
        for fact in facts {
            fact.restore(ledger)?;
        }
    }
    Ok(())
}

fn parse(spool: &Spool, segment: u64) -> Result<(Opening, Vec<Fact>)> {
    let path = spool.at(&name(segment));
    let text = std::fs::read_to_string(&path).at(&path)?;
    let damaged = |why: &str| corrupt(&path.display().to_string(), why);
    let (body, _) = text.trim_end().rsplit_once('\n').ok_or_else(|| damaged("it is cut short"))?;
    let (body, said) = text.split_at(body.len() + 1);
    if sum(body) != said.trim_end() {
        return Err(damaged("it does not fit its checksum"));
    }
    let mut lines = body.lines();
    let opening = lines.next().and_then(|line| serde_json::from_str(line).ok());
    let opening = opening.ok_or_else(|| damaged("it does not begin as it should"))?;
    let facts = lines
        .map(|line| serde_json::from_str(line).map_err(|e| damaged(&e.to_string())))
        .collect::<Result<_>>()?;
    Ok((opening, facts))
}

/// Deletes files whose ids are all forgotten, or all in a later one. The state
/// that leads to `segment` is durable.
pub(crate) fn tidy(spool: &Spool, segment: u64, now: Timestamp) -> Result<()> {
    let mut covered = false;
    for segment in segments(spool)?.into_iter().rev().filter(|found| *found <= segment) {
        let path = spool.at(&name(segment));
        let opening = if covered { None } else { Some(opening(spool, segment)?) };
        let kept = opening.as_ref().is_some_and(|opening| opening.until > now.as_micros());
        if !kept {
            spool.unlink(&path).at(&path)?;
        }
        covered |= opening.is_some_and(|opening| opening.whole);
    }
    Ok(())
}

fn opening(spool: &Spool, segment: u64) -> Result<Opening> {
    use std::io::BufRead;
    let path = spool.at(&name(segment));
    let mut first = String::new();
    let file = std::fs::File::open(&path).at(&path)?;
    std::io::BufReader::new(file).read_line(&mut first).at(&path)?;
    serde_json::from_str(&first).map_err(|e| corrupt(&path.display().to_string(), e))
}
