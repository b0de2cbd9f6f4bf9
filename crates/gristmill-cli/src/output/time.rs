//! Instants as people read them: how long ago, or in how long.

use gristmill::Timestamp;
use gristmill::port::{Clock, SystemClock};

use gristmill_contract::duration;

/// Now, by this machine's clock. Only for showing: the store's clock decides.
pub(crate) fn now() -> Timestamp {
    SystemClock::default().now()
}

/// `in 5s`, `in 430ms`, `2m ago` or `now`.
pub(crate) fn relative(instant: Timestamp, now: Timestamp) -> String {
    let (ahead, behind) = (instant.since(now), now.since(instant));
    if ahead.as_millis() >= 10 {
        format!("in {}", duration::show(ahead))
    } else if behind.as_millis() >= 1_000 {
        format!("{} ago", duration::show(behind))
    } else {
        "now".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn both_directions() {
        let now = Timestamp::from_micros(1_000_000_000_000);
        assert_eq!(relative(now.after(Duration::from_secs(5)), now), "in 5s");
        assert_eq!(relative(now.before(Duration::from_secs(120)), now), "2m ago");
        assert_eq!(relative(now.after(Duration::from_millis(430)), now), "in 430ms");
        assert_eq!(relative(now.before(Duration::from_millis(430)), now), "now");
        assert_eq!(relative(now, now), "now");
    }
}
