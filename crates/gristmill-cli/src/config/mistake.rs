//! Mistakes in the configuration, each with its place and an excerpt.

use std::fmt::Write as _;

use super::tree::Node;
use crate::output::cut;

/// What is wrong, in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct Mistakes(Vec<Mistake>);

#[derive(Debug)]
struct Mistake {
    line: u64,
    column: u64,
    what: String,
}

impl Mistakes {
    pub(crate) fn add(&mut self, at: &Node, what: String) {
        self.add_at(at.line, at.column, what);
    }

    pub(crate) fn add_at(&mut self, line: u64, column: u64, what: String) {
        self.0.push(Mistake { line, column, what });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// All of them, one after the other: `file:line:column: what`, with the
    /// line itself below.
    pub(crate) fn shown(&self, file: &str, text: &str) -> String {
        let mut sorted: Vec<&Mistake> = self.0.iter().collect();
        sorted.sort_by_key(|mistake| (mistake.line, mistake.column));
        let mut shown = String::new();
        for (position, Mistake { line, column, what }) in sorted.into_iter().enumerate() {
            if position > 0 {
                shown.push('\n');
            }
            // Writing to a string cannot fail.
            let _ = write!(shown, "{file}:{line}:{column}: {what}");
            let index = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
            if let Some(excerpt) = text.lines().nth(index).filter(|line| !line.trim().is_empty()) {
                let indent = usize::try_from(column.saturating_sub(1)).unwrap_or(0).min(119);
                let _ =
                    write!(shown, "\n{line:>5} | {}\n      | {:indent$}^", cut(excerpt, 120), "");
            }
        }
        shown
    }
}
