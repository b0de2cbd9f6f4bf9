//! Journals: one append-only file a client, in a folder that is not on the store's
//! disk.
//!
//! One write a line and no buffer: what was written stands even when the process
//! is killed right after. The line of a call is written before the call is made,
//! the line of its answer after it was heard. So a call without an answer is known
//! to be unknown, and an answer that nobody wrote down acknowledged nothing.

use std::collections::{BTreeSet, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gristmill_core::TaskId;

use super::event::{Answer, Call, Fault, FaultKind, Line, Phase};

/// How the names of journals end.
const ENDING: &str = "jsonl";

/// A client's own file.
#[derive(Debug)]
pub struct Journal {
    file: File,
    name: String,
    last: AtomicU64,
}

impl Journal {
    /// Begins a journal of this name, or goes on with it: a client that comes back
    /// after a kill has another name.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn open(folder: &Path, name: &str) -> io::Result<Self> {
        let path = folder.join(format!("{name}.{ENDING}"));
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Journal { file, name: name.to_owned(), last: AtomicU64::new(0) })
    }

    /// Its name: whose journal it is.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes down what is about to be called. Returns its number.
    pub fn call(&self, call: Call) -> u64 {
        let n = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.write(&Line { call: Some(call), n, ..now() });
        n
    }

    /// Writes down what was answered.
    pub fn answer(&self, n: u64, answer: Answer) {
        self.write(&Line { answer: Some(answer), n, ..now() });
    }

    /// Writes down what was done to the system.
    pub fn fault(&self, kind: FaultKind, target: &str, phase: Phase, jump_ms: i64) {
        let fault = Fault { kind, target: target.to_owned(), phase, jump_ms };
        self.write(&Line { fault: Some(fault), ..now() });
    }

    /// A client that cannot write down what it does must not do it.
    fn write(&self, line: &Line) {
        let mut text = serde_json::to_string(line).expect("a line is JSON");
        text.push('\n');
        (&self.file).write_all(text.as_bytes()).expect("the journal can be written");
    }
}

/// An empty line of now.
fn now() -> Line {
    let steady = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let steady = Duration::try_from(steady).unwrap_or_default();
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Line {
        t: u64::try_from(steady.as_micros()).unwrap_or(u64::MAX),
        w: i64::try_from(wall.as_micros()).unwrap_or(i64::MAX),
        n: 0,
        call: None,
        answer: None,
        fault: None,
    }
}

/// A line and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Whose journal.
    pub who: usize,
    /// The line.
    pub line: Line,
}

/// Everything that was written down in a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct History {
    /// The journals' names.
    pub names: Vec<String>,
    /// All lines, by time.
    pub lines: Vec<Placed>,
}

impl History {
    /// Reads every journal of a folder. A line cut short by a kill is the last of
    /// its file and is left out: nothing after it happened.
    ///
    /// # Errors
    /// When a file cannot be read, or a line in it is none.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == ENDING) {
                files.push(path);
            }
        }
        files.sort();
        let mut history = History::default();
        for path in files {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path)?;
            history.add(&name, &text).map_err(|why| {
                io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", path.display()))
            })?;
        }
        history.sort();
        Ok(history)
    }

    /// Adds the lines of one journal.
    ///
    /// # Errors
    /// Which line is none, and why.
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), String> {
        let who = self.names.len();
        self.names.push(name.to_owned());
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for (number, line) in whole.lines().enumerate() {
            let line = serde_json::from_str(line)
                .map_err(|error| format!("line {}: {error}: {line}", number + 1))?;
            self.lines.push(Placed { who, line });
        }
        Ok(())
    }

    /// Brings the lines in the order of time; those of one journal keep theirs.
    pub fn sort(&mut self) {
        self.lines.sort_by_key(|placed| placed.line.t);
    }

    /// The tasks of a queue that claims were given.
    #[must_use]
    pub fn given(&self, of: &str) -> Vec<TaskId> {
        let is_of = |call: &Call| matches!(call, Call::Claim { queue, .. } if queue == of);
        let calls: HashSet<(usize, u64)> = (self.lines.iter())
            .filter(|placed| placed.line.call.as_ref().is_some_and(is_of))
            .map(|placed| (placed.who, placed.line.n))
            .collect();
        let mut given = BTreeSet::new();
        for placed in &self.lines {
            if let Some(Answer::Claim { tasks, .. }) = &placed.line.answer
                && calls.contains(&(placed.who, placed.line.n))
            {
                given.extend(tasks.iter().map(|task| TaskId(task.task)));
            }
        }
        given.into_iter().collect()
    }

    /// A line for people: when, who, what.
    #[must_use]
    pub fn told(&self, index: usize) -> String {
        let Some(placed) = self.lines.get(index) else { return String::new() };
        let start = self.lines.first().map_or(0, |first| first.line.t);
        let at = placed.line.t.saturating_sub(start);
        let json = |value: Result<String, serde_json::Error>| value.unwrap_or_default();
        let said = match (&placed.line.call, &placed.line.answer, &placed.line.fault) {
            (Some(call), _, _) => format!("calls {}", json(serde_json::to_string(call))),
            (_, Some(answer), _) => format!("hears {}", json(serde_json::to_string(answer))),
            (_, _, Some(fault)) => format!("does {}", json(serde_json::to_string(fault))),
            _ => "says nothing".to_owned(),
        };
        let (who, n) = (&self.names[placed.who], placed.line.n);
        format!("{:>12.6} s  {who} #{n} {said}", Duration::from_micros(at).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_in_order_of_time_without_a_torn_end() {
        let folder = std::env::temp_dir().join(format!("journal-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let one = Journal::open(&folder, "one").unwrap();
        let n = one.call(Call::Sweep {});
        Journal::open(&folder, "two").unwrap().fault(FaultKind::Kill, "one", Phase::Whole, 0);
        one.answer(n, Answer::Fine);
        let mut torn = OpenOptions::new().append(true).open(folder.join("two.jsonl")).unwrap();
        torn.write_all(b"{\"t\":9,").unwrap();
        let history = History::read(&folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(history.names, ["one", "two"]);
        let who: Vec<usize> = history.lines.iter().map(|placed| placed.who).collect();
        assert_eq!(who, [0, 1, 0]);
        assert!(history.told(0).contains("one #1 calls"), "{}", history.told(0));
        assert!(history.told(1).contains("kill"), "{}", history.told(1));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        let error = History::default().add("x", "{\"t\":1,\"w\":1}\nnonsense\n").unwrap_err();
        assert!(error.starts_with("line 2"), "{error}");
    }
}
