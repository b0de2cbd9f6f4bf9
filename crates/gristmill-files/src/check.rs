//! Looking the whole folder over: can every file be read, the state file with what came
//! of tasks among them, and do files and index agree?
//!
//! Slow on purpose: it reads every payload, which nothing else here does. For
//! tests and for a doctor.

use std::collections::HashMap;

use bytes::Bytes;
use gristmill_core::{Result, State, TaskId};

use crate::FilesStore;
use crate::errors::At;
use crate::held::Held;
use crate::load::by_folder;
use crate::persist::Sync;
use crate::spool::{CORRUPT, Spool};
use crate::{scan, snapshot, task_file};

/// Something that is not as it must be, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding(pub String);

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl FilesStore {
    /// Looks the folder over; nothing found is the good answer.
    ///
    /// # Errors
    /// When the folder cannot be read at all.
    pub async fn check(&self) -> Result<Vec<Finding>> {
        self.ask(Sync::Light, |desk| check(desk.held)).await
    }

    /// The names of what was set aside in `corrupt/`, because it could not be
    /// read or was no task's file.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub async fn set_aside(&self) -> Result<Vec<String>> {
        self.ask(Sync::Light, |desk| set_aside(&desk.held.spool)).await
    }
}

fn set_aside(spool: &Spool) -> Result<Vec<String>> {
    let folder = spool.at(CORRUPT);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).at(&folder)? {
        names.push(entry.at(&folder)?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

fn check(held: &Held) -> Result<Vec<Finding>> {
    let mut findings: Vec<Finding> = set_aside(&held.spool)?
        .into_iter()
        .map(|name| Finding(format!("{CORRUPT}/{name} was set aside: look at it, then delete it")))
        .collect();
    let found = scan::list(&held.spool)?;
    for path in found.foreign {
        findings.push(Finding(format!("{} is no task's file", path.display())));
    }
    let mut seen: HashMap<TaskId, State> = HashMap::new();
    for (state, id, path) in found.files {
        held.spool.disk.answers();
        let shown = path.display();
        if let Some(other) = seen.insert(id, state) {
            findings.push(Finding(format!("task {id} has files in {other}/ and {state}/")));
        }
        let bytes = Bytes::from(std::fs::read(&path).at(&path)?);
        let parsed = task_file::parse(&bytes, state)
            .and_then(|parsed| task_file::payload(&bytes, &parsed).map(|_| parsed))
            .and_then(|parsed| task_file::kept(&bytes, &parsed).map(|_| parsed));
        match parsed {
            Err(why) => findings.push(Finding(format!("{shown}: {why}"))),
            Ok(mut parsed) => {
                by_folder(&mut parsed.record);
                let said = held.ledger.task_record(id);
                let same = said.as_ref().is_some_and(|said| {
                    said.task.state == state
                        && task_file::digest(said) == task_file::digest(&parsed.record)
                });
                if !same {
                    findings.push(Finding(format!("{shown} says something else than the index")));
                }
            }
        }
    }
    for id in held.ledger.ids().filter(|id| !seen.contains_key(id)) {
        findings.push(Finding(format!("task {id} has no file")));
    }
    // What came of tasks has no files: it stands in the index and the state file.
    let ended = held.ledger.all_endings().filter(|(_, record)| !record.ending.is_open());
    for (id, _) in ended.filter(|(id, _)| {
        let standing = held.ledger.task_record(*id);
        standing.is_some_and(|record| record.task.state != State::Done)
    }) {
        findings.push(Finding(format!("what came of task {id} is kept and it stands")));
    }
    if let Err(error) = snapshot::check(&held.spool) {
        findings.push(Finding(error.whole().to_string()));
    }
    Ok(findings)
}
