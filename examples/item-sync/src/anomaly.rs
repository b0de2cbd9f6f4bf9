//! Whether an item's newest price is out of the ordinary.

/// Earlier prices that the newest one is compared with.
pub(crate) const WINDOW: u32 = 20;
/// With fewer earlier prices nothing can be said.
const LEAST: usize = 3;
/// Standard deviations from the mean that make an anomaly.
const LIMIT: f64 = 3.0;
/// The least deviation assumed, as a share of the mean: where a price hardly
/// moved so far, a cent more is no anomaly.
const FLOOR: f64 = 0.02;

/// How far out a price is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Anomaly {
    /// The mean of the earlier prices, in cents.
    pub(crate) mean_cents: f64,
    /// Standard deviations from it, negative below.
    pub(crate) deviations: f64,
}

/// Compares the newest price with those before it, in cents, oldest first.
pub(crate) fn anomaly(earlier: &[i64], newest: i64) -> Option<Anomaly> {
    if earlier.len() < LEAST {
        return None;
    }
    let count = earlier.len() as f64;
    let mean = earlier.iter().map(|price| *price as f64).sum::<f64>() / count;
    let square = earlier.iter().map(|price| (*price as f64 - mean).powi(2)).sum::<f64>();
    // A free item has no floor; a cent is the smallest difference there is.
    let deviation = (square / (count - 1.0)).sqrt().max(FLOOR * mean).max(1.0);
    let deviations = (newest as f64 - mean) / deviation;
    (deviations.abs() > LIMIT).then_some(Anomaly { mean_cents: mean, deviations })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_prices_say_nothing() {
        assert_eq!(anomaly(&[], 100), None);
        assert_eq!(anomaly(&[100, 101], 100_000), None);
    }

    #[test]
    fn a_price_in_the_usual_range_is_none() {
        assert_eq!(anomaly(&[100, 110, 90, 105], 112), None);
    }

    #[test]
    fn a_jump_is_one_in_either_direction() {
        let up = anomaly(&[100, 110, 90, 105], 250).expect("an anomaly");
        assert!(up.deviations > 3.0 && (up.mean_cents - 101.25).abs() < 1e-9, "{up:?}");
        let down = anomaly(&[1_000, 1_010, 990], 500).expect("an anomaly");
        assert!(down.deviations < -3.0, "{down:?}");
    }

    #[test]
    fn a_price_that_stood_still_may_move_a_little() {
        assert_eq!(anomaly(&[1_000; 5], 1_050), None);
        assert!(anomaly(&[1_000; 5], 1_070).is_some());
        assert_eq!(anomaly(&[0; 5], 3), None);
        assert!(anomaly(&[0; 5], 4).is_some());
    }
}
