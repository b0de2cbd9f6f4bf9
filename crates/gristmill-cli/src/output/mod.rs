//! What a command shows: tables and sentences for people, JSON for programs.

pub(crate) mod table;
pub(crate) mod task;
pub(crate) mod time;

use std::fmt::Display;
use std::io::Write;

use serde::Serialize;

use crate::failure::{Exit, Failure};
use crate::stderr;

/// Where answers go. Errors and progress go to standard error instead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// For programs.
    pub(crate) json: bool,
}

impl Output {
    /// Writes one line as it is.
    pub(crate) fn line(self, line: impl Display) -> Result<(), Failure> {
        // Not println!: it panics when the reader has gone away.
        writeln!(std::io::stdout().lock(), "{line}")
            .map_err(|error| Failure::io("standard output", &error))
    }

    /// A value as JSON, to be a part of something larger.
    pub(crate) fn text(self, value: &impl Serialize) -> Result<String, Failure> {
        text(value)
    }

    /// Writes bytes as they are.
    pub(crate) fn bytes(self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        let written = out.write_all(bytes).and_then(|()| out.flush());
        written.map_err(|error| Failure::io("standard output", &error))
    }

    /// Writes one line of JSON.
    pub(crate) fn value(self, value: &impl Serialize) -> Result<(), Failure> {
        self.line(text(value)?)
    }

    /// Writes one line of JSON a value, all in one go.
    pub(crate) fn values(self, values: &[impl Serialize]) -> Result<(), Failure> {
        let lines = values.iter().map(text).collect::<Result<Vec<_>, _>>()?;
        self.line(lines.join("\n"))
    }

    /// Says something beside the answer, on standard error.
    pub(crate) fn warn(self, warning: &str) {
        // The answer itself is not lost when this is.
        stderr::say(format_args!("gristmill: {warning}"));
    }

    /// Writes the JSON for programs or the sentence for people.
    pub(crate) fn either(self, json: &impl Serialize, text: impl Display) -> Result<(), Failure> {
        if self.json { self.value(json) } else { self.line(text) }
    }
}

fn text(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|error| Failure::new(Exit::Wrong, "wrong", error.to_string()))
}

/// `1 task`, `2 tasks`.
pub(crate) fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// The last line of a text that is not empty. What a program said last is why it
/// ended: a Python traceback begins with the same words every time.
pub(crate) fn last_line(text: &str) -> &str {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// The beginning of a text, on one line.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let mut line: String =
        text.chars().take(most + 1).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.chars().count() > most {
        line = line.chars().take(most.saturating_sub(1)).collect();
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_last_that_says_something() {
        let python = "Traceback (most recent call last):\n  File \"x\"\nKeyError: 'to'\n\n";
        assert_eq!(last_line(python), "KeyError: 'to'");
        assert_eq!(last_line("alone"), "alone");
        assert_eq!(last_line("\n \n"), "");
    }

    #[test]
    fn texts_are_cut_to_one_line() {
        assert_eq!(cut("a\nb", 10), "a b");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(cut("\u{1b}[31mred", 20), " [31mred");
    }
}
