//! For how long a store keeps the minutes of its queues: a week, unless somebody said
//! otherwise in a document of the store's own, so that all its processes keep to it.

use std::time::Duration;

use crate::stats::MINUTES_KEPT;
use crate::{Document, DocumentChange, Expects};

/// The kind of the document that says it.
pub const KIND: &str = "keep";
/// Its name. Its body is a whole number of seconds.
pub const MINUTES: &str = "minutes";

/// The least and the most that is kept, whatever is said: charts want a day, and a quarter
/// of a year is 129,600 minutes a queue.
pub const LEAST: Duration = Duration::from_secs(24 * 3600);
/// See [`LEAST`].
pub const MOST: Duration = Duration::from_secs(90 * 24 * 3600);

/// How far back minutes are kept, by what the document says, if there is one. One that
/// nobody can read says nothing.
#[must_use]
pub fn minutes_kept(said: Option<&str>) -> Duration {
    // As the SQL functions read it: up to nine digits and nothing else.
    let is_number = |said: &&str| said.len() <= 9 && said.bytes().all(|byte| byte.is_ascii_digit());
    let digits = said.filter(is_number);
    let seconds = digits.and_then(|digits| digits.parse::<u32>().ok());
    seconds.map_or(MINUTES_KEPT, |s| Duration::from_secs(s.into()).clamp(LEAST, MOST))
}

/// What makes the document say so; `None` when it does already.
#[must_use]
pub fn change(standing: Option<&Document>, kept: Duration) -> Option<DocumentChange> {
    let body = kept.clamp(LEAST, MOST).as_secs().to_string();
    if standing.is_some_and(|document| document.body == body) {
        return None;
    }
    Some(DocumentChange::new(KIND, MINUTES, Expects::from(standing), Some(body)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DocumentAnswer, Timestamp};

    const DAY: Duration = Duration::from_secs(24 * 3600);

    #[test]
    fn what_cannot_be_read_says_nothing_and_nothing_goes_beyond_the_bounds() {
        for said in [None, Some(""), Some("-1"), Some("+1"), Some("7d"), Some("4000000000")] {
            assert_eq!(minutes_kept(said), MINUTES_KEPT, "{said:?}");
        }
        assert_eq!(minutes_kept(Some("259200")), 3 * DAY);
        assert_eq!(minutes_kept(Some("0")), LEAST);
        assert_eq!(minutes_kept(Some("999999999")), MOST);
    }

    #[test]
    fn a_change_is_made_where_something_else_stands() {
        let first = change(None, 3 * DAY).expect("a change");
        assert_eq!((first.expects, first.body.as_deref()), (Expects::Absent, Some("259200")));
        let DocumentAnswer::Saved(standing) = first.apply(None, None, Timestamp::EPOCH, |_| None)
        else {
            panic!("it is refused");
        };
        assert_eq!(minutes_kept(Some(&standing.body)), 3 * DAY);
        assert_eq!(change(Some(&standing), 3 * DAY), None);
        let next = change(Some(&standing), Duration::MAX).expect("a change");
        assert_eq!((next.expects, next.body.as_deref()), (Expects::Version(1), Some("7776000")));
    }
}
