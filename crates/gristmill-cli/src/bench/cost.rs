//! What a task costs the server beside time, ours beside bare.

use super::{Rounds, median};

/// One measured cost; less is better.
#[derive(Debug, Clone)]
pub(crate) struct Cost {
    /// What was counted.
    pub(crate) name: String,
    /// Of what, such as bytes a task.
    pub(crate) unit: &'static str,
    /// Ours.
    pub(crate) ours: f64,
    /// Of bare statements.
    pub(crate) bare: f64,
    /// Ours over bare, where bare has any.
    pub(crate) ratio: Option<f64>,
    /// In words.
    pub(crate) what: &'static str,
}

impl Cost {
    /// The medians of the rounds.
    pub(super) fn against(
        name: String,
        unit: &'static str,
        what: &'static str,
        rounds: Rounds,
    ) -> Self {
        let (ours, bare): (Vec<f64>, Vec<f64>) = rounds.pairs.iter().copied().unzip();
        let ratios: Vec<f64> =
            rounds.pairs.iter().filter(|(_, bare)| *bare > 0.0).map(|(o, b)| o / b).collect();
        let ratio = (!ratios.is_empty()).then(|| median(ratios));
        Cost { name, unit, ours: median(ours), bare: median(bare), ratio, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_that_bare_statements_do_not_have_has_no_ratio() {
        let none = Cost::against("x".to_owned(), "x", "x", Rounds { pairs: vec![(3.0, 0.0)] });
        assert_eq!((none.ours, none.bare, none.ratio), (3.0, 0.0, None));
        let pairs = vec![(1.0, 2.0), (3.0, 2.0), (4.0, 2.0)];
        let some = Cost::against("x".to_owned(), "x", "x", Rounds { pairs });
        assert_eq!((some.ours, some.bare, some.ratio), (3.0, 2.0, Some(1.5)));
    }
}
