//! Tables for people: plain columns, wrapped to the terminal, coloured only
//! where somebody looks.

use std::io::IsTerminal;

use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Row, Table, Width,
    presets,
};

/// Tables are wrapped to terminals from this width on.
const NARROWEST: u16 = 60;
/// Words up to this length are not broken; keys may be longer than there is room.
const WHOLE: u16 = 12;

/// A table under these headings; a heading that begins with `>` stands over
/// numbers.
pub(crate) fn new(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let watched = std::io::stdout().is_terminal();
    // Some terminals do not know their width; a table squeezed into nothing
    // helps nobody.
    if watched && table.width().is_some_and(|width| width >= NARROWEST) {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    let said = |name: &str| std::env::var_os(name).unwrap_or_default();
    if !watched || !said("NO_COLOR").is_empty() || said("TERM") == "dumb" {
        table.force_no_tty();
    }
    table.set_header(
        headings.iter().map(|heading| {
            Cell::new(heading.trim_start_matches('>')).add_attribute(Attribute::Bold)
        }),
    );
    for (index, heading) in headings.iter().enumerate() {
        let Some(column) = table.column_mut(index) else { continue };
        column.set_padding((0, 2));
        // A heading is one word: it is no use in two.
        let word = u16::try_from(heading.trim_start_matches('>').len()).unwrap_or(u16::MAX);
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(word + 2)));
        if heading.starts_with('>') {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The table's lines without the blanks behind them.
pub(crate) fn text(table: &Table) -> String {
    let mut table = table.clone();
    // Where there is little room the last column, which has the longest texts, gives way,
    // and others break between words.
    let words: Vec<u16> = (0..table.column_count().saturating_sub(1))
        .map(|at| table.row_iter().map(|row| longest_word(row, at)).max().unwrap_or_default())
        .collect();
    for (at, word) in words.into_iter().enumerate() {
        let Some(column) = table.column_mut(at) else { continue };
        let least = match column.constraint() {
            Some(ColumnConstraint::LowerBoundary(Width::Fixed(heading))) => *heading,
            _ => 0,
        };
        let least = least.max(word.min(WHOLE) + 2);
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

fn longest_word(row: &Row, at: usize) -> u16 {
    let cell = row.cell_iter().nth(at).map(Cell::content).unwrap_or_default();
    let longest = cell.split_whitespace().map(|word| word.chars().count()).max();
    u16::try_from(longest.unwrap_or_default()).unwrap_or(u16::MAX)
}

/// A number that deserves a look when it is not zero.
pub(crate) fn alarming(number: u64) -> Cell {
    let cell = Cell::new(number);
    if number > 0 { cell.fg(Color::Red) } else { cell }
}

/// A word that explains why nothing moves.
pub(crate) fn warning(text: &str) -> Cell {
    Cell::new(text).fg(Color::Yellow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_narrow_terminal_no_word_is_broken_but_in_the_last_column() {
        let mut table = new(&[">id", "queue", "state", "runs", "payload"]);
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(50);
        table.add_row(["7", "thumbnails", "processing", "45.3s ago", "a-long-name-of-a-file.jpg"]);
        let shown = text(&table);
        for whole in ["thumbnails", "processing", "45.3s"] {
            assert!(shown.contains(whole), "{whole} is broken in\n{shown}");
        }
        assert!(shown.lines().all(|line| line.chars().count() <= 50), "{shown}");
    }
}
