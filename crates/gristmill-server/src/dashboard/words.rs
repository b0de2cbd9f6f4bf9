//! Numbers, spans and instants as people read them.

use std::time::Duration;

use gristmill::Timestamp;
use gristmill_contract::duration;
use maud::{Markup, html};

/// A number with its thousands apart.
pub(crate) fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of something.
pub(crate) fn counted(n: u64, what: &str) -> String {
    format!("{} {what}{}", number(n), if n == 1 { "" } else { "s" })
}

/// A span in at most two units.
pub(crate) fn span(span: Duration) -> String {
    if span < Duration::from_millis(1) {
        return "0s".to_owned();
    }
    duration::show(span)
}

/// A span of which parts of a second tell nothing.
pub(crate) fn age(age: Duration) -> String {
    if age < Duration::from_secs(1) {
        return "0s".to_owned();
    }
    duration::show(Duration::from_secs(age.as_secs()))
}

/// An instant as people look for it: how far it is from now, and exactly on asking.
pub(crate) fn instant(at: Timestamp, now: Timestamp) -> Markup {
    let words = if at > now {
        format!("in {}", age(at.since(now)))
    } else {
        let age = now.since(at);
        if age < Duration::from_secs(1) {
            "just now".to_owned()
        } else {
            format!("{} ago", self::age(age))
        }
    };
    html! { time datetime=(at) title=(at) { (words) } }
}

/// An instant that somebody waits for: where there are scripts, they count it down.
pub(crate) fn countdown(at: Timestamp, now: Timestamp) -> Markup {
    if at <= now {
        return instant(at, now);
    }
    let left = at.since(now);
    html! { time datetime=(at) title=(at) data-left=(left.as_secs()) { "in " (age(left)) } }
}

/// A part of a text: its beginning, on one line.
pub(crate) fn excerpt(text: &str, most: usize) -> String {
    let mut cut: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(most.saturating_add(1))
        .collect();
    if cut.chars().count() > most {
        cut.pop();
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_thousands() {
        for (n, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(number(n), text);
        }
        assert_eq!((counted(1, "task"), counted(2, "task")), ("1 task".into(), "2 tasks".into()));
    }

    #[test]
    fn instants_say_how_far_they_are() {
        let now = Timestamp::from_micros(10_000_000_000);
        for (at, words) in [
            (now, "just now"),
            (now.before(Duration::from_millis(65_400)), "1m5s ago"),
            (now.after(Duration::from_secs(7200)), "in 2h"),
        ] {
            let markup = instant(at, now).into_string();
            assert!(markup.contains(&format!(">{words}<")), "{markup}");
        }
    }

    #[test]
    fn an_excerpt_is_one_line() {
        assert_eq!(excerpt("a\nb", 10), "a b");
        assert_eq!(excerpt("abcdef", 3), "abc…");
        assert_eq!(excerpt("abc", 3), "abc");
    }
}
