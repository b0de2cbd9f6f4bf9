//! Mistakes in a file, each with its place and an excerpt.

use std::fmt::Write as _;

use super::excerpt::excerpt;
use super::tree::Node;

/// Most mistakes that are told; whoever has more starts with these.
const TOLD: usize = 100;

/// What is wrong with a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mistakes(Vec<Mistake>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mistake {
    line: u64,
    column: u64,
    what: String,
}

impl Mistakes {
    /// Adds one that stands at a value.
    pub fn add(&mut self, at: &Node, what: String) {
        self.add_at(at.line, at.column, what);
    }

    /// Adds one by its line and column, both counted from 1.
    pub fn add_at(&mut self, line: u64, column: u64, what: String) {
        self.0.push(Mistake { line, column, what });
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// All of them in the order of the file: `file:line:column: what`, with
    /// the line itself below.
    #[must_use]
    pub fn shown(&self, file: &str, text: &str) -> String {
        let mut sorted: Vec<&Mistake> = self.0.iter().collect();
        sorted.sort_by_key(|mistake| (mistake.line, mistake.column));
        let mut shown = String::new();
        for (position, Mistake { line, column, what }) in sorted.iter().take(TOLD).enumerate() {
            if position > 0 {
                shown.push('\n');
            }
            // Writing to a string cannot fail.
            let _ = write!(shown, "{file}:{line}:{column}: {what}");
            if let Some(excerpt) = excerpt(text, *line, *column) {
                let _ = write!(shown, "\n{excerpt}");
            }
        }
        if let Some(more) = sorted.len().checked_sub(TOLD).filter(|more| *more > 0) {
            let _ = write!(shown, "\n{file}: and {more} more");
        }
        shown
    }
}
