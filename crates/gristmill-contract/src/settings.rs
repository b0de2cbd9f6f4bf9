//! A queue's settings by name and text: one table for contracts, the
//! configuration file and `queue add`, so that all know the same names and say
//! the same about a wrong value.

use std::str::FromStr;
use std::time::Duration;

use gristmill_core::name::did_you_mean;
use gristmill_core::{Backoff, Binding, Rate, Settings, SettingsPatch};

use crate::duration;

/// Every name that can be set; those with a dot stand nested in YAML.
pub const NAMES: &[&str] = &[
    "lease",
    "timeout",
    "max_attempts",
    "backoff.base",
    "backoff.cap",
    "backoff.jitter",
    "id_window",
    "keep_done",
    "keep_result",
    "keep_failed",
    "durability",
    "claims",
    "unique",
    "on_duplicate",
    "postpone_max",
    "unique_for",
    "capacity",
    "batch_size",
    "count",
    "slots",
    "concurrency",
    "concurrency_per",
    "rate",
    "burst",
    "rate_per",
    "fair",
    "processors.min",
    "processors.max",
    "processors.weight",
    "drain_within",
    "max_wait",
    "bind.table",
    "bind.column",
];

/// Says one setting.
///
/// # Errors
/// When there is no such setting or it cannot have this value, in one
/// sentence.
pub fn set(patch: &mut SettingsPatch, name: &str, text: &str) -> Result<(), String> {
    let backoff = patch.backoff.unwrap_or_default();
    let bind = patch.bind.clone().flatten();
    let bind = bind.unwrap_or(Binding { table: String::new(), column: String::new() });
    let wrong = |why: String| format!("{name}: {why}");
    let span = || duration::parse(text).map_err(wrong);
    let long = || optional(text, duration::parse).map_err(wrong);
    match name {
        "lease" => patch.lease = Some(span()?),
        "timeout" => patch.timeout = Some(span()?),
        "max_attempts" => patch.max_attempts = Some(optional(text, number).map_err(wrong)?),
        "backoff.base" => patch.backoff = Some(Backoff { base: span()?, ..backoff }),
        "backoff.cap" => patch.backoff = Some(Backoff { cap: span()?, ..backoff }),
        "backoff.jitter" => {
            patch.backoff = Some(Backoff { jitter: yes_or_no(text).map_err(wrong)?, ..backoff });
        }
        "id_window" => patch.id_window = Some(span()?),
        "keep_done" => patch.keep_done = Some(long()?),
        "keep_result" => patch.keep_result = Some(long()?),
        "keep_failed" => patch.keep_failed = Some(long()?),
        "durability" => patch.durability = Some(word(text).map_err(wrong)?),
        "claims" => patch.claims = Some(word(text).map_err(wrong)?),
        "unique" => patch.unique = Some(word(text).map_err(wrong)?),
        "on_duplicate" => patch.on_duplicate = Some(word(text).map_err(wrong)?),
        "postpone_max" => patch.postpone_max = Some(long()?),
        "unique_for" => patch.unique_for = Some(long()?),
        "capacity" => patch.capacity = Some(optional(text, number).map_err(wrong)?),
        "batch_size" => patch.batch_size = Some(number(text).map_err(wrong)?),
        "count" => patch.count = Some(yes_or_no(text).map_err(wrong)?),
        "slots" => patch.slots = Some(optional(text, number).map_err(wrong)?),
        "concurrency" => patch.concurrency = Some(optional(text, number).map_err(wrong)?),
        "concurrency_per" => patch.concurrency_per = Some(word(text).map_err(wrong)?),
        "rate" => patch.rate = Some(optional(text, rate).map_err(wrong)?),
        "burst" => patch.burst = Some(optional(text, number).map_err(wrong)?),
        "rate_per" => patch.rate_per = Some(word(text).map_err(wrong)?),
        "fair" => patch.fair = Some(word(text).map_err(wrong)?),
        "processors.min" => patch.processors_min = Some(number(text).map_err(wrong)?),
        "processors.max" => patch.processors_max = Some(optional(text, number).map_err(wrong)?),
        "processors.weight" => patch.processors_weight = Some(number(text).map_err(wrong)?),
        "drain_within" => patch.drain_within = Some(long()?),
        "max_wait" => patch.max_wait = Some(long()?),
        "bind.table" => patch.bind = Some(Some(Binding { table: text.to_owned(), ..bind })),
        "bind.column" => patch.bind = Some(Some(Binding { column: text.to_owned(), ..bind })),
        _ => return Err(unknown(name)),
    }
    Ok(())
}

/// Says settings from `name=value` words.
///
/// # Errors
/// The first word that says nothing, in one sentence.
pub fn from_words(words: &[String]) -> Result<SettingsPatch, String> {
    let mut patch = SettingsPatch::default();
    for word in words {
        let (name, value) = word
            .split_once('=')
            .ok_or_else(|| format!("'{word}' sets nothing: write it like max_attempts=3"))?;
        set(&mut patch, name, value)?;
    }
    Ok(patch)
}

/// Checks what no single value shows.
///
/// # Errors
/// The first contradiction, in one sentence.
pub fn check(patch: &SettingsPatch) -> Result<(), String> {
    let mut settings = Settings::default();
    patch.apply_to(&mut settings);
    settings.check().map_err(|error| error.to_string())
}

/// The sentence about a name that is no setting.
#[must_use]
pub fn unknown(name: &str) -> String {
    // The configuration has some in groups, which are single words elsewhere.
    let group: Vec<&str> = NAMES
        .iter()
        .copied()
        .filter(|known| known.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
        .collect();
    if !group.is_empty() {
        return format!("there is no setting '{name}' by itself: say {}", group.join(", "));
    }
    match did_you_mean(name, NAMES.iter().copied()) {
        Some(near) => format!("there is no setting '{name}'; did you mean '{near}'?"),
        None => format!("there is no setting '{name}': 'gristmill queue add --help' lists them"),
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("'{text}' is not a whole number that fits here"))
}

/// The times of a rate that have a word.
const TIMES: [(&str, &str, u64); 4] =
    [("second", "s", 1), ("minute", "m", 60), ("hour", "h", 3600), ("day", "d", 86_400)];

/// So many a time: `100/minute`, `50/s`, `3/10s`.
fn rate(text: &str) -> Result<Rate, String> {
    let (tasks, time) = text
        .split_once('/')
        .ok_or_else(|| format!("'{text}' is no rate: write it like 100/minute"))?;
    let (tasks, time) = (number(tasks.trim())?, time.trim());
    let known = TIMES.iter().find(|(word, letter, _)| [*word, *letter].contains(&time));
    let per = match known {
        Some((_, _, seconds)) => Duration::from_secs(*seconds),
        None => duration::parse(time).map_err(|_| {
            format!("'{time}' is no time: it is second, minute, hour, day or like 10s")
        })?,
    };
    Ok(Rate::new(tasks, per))
}

fn show_rate(rate: Rate) -> String {
    let known = TIMES.iter().find(|(_, _, seconds)| rate.per == Duration::from_secs(*seconds));
    let time = known.map_or_else(|| duration::show(rate.per), |(word, ..)| (*word).to_owned());
    format!("{}/{time}", rate.tasks)
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "true" | "yes" | "on" => Ok(true),
        "false" | "no" | "off" => Ok(false),
        _ => Err(format!("'{text}' is neither true nor false")),
    }
}

fn word<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// A value, or one of the words for having none.
fn optional<T>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    match text {
        "none" | "no" | "off" | "false" | "unlimited" | "forever" => Ok(None),
        _ => parse(text).map(Some),
    }
}

/// The settings that are not the default, by name, as they can be written
/// again.
#[must_use]
pub fn differing(settings: &Settings) -> Vec<(&'static str, String)> {
    let all = all(&Settings::default()).into_iter().zip(all(settings));
    all.filter(|(default, value)| default != value).map(|(_, value)| value).collect()
}

/// The names of what a declaration says, whether or not it is the default.
#[must_use]
pub fn said(patch: &SettingsPatch) -> Vec<&'static str> {
    let p = patch;
    let is_said = |name: &str| match name {
        "lease" => p.lease.is_some(),
        "timeout" => p.timeout.is_some(),
        "max_attempts" => p.max_attempts.is_some(),
        "backoff.base" | "backoff.cap" | "backoff.jitter" => p.backoff.is_some(),
        "id_window" => p.id_window.is_some(),
        "keep_done" => p.keep_done.is_some(),
        "keep_result" => p.keep_result.is_some(),
        "keep_failed" => p.keep_failed.is_some(),
        "durability" => p.durability.is_some(),
        "claims" => p.claims.is_some(),
        "unique" => p.unique.is_some(),
        "on_duplicate" => p.on_duplicate.is_some(),
        "postpone_max" => p.postpone_max.is_some(),
        "unique_for" => p.unique_for.is_some(),
        "capacity" => p.capacity.is_some(),
        "batch_size" => p.batch_size.is_some(),
        "count" => p.count.is_some(),
        "slots" => p.slots.is_some(),
        "concurrency" => p.concurrency.is_some(),
        "concurrency_per" => p.concurrency_per.is_some(),
        "rate" => p.rate.is_some(),
        "burst" => p.burst.is_some(),
        "rate_per" => p.rate_per.is_some(),
        "fair" => p.fair.is_some(),
        "processors.min" => p.processors_min.is_some(),
        "processors.max" => p.processors_max.is_some(),
        "processors.weight" => p.processors_weight.is_some(),
        "drain_within" => p.drain_within.is_some(),
        "max_wait" => p.max_wait.is_some(),
        "bind.table" | "bind.column" => p.bind.is_some(),
        _ => false,
    };
    NAMES.iter().copied().filter(|name| is_said(name)).collect()
}

/// Every setting by name, as it can be written again.
#[must_use]
pub fn all(settings: &Settings) -> Vec<(&'static str, String)> {
    let span = |s: Duration| duration::show(s);
    let maybe = |s: Option<Duration>| s.map_or_else(|| "none".to_owned(), span);
    let plain = |n: Option<u64>| n.map_or_else(|| "none".to_owned(), |n| n.to_string());
    vec![
        ("lease", span(settings.lease)),
        ("timeout", span(settings.timeout)),
        (
            "max_attempts",
            settings.max_attempts.map_or_else(|| "unlimited".to_owned(), |n| n.to_string()),
        ),
        ("backoff.base", span(settings.backoff.base)),
        ("backoff.cap", span(settings.backoff.cap)),
        ("backoff.jitter", settings.backoff.jitter.to_string()),
        ("id_window", span(settings.id_window)),
        ("keep_done", maybe(settings.keep_done)),
        ("keep_result", maybe(settings.keep_result)),
        ("keep_failed", maybe(settings.keep_failed)),
        ("durability", settings.durability.to_string()),
        ("claims", settings.claims.to_string()),
        ("unique", settings.unique.to_string()),
        ("on_duplicate", settings.on_duplicate.to_string()),
        ("postpone_max", maybe(settings.postpone_max)),
        ("unique_for", maybe(settings.unique_for)),
        ("capacity", plain(settings.capacity)),
        ("batch_size", settings.batch_size.to_string()),
        ("count", settings.count.to_string()),
        ("slots", plain(settings.slots.map(u64::from))),
        ("concurrency", plain(settings.concurrency.map(u64::from))),
        ("concurrency_per", settings.concurrency_per.to_string()),
        ("rate", settings.rate.map_or_else(|| "none".to_owned(), show_rate)),
        ("burst", plain(settings.burst.map(u64::from))),
        ("rate_per", settings.rate_per.to_string()),
        ("fair", settings.fair.to_string()),
        ("processors.min", settings.processors_min.to_string()),
        ("processors.max", plain(settings.processors_max.map(u64::from))),
        ("processors.weight", settings.processors_weight.to_string()),
        ("drain_within", maybe(settings.drain_within)),
        ("max_wait", maybe(settings.max_wait)),
        (
            "bind",
            settings
                .bind
                .as_ref()
                .map_or_else(String::new, |b| format!("{}.{}", b.table, b.column)),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_of_the_model_can_be_said() {
        // Names that stand nested are one setting, or three, in the model.
        let said: Vec<String> = NAMES
            .iter()
            .map(|name| match name.split_once('.') {
                Some(("processors", part)) => format!("processors_{part}"),
                Some((whole, _)) => whole.to_owned(),
                None => (*name).to_owned(),
            })
            .collect();
        for name in Settings::NAMES {
            assert!(said.iter().any(|said| said == name), "{name} cannot be said");
        }
    }

    #[test]
    fn a_group_by_itself_is_told_its_parts() {
        let said = unknown("backoff");
        assert!(said.contains("say backoff.base, backoff."), "{said}");
        assert!(unknown("timeuot").contains("did you mean 'timeout'?"));
    }

    #[test]
    fn every_name_is_understood() {
        for name in NAMES {
            let mut patch = SettingsPatch::default();
            let fits = ["5s", "5", "true", "full", "durable", "pending", "skip", "group", "9/s"]
                .iter()
                .any(|text| set(&mut patch, name, text).is_ok());
            assert!(fits && !patch.is_empty(), "{name}");
            assert!(self::said(&patch).contains(name), "{name} is not known to be said");
        }
    }

    #[test]
    fn mistakes_are_sentences() {
        for (word, part) in [
            ("timeout", "sets nothing"),
            ("timeout=30", "unit is missing"),
            ("timeuot=30s", "did you mean 'timeout'"),
            ("max_attempts=many", "not a whole number"),
            ("unique=maybe", "not one of pending, active"),
            ("count=2", "neither true nor false"),
            ("slots=-1", "not a whole number"),
            ("rate=100", "write it like 100/minute"),
            ("rate=many/minute", "not a whole number"),
            ("rate=5/fortnight", "no time"),
            ("concurrency_per=task", "not one of queue, group"),
        ] {
            let error = from_words(&[word.to_owned()]).expect_err(word);
            assert!(error.contains(part), "{error}");
        }
        let patch = from_words(&["max_attempts=0".to_owned()]).expect("a number");
        assert!(check(&patch).is_err_and(|e| e.contains("no task could ever run")));
    }

    #[test]
    fn a_rate_is_shown_as_it_can_be_said() {
        for (said, shown) in [
            ("100/minute", "100/minute"),
            ("50/s", "50/second"),
            ("3 / 10s", "3/10s"),
            ("7/1h", "7/hour"),
        ] {
            assert_eq!(rate(said).map(show_rate), Ok(shown.to_owned()));
        }
    }

    #[test]
    fn words_for_none() {
        let words = ["max_attempts=unlimited", "keep_failed=forever", "keep_done=no"];
        let patch = from_words(&words.map(str::to_owned)).expect("words");
        assert_eq!(patch.max_attempts, Some(None));
        assert_eq!((patch.keep_failed, patch.keep_done), (Some(None), Some(None)));
    }
}
