//! Reading contracts: every file is checked whole, and every mistake is told
//! with its place.

mod field;
mod known;
mod queue;

use std::fmt;
use std::path::Path;

use crate::Contract;
use crate::yaml::{self, Fields, Mistakes};
use known::Known;

/// Longest file that is read.
const FILE_BYTES: u64 = 4 << 20;
/// Most queues of one file.
const QUEUES_MAX: usize = 1_000;

/// A contract's text and the name it is shown under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The file, as it was named.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// Why contracts cannot be used: every mistake, with an excerpt each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractError {
    shown: String,
    mistakes: usize,
}

impl ContractError {
    fn unreadable(what: String) -> Self {
        ContractError { shown: what, mistakes: 1 }
    }

    /// How many mistakes there are.
    #[must_use]
    pub fn mistakes(&self) -> usize {
        self.mistakes
    }
}

impl fmt::Display for ContractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl std::error::Error for ContractError {}

/// Reads and checks contracts that stand in one place: numbers and names are
/// unique among all of them.
///
/// # Errors
/// All mistakes of all files.
pub fn read(sources: &[Source]) -> Result<Contract, ContractError> {
    let mut contract = Contract::default();
    let mut known = Known::default();
    let mut told: Vec<String> = Vec::new();
    let mut count = 0;
    for source in sources {
        let mut mistakes = Mistakes::default();
        file(source, &mut contract, &mut known, &mut mistakes);
        if !mistakes.is_empty() {
            count += mistakes.count();
            told.push(mistakes.shown(&source.name, &source.text));
        }
    }
    if told.is_empty() {
        Ok(contract)
    } else {
        Err(ContractError { shown: told.join("\n"), mistakes: count })
    }
}

/// Reads and checks contract files.
///
/// # Errors
/// When one cannot be read, or all mistakes of all files.
pub fn read_files(paths: &[impl AsRef<Path>]) -> Result<Contract, ContractError> {
    let sources = paths.iter().map(|path| open(path.as_ref())).collect::<Result<Vec<_>, _>>()?;
    read(&sources)
}

/// Reads a contract file's text.
///
/// # Errors
/// When it cannot be read, is too large or is no text.
pub fn open(path: &Path) -> Result<Source, ContractError> {
    let name = path.display().to_string();
    let wrong = ContractError::unreadable;
    let size = std::fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => wrong(format!("there is no contract {name}")),
        _ => wrong(format!("{name} cannot be read: {error}")),
    })?;
    if size.is_dir() {
        return Err(wrong(format!("{name} is a folder: name a contract file")));
    }
    if size.len() > FILE_BYTES {
        return Err(wrong(format!("{name} is larger than {FILE_BYTES} bytes: split it")));
    }
    let bytes =
        std::fs::read(path).map_err(|error| wrong(format!("{name} cannot be read: {error}")))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| wrong(format!("{name} is not text in UTF-8: save it as such")))?;
    Ok(Source { name, text })
}

fn file(source: &Source, contract: &mut Contract, known: &mut Known, mistakes: &mut Mistakes) {
    let tree = match yaml::parse(&source.text) {
        Ok(tree) => tree,
        Err(broken) => {
            *mistakes = bracket(&source.text).unwrap_or(broken);
            return;
        }
    };
    let Some(mut top) = Fields::of(&tree, "a contract", mistakes) else { return };
    let queues = top.list("queues", mistakes);
    if queues.len() > QUEUES_MAX {
        let what = format!("{} queues are more than {QUEUES_MAX}: split the file", queues.len());
        mistakes.add(&tree, what);
        return;
    }
    known.enter(&source.name);
    for node in queues {
        if let Some(queue) = queue::read(node, known, mistakes) {
            contract.queues.push(queue);
        }
    }
    top.done(&["queues"], mistakes);
    if queues.is_empty() && mistakes.is_empty() {
        mistakes.add(&tree, "there are no queues: add one under 'queues:'".to_owned());
    }
}

/// `type: []int` is a list and then a word to YAML: the mistake everyone makes
/// once, and YAML's own sentence about it helps nobody.
fn bracket(text: &str) -> Option<Mistakes> {
    let mut mistakes = Mistakes::default();
    for (number, line) in (1u64..).zip(text.lines()) {
        for (at, _) in line.match_indices("type:") {
            let value = line.get(at + "type:".len()..).unwrap_or_default();
            let written = value.trim_start();
            if !written.starts_with("[]") {
                continue;
            }
            let end = written.find([',', '}', ' ', '#']).unwrap_or(written.len());
            let word = written.get(..end).unwrap_or(written);
            let before = line.len() - value.len() + (value.len() - written.len());
            let column = line.get(..before).unwrap_or_default().chars().count() as u64 + 1;
            let what = format!("a type that begins with '[' needs quotes: write \"{word}\"");
            mistakes.add_at(number, column, what);
        }
    }
    (!mistakes.is_empty()).then_some(mistakes)
}
