//! The trend of an item's price: where its last changes point.

/// Prices that are looked at.
pub(crate) const WINDOW: u32 = 10;
/// A slope below this share of the mean price, a change, is no direction.
const FLAT: f64 = 0.005;

/// Where prices point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Rising,
    Falling,
    Flat,
}

impl Direction {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Direction::Rising => "rising",
            Direction::Falling => "falling",
            Direction::Flat => "flat",
        }
    }
}

/// A line laid through prices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Trend {
    pub(crate) direction: Direction,
    /// Cents from one change to the next.
    pub(crate) slope_cents: f64,
    /// How many prices it rests on.
    pub(crate) prices: u32,
}

/// The least-squares line through prices in cents, oldest first. One price
/// points nowhere.
pub(crate) fn trend(prices: &[i64]) -> Option<Trend> {
    if prices.len() < 2 {
        return None;
    }
    let count = prices.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let mean = prices.iter().map(|price| *price as f64).sum::<f64>() / count;
    let (mut along, mut square) = (0.0, 0.0);
    for (at, price) in prices.iter().enumerate() {
        let step = at as f64 - middle;
        along += step * (*price as f64 - mean);
        square += step * step;
    }
    let slope_cents = along / square;
    // Prices that are all zero have a slope of zero as well.
    let share = if mean > 0.0 { slope_cents / mean } else { 0.0 };
    let direction = match share {
        share if share > FLAT => Direction::Rising,
        share if share < -FLAT => Direction::Falling,
        _ => Direction::Flat,
    };
    let prices = u32::try_from(prices.len()).unwrap_or(u32::MAX);
    Some(Trend { direction, slope_cents, prices })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direction(prices: &[i64]) -> Option<Direction> {
        trend(prices).map(|trend| trend.direction)
    }

    #[test]
    fn one_price_points_nowhere() {
        assert_eq!(trend(&[]), None);
        assert_eq!(trend(&[100]), None);
    }

    #[test]
    fn a_straight_line_gives_its_own_slope() {
        let found = trend(&[100, 110, 120, 130]).expect("a trend");
        assert!((found.slope_cents - 10.0).abs() < 1e-9, "{found:?}");
        assert_eq!((found.direction, found.prices), (Direction::Rising, 4));
        assert_eq!(direction(&[130, 120, 110]), Some(Direction::Falling));
    }

    #[test]
    fn one_outlier_does_not_turn_the_line() {
        assert_eq!(direction(&[100, 110, 90, 120, 130]), Some(Direction::Rising));
    }

    #[test]
    fn what_moves_by_a_trifle_is_flat() {
        assert_eq!(direction(&[10_000, 10_010, 10_005]), Some(Direction::Flat));
        assert_eq!(direction(&[100, 200, 200, 100]), Some(Direction::Flat));
        assert_eq!(direction(&[0, 0, 0]), Some(Direction::Flat));
    }
}
