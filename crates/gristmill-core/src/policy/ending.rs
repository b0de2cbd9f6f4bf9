//! For how long a task's end is kept for reading.

use std::time::Duration;

use crate::{Ending, Settings};

/// How long the end of a task is kept that somebody waits for, whatever its queue
/// says.
pub const WANTED_KEPT: Duration = Duration::from_secs(600);

/// How often it is looked whether a task that somebody waits for still stands:
/// nobody is told of one that went with its subject.
pub const WANTED_LOOKED: Duration = Duration::from_secs(3600);

/// For how long an ending is kept of its own, if at all. What is kept of a task
/// without a value stands with the task where its queue keeps done ones.
#[must_use]
pub fn kept(settings: &Settings, wanted: bool, ending: &Ending) -> Option<Duration> {
    let for_who_waits = wanted.then_some(WANTED_KEPT);
    let Ending::Done { value } = ending else {
        return for_who_waits;
    };
    let with_the_task = settings.keep_done.filter(|_| value.is_some());
    for_who_waits.max(settings.keep_result.or(with_the_task))
}

/// The longest that any ending of a queue is kept.
#[must_use]
pub fn longest(settings: &Settings) -> Duration {
    let said = settings.keep_result.or(settings.keep_done).unwrap_or_default();
    said.max(WANTED_LOOKED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Payload;

    fn settings(keep_done: Option<u64>, keep_result: Option<u64>) -> Settings {
        let keep_done = keep_done.map(Duration::from_secs);
        let keep_result = keep_result.map(Duration::from_secs);
        Settings { keep_done, keep_result, ..Settings::default() }
    }

    #[test]
    fn what_is_wanted_is_kept_ten_minutes_whatever_the_queue_says() {
        let all = [Ending::Done { value: None }, Ending::Cancelled, Ending::Discarded];
        for ending in all {
            assert_eq!(kept(&settings(None, None), true, &ending), Some(WANTED_KEPT));
            assert_eq!(kept(&settings(None, None), false, &ending), None);
        }
    }

    #[test]
    fn keep_result_is_said_alone_or_in_place_of_keep_done() {
        let value = Ending::Done { value: Some(Payload::json("1".to_owned())) };
        let none = Ending::Done { value: None };
        let for_ = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(kept(&settings(Some(9_000), None), false, &value), for_(9_000));
        // The task itself stands there.
        assert_eq!(kept(&settings(Some(9_000), None), false, &none), None);
        assert_eq!(kept(&settings(Some(9_000), Some(7_000)), false, &value), for_(7_000));
        assert_eq!(kept(&settings(None, Some(7_000)), false, &none), for_(7_000));
        assert_eq!(kept(&settings(None, Some(7)), true, &none), Some(WANTED_KEPT));
        assert_eq!(kept(&settings(None, Some(7)), false, &Ending::Cancelled), None);
    }
}
