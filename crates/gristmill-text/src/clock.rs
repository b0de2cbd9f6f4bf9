//! What the last writer saw of the time, as text.

use std::time::Duration;

use gristmill_core::policy::reclaim_guard::LastSeen;
use gristmill_core::{Boot, Timestamp};
use serde::{Deserialize, Serialize};

use crate::stored::micros;

/// The mirror of what was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastSeenText {
    wall: i64,
    boot: Option<(String, u64)>,
    jumped: Option<u64>,
}

impl LastSeenText {
    /// As it is stored.
    #[must_use]
    pub fn new(seen: &LastSeen) -> Self {
        LastSeenText {
            wall: seen.wall.as_micros(),
            boot: seen.boot.as_ref().map(|boot| (boot.id.clone(), micros(boot.since))),
            jumped: seen.jumped.map(micros),
        }
    }

    /// As it was.
    #[must_use]
    pub fn into_last_seen(self) -> LastSeen {
        let boot = self.boot.map(|(id, since)| Boot { id, since: Duration::from_micros(since) });
        LastSeen {
            wall: Timestamp::from_micros(self.wall),
            boot,
            jumped: self.jumped.map(Duration::from_micros),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_read_back() {
        let boot = Some(Boot { id: "b".to_owned(), since: Duration::from_secs(2) });
        let jumped = Some(Duration::from_secs(1));
        let seen = LastSeen { wall: Timestamp::from_micros(7), boot, jumped };
        let text = serde_json::to_string(&LastSeenText::new(&seen)).unwrap();
        assert_eq!(text, r#"{"wall":7,"boot":["b",2000000],"jumped":1000000}"#);
        let read: LastSeenText = serde_json::from_str(&text).unwrap();
        assert_eq!(read.into_last_seen(), seen);
    }
}
