//! Lines of code, broken where `rustfmt` breaks them.

/// The longest line.
const WIDTH: usize = 100;
/// The widest array, arguments or chain of calls in one line.
const NARROW: usize = 60;

/// Code that is being written.
#[derive(Debug, Default)]
pub(super) struct Code(String);

impl Code {
    /// Adds a line.
    pub(super) fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// Adds prose as doc comments, a line each.
    pub(super) fn doc(&mut self, indent: &str, prose: &str) {
        for line in prose.lines() {
            // A tab or an escape in prose stays prose.
            let plain: String =
                line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            self.line(format!("{indent}/// {plain}").trim_end());
        }
    }

    /// Adds a `use` of several names.
    pub(super) fn import(&mut self, path: &str, names: &[&str]) {
        let whole = format!("use {path}::{{{}}};", names.join(", "));
        if fits(&whole) {
            return self.line(&whole);
        }
        self.line(&format!("use {path}::{{"));
        let mut row = String::from("   ");
        for name in names {
            if row.len() + name.len() + 2 > WIDTH {
                self.line(&row);
                row = String::from("   ");
            }
            row.push(' ');
            row.push_str(name);
            row.push(',');
        }
        self.line(&row);
        self.line("};");
    }

    /// Adds an item of one line a statement; where a line, or a call in it, is
    /// too wide for that, the formatter is told to leave it. That takes names
    /// of over twenty letters.
    pub(super) fn item(&mut self, indent: &str, lines: &[String], calls: &[String]) {
        let narrow = calls.iter().all(|call| call.len() <= NARROW);
        if !narrow || !lines.iter().all(|line| fits(line)) {
            self.line(&format!("{indent}#[rustfmt::skip]"));
        }
        for line in lines {
            self.line(line);
        }
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// An array, in one line or one line an element. `head` may be indented;
/// elements are indented four more.
pub(super) fn array(head: &str, elements: &[String], tail: &str) -> Vec<String> {
    let inside = elements.join(", ");
    let whole = format!("{head}{inside}{tail}");
    if (inside.len() <= NARROW || elements.len() == 1) && fits(&whole) {
        return vec![whole];
    }
    let indent = " ".repeat(head.len() - head.trim_start().len());
    let mut lines = vec![head.to_owned()];
    lines.extend(elements.iter().map(|element| format!("{indent}    {element},")));
    lines.push(format!("{indent}{tail}"));
    lines
}

/// Whether it is short enough for one line.
pub(super) fn fits(line: &str) -> bool {
    line.chars().count() <= WIDTH
}

/// A text as a literal.
pub(super) fn literal(text: &str) -> String {
    format!("\"{}\"", text.escape_default())
}
