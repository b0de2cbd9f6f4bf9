//! Which rows a batch takes: pure arithmetic, the heart of the matter.

use std::fmt;

/// How a batch task finds its part of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum By {
    /// By the number of others that run: simple, and overlaps once the first
    /// of them has finished.
    Count,
    /// By a number that no other running batch has.
    Slot,
    /// By that number and a hash, where processed rows leave the result.
    Hash,
}

/// A batch's part of rows that are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    /// The count or the slot.
    pub(crate) number: u32,
    /// Rows in a slice.
    pub(crate) limit: u32,
}

impl Slice {
    /// Rows before it.
    pub(crate) fn offset(self) -> u64 {
        u64::from(self.number) * u64::from(self.limit)
    }
}

/// As the rows are told: `101-200`.
impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.offset() + 1, self.offset() + u64::from(self.limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_numbers_are_three_slices() {
        let told: Vec<(u64, String)> = (0..3)
            .map(|number| Slice { number, limit: 100 })
            .map(|slice| (slice.offset(), slice.to_string()))
            .collect();
        let expected = [(0, "1-100"), (100, "101-200"), (200, "201-300")];
        assert_eq!(told, expected.map(|(offset, rows)| (offset, rows.to_owned())));
    }
}
