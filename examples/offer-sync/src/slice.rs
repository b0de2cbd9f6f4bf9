//! Which rows a batch takes: pure arithmetic, the heart of the matter.

use std::fmt;

use gristmill::Context;

use crate::error::{Error, Result};

/// How a batch task finds its part of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum By {
    /// What is not synced yet: first the share that goes with the batch's slot, by a
    /// hash, then what is left of the others'. Every offer is synced once.
    #[value(alias = "hash")]
    Share,
    /// Rows by offset, with a number that no other running batch has: for rows that
    /// are looked at again and again.
    Slot,
    /// Rows by offset, with the number of others that run: simple, and overlaps once
    /// the first of them has finished.
    Count,
}

impl By {
    /// The number that tells a batch its slice.
    pub(crate) fn number(self, context: &Context) -> Result<u32> {
        match self {
            By::Count => context.concurrent,
            By::Slot | By::Share => context.slot,
        }
        .ok_or_else(|| Error::from("the queue neither counts nor has slots"))
    }
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
