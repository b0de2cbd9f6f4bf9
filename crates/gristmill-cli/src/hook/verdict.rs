//! What an answer makes of its task.

use std::time::Duration;

use jiff::Timestamp;

/// Longest time that an answer may put a task off.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Most bytes of an answer that become a task's error.
const ERROR_BYTES: usize = 4096;

/// The head of an answer.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) retry_after: Option<String>,
    pub(super) date: Option<String>,
    pub(super) location: Option<String>,
}

/// What becomes of the task.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// With what was answered, which is the task's result.
    Done(Vec<u8>),
    /// Again after this time, or after the queue's backoff.
    Release(Option<Duration>),
    Fail(String),
    Error(String),
}

/// Decides by the status. `now` is read of our clock for an
/// answer that names an hour and not its own.
pub(super) fn of(head: &Head, body: &[u8], now: Timestamp) -> Verdict {
    let status = head.status;
    let shown = body.get(..body.len().min(ERROR_BYTES)).unwrap_or_default();
    let said = String::from_utf8_lossy(shown);
    let words = |what: &str| match said.trim() {
        "" => format!("HTTP {status}{what}"),
        said => format!("HTTP {status}{what}: {said}"),
    };
    match status {
        200..=299 => Verdict::Done(body.to_vec()),
        429 | 503 => Verdict::Release(wait(head, now)),
        410 | 422 => Verdict::Fail(words("")),
        300..=399 => {
            let to: String =
                head.location.as_deref().unwrap_or("nowhere").chars().take(200).collect();
            Verdict::Error(format!(
                "HTTP {status}: it leads to {to}, and no redirect is followed: name the URL that \
                 answers"
            ))
        }
        _ => Verdict::Error(words("")),
    }
}

/// How long an answer asks to wait: in seconds, or until an hour. Nothing where it does
/// not say, or says what cannot be read.
fn wait(head: &Head, now: Timestamp) -> Option<Duration> {
    let said = head.retry_after.as_deref()?.trim();
    let wait = match said.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let read = |text: &str| jiff::fmt::rfc2822::parse(text).ok().map(|at| at.timestamp());
            let until = read(said)?;
            // By its own clock, where it says what that shows.
            let from = head.date.as_deref().and_then(read).unwrap_or(now);
            Duration::try_from(until.duration_since(from)).unwrap_or_default()
        }
    };
    Some(wait.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(status: u16) -> Head {
        Head { status, ..Head::default() }
    }

    #[test]
    fn the_status_decides() {
        let of = |status| of(&head(status), b" no such item\n", Timestamp::UNIX_EPOCH);
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(of(status), Verdict::Done(b" no such item\n".to_vec()));
        }
        for status in [429, 503] {
            assert_eq!(of(status), Verdict::Release(None));
        }
        for status in [410, 422] {
            assert_eq!(of(status), Verdict::Fail(format!("HTTP {status}: no such item")));
        }
        for status in [400, 401, 404, 409, 500, 502, 504, 599, 999] {
            assert_eq!(of(status), Verdict::Error(format!("HTTP {status}: no such item")));
        }
        for status in [300, 301, 302, 304, 307, 308] {
            let Verdict::Error(why) = of(status) else { panic!("{status}") };
            assert!(why.contains("no redirect is followed"), "{why}");
        }
        let empty = super::of(&head(500), b" ", Timestamp::UNIX_EPOCH);
        assert_eq!(empty, Verdict::Error("HTTP 500".to_owned()));
    }

    #[test]
    fn an_answer_may_say_when_to_come_again() {
        let at = |text: &str| text.parse::<Timestamp>().expect(text);
        let now = at("2026-01-02T03:04:05Z");
        let wait = |retry_after: &str, date: Option<&str>| {
            let retry_after = Some(retry_after.to_owned());
            let head = Head { retry_after, date: date.map(str::to_owned), ..head(503) };
            let Verdict::Release(wait) = of(&head, b"", now) else { panic!("{head:?}") };
            wait.map(|wait| wait.as_secs())
        };
        assert_eq!(wait("120", None), Some(120));
        assert_eq!(wait(" 0 ", None), Some(0));
        assert_eq!(wait("Fri, 02 Jan 2026 03:05:05 GMT", None), Some(60));
        let date = "Fri, 02 Jan 2026 03:05:00 GMT";
        assert_eq!(wait("Fri, 02 Jan 2026 03:05:05 GMT", Some(date)), Some(5));
        assert_eq!(wait("Fri, 02 Jan 2026 03:00:00 GMT", None), Some(0), "it has passed");
        assert_eq!(wait("99999999999", None), Some(24 * 60 * 60), "no longer than a day");
        assert_eq!(wait("soon", None), None);
        assert_eq!(wait("-1", None), None);
    }
}
