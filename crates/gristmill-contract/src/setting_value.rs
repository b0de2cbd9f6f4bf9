//! A setting's value as people write it: read from text and shown again.

use std::str::FromStr;
use std::time::Duration;

use gristmill_core::{Backoff, Binding, Claims, Durability, Fair, OnDuplicate, Per, Rate, Unique};

use crate::duration;

/// What stands behind one name of a setting.
pub(crate) trait Value: Sized {
    /// Reads it, or says in one sentence what is wrong.
    fn read(text: &str) -> Result<Self, String>;
    /// As it can be read again; nothing where there is no value.
    fn show(&self) -> Option<String>;
}

/// A setting, said by one name or in parts.
pub(crate) trait Said: Sized {
    /// What it is after one part was said over what was said `before`.
    fn say(before: Option<&Self>, part: &str, text: &str) -> Result<Self, String>;
    /// One part, as it can be said again; nothing where there is no value.
    fn show(&self, part: &str) -> Option<String>;
}

impl<T: Value> Said for T {
    fn say(_: Option<&Self>, _: &str, text: &str) -> Result<Self, String> {
        T::read(text)
    }

    fn show(&self, _: &str) -> Option<String> {
        Value::show(self)
    }
}

impl Said for Backoff {
    fn say(before: Option<&Self>, part: &str, text: &str) -> Result<Self, String> {
        let before = before.copied().unwrap_or_default();
        Ok(match part {
            "base" => Backoff { base: Value::read(text)?, ..before },
            "cap" => Backoff { cap: Value::read(text)?, ..before },
            _ => Backoff { jitter: Value::read(text)?, ..before },
        })
    }

    fn show(&self, part: &str) -> Option<String> {
        match part {
            "base" => Value::show(&self.base),
            "cap" => Value::show(&self.cap),
            _ => Value::show(&self.jitter),
        }
    }
}

impl Said for Option<Binding> {
    fn say(before: Option<&Self>, part: &str, text: &str) -> Result<Self, String> {
        let none = || Binding { table: String::new(), column: String::new() };
        let mut bind = before.cloned().flatten().unwrap_or_else(none);
        let named = if part == "table" { &mut bind.table } else { &mut bind.column };
        text.clone_into(named);
        Ok(Some(bind))
    }

    fn show(&self, part: &str) -> Option<String> {
        let bind = self.as_ref()?;
        Some(if part == "table" { bind.table.clone() } else { bind.column.clone() })
    }
}

impl Value for Duration {
    fn read(text: &str) -> Result<Self, String> {
        duration::parse(text)
    }

    fn show(&self) -> Option<String> {
        Some(duration::show(*self))
    }
}

/// The times of a rate that have a word.
const TIMES: [(&str, &str, u64); 4] =
    [("second", "s", 1), ("minute", "m", 60), ("hour", "h", 3600), ("day", "d", 86_400)];

/// So many a time: `100/minute`, `50/s`, `3/10s`.
impl Value for Rate {
    fn read(text: &str) -> Result<Self, String> {
        let (tasks, time) = text
            .split_once('/')
            .ok_or_else(|| format!("'{text}' is no rate: write it like 100/minute"))?;
        let (tasks, time) = (Value::read(tasks.trim())?, time.trim());
        let known = TIMES.iter().find(|(word, letter, _)| [*word, *letter].contains(&time));
        let per = match known {
            Some((_, _, seconds)) => Duration::from_secs(*seconds),
            None => duration::parse(time).map_err(|_| {
                format!("'{time}' is no time: it is second, minute, hour, day or like 10s")
            })?,
        };
        Ok(Rate::new(tasks, per))
    }

    fn show(&self) -> Option<String> {
        let known = TIMES.iter().find(|(_, _, seconds)| self.per == Duration::from_secs(*seconds));
        let time = known.map_or_else(|| duration::show(self.per), |(word, ..)| (*word).to_owned());
        Some(format!("{}/{time}", self.tasks))
    }
}

impl Value for bool {
    fn read(text: &str) -> Result<Self, String> {
        match text {
            "true" | "yes" | "on" => Ok(true),
            "false" | "no" | "off" => Ok(false),
            _ => Err(format!("'{text}' is neither true nor false")),
        }
    }

    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

/// A value, or one of the words for having none.
impl<T: Value> Value for Option<T> {
    fn read(text: &str) -> Result<Self, String> {
        match text {
            "none" | "no" | "off" | "false" | "unlimited" | "forever" => Ok(None),
            _ => T::read(text).map(Some),
        }
    }

    fn show(&self) -> Option<String> {
        self.as_ref().and_then(Value::show)
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("'{text}' is not a whole number that fits here"))
}

fn word<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

macro_rules! by_text {
    ($read:path: $($type:ty),+) => {$(
        impl Value for $type {
            fn read(text: &str) -> Result<Self, String> {
                $read(text)
            }

            fn show(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )+};
}
by_text!(number: u32, u64);
by_text!(word: Unique, OnDuplicate, Durability, Claims, Per, Fair);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_shown_as_it_can_be_said() {
        for (said, shown) in [
            ("100/minute", "100/minute"),
            ("50/s", "50/second"),
            ("3 / 10s", "3/10s"),
            ("7/1h", "7/hour"),
        ] {
            let rate = Rate::read(said).expect("a rate");
            assert_eq!(Value::show(&rate).as_deref(), Some(shown));
        }
    }
}
