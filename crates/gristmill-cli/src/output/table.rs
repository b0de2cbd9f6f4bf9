//! Tables for people: plain columns, wrapped to the terminal, coloured only
//! where somebody looks.

use std::io::IsTerminal;

use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, Width,
    presets,
};

/// Tables are wrapped to terminals from this width on.
const NARROWEST: u16 = 60;

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
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
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
