//! How far an attempt is, as its handler says: for people to look at, and nothing
//! decides by it.

use std::fmt;
use std::str::FromStr;

use crate::limits::cut;
use crate::{TaskId, Timestamp};

/// The largest number that every surface can say, JSON's among them.
const MOST: u64 = (1 << 53) - 1;

/// How far an attempt is: so many of so many, and a few words.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Progress {
    done: u64,
    total: Option<u64>,
    message: String,
}

impl Progress {
    /// Most bytes of a message; what is longer loses its end.
    pub const MESSAGE_BYTES: usize = 256;

    /// So many done of so many, where that is known. The message is one line: what
    /// ends lines is a space.
    #[must_use]
    pub fn new(done: u64, total: Option<u64>, message: &str) -> Self {
        // Cut first: who tells it again and again may have a long one.
        let message: String = cut(message.trim(), Self::MESSAGE_BYTES)
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        // Again at both ends: what ended lines is a space now, and what is read back must
        // be what was said.
        let message = cut(&message, Self::MESSAGE_BYTES).trim().to_owned();
        Progress { done: done.min(MOST), total: total.map(|total| total.min(MOST)), message }
    }

    /// How many are done.
    #[must_use]
    pub const fn done(&self) -> u64 {
        self.done
    }

    /// Of how many, where that is known.
    #[must_use]
    pub const fn total(&self) -> Option<u64> {
        self.total
    }

    /// What was said about it; empty where nothing was.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How much of it is done, in whole percent and at most 100; nothing where nobody
    /// knows how much there is.
    #[must_use]
    pub fn percent(&self) -> Option<u8> {
        let total = self.total.filter(|total| *total > 0)?;
        u8::try_from(self.done.saturating_mul(100) / total).ok().map(|p| p.min(100)).or(Some(100))
    }
}

/// As it is read back: `12/100 rows`, `12 rows`, or the words alone.
impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = if self.message.is_empty() { "" } else { " " };
        match (self.done, self.total) {
            (done, Some(total)) => write!(f, "{done}/{total}{words}{}", self.message),
            (0, None) if !self.message.is_empty() => f.write_str(&self.message),
            (done, None) => write!(f, "{done}{words}{}", self.message),
        }
    }
}

/// `12/100 rows`, `40% fetched`, `12 rows`, or words alone.
impl FromStr for Progress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        if let Some(percent) = first.strip_suffix('%').and_then(|number| number.parse().ok()) {
            return Ok(Progress::new(percent, Some(100), rest));
        }
        if let Ok(done) = first.parse() {
            return Ok(Progress::new(done, None, rest));
        }
        let of = first.split_once('/').map(|(done, total)| (done.parse(), total.parse()));
        match of {
            Some((Ok(done), Ok(total))) => Ok(Progress::new(done, Some(total), rest)),
            _ if text.is_empty() => {
                Err("it is empty: say '12/100 rows', '40% fetched' or '12 rows'".to_owned())
            }
            _ => Ok(Progress::new(0, None, text)),
        }
    }
}

/// How far one task of a claim is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskProgress {
    /// The task.
    pub id: TaskId,
    /// How far it is.
    pub progress: Progress,
}

/// How far a running attempt is, as readers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressView {
    /// What its handler said last.
    pub progress: Progress,
    /// When the store heard of it.
    pub at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_is_written() {
        for (text, done, total, message, again) in [
            ("12/100 rows", 12, Some(100), "rows", "12/100 rows"),
            (" 12/100\n", 12, Some(100), "", "12/100"),
            (
                "40% of it\tdone\nand more",
                40,
                Some(100),
                "of it done and more",
                "40/100 of it done and more",
            ),
            ("12", 12, None, "", "12"),
            ("12 rows", 12, None, "rows", "12 rows"),
            ("0", 0, None, "", "0"),
            ("fetching 3/4", 0, None, "fetching 3/4", "fetching 3/4"),
            ("-1/4 of it", 0, None, "-1/4 of it", "-1/4 of it"),
            ("1/", 0, None, "1/", "1/"),
            ("3/4 \u{1}\u{7f} rows", 3, Some(4), "rows", "3/4 rows"),
        ] {
            let read: Progress = text.parse().unwrap();
            assert_eq!((read.done, read.total, read.message()), (done, total, message), "{text}");
            assert_eq!(read.to_string(), again);
            assert_eq!(again.parse::<Progress>().unwrap().to_string(), again);
        }
        assert!(" \n".parse::<Progress>().is_err());
    }

    #[test]
    fn percent_is_of_a_known_total_and_never_more_than_all() {
        let percent = |done, total| Progress::new(done, total, "").percent();
        assert_eq!(percent(1, Some(3)), Some(33));
        assert_eq!(percent(999, Some(1000)), Some(99));
        assert_eq!(percent(7, Some(3)), Some(100));
        assert_eq!(percent(u64::MAX, Some(u64::MAX)), Some(100));
        assert_eq!(percent(5, Some(0)), None);
        assert_eq!(percent(5, None), None);
    }

    #[test]
    fn a_message_is_one_short_line() {
        let progress = Progress::new(0, None, &format!("  a\0b\r\n{}", "ä".repeat(300)));
        assert!(progress.message().starts_with("a b  ä"), "{progress}");
        assert!(progress.message().len() <= Progress::MESSAGE_BYTES);
        assert!(progress.message().len() > Progress::MESSAGE_BYTES - 4);
    }
}
