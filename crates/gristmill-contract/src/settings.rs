//! A queue's settings by name and text, for contracts, the configuration file and
//! `queue add`, so that all know the same names and say the same about a wrong value. The
//! names are those of the one table of settings.

use gristmill_core::name::did_you_mean;
use gristmill_core::{Settings, SettingsPatch};

use crate::setting_value::Said;

/// Every name that can be set; those with a dot stand nested in YAML.
pub const NAMES: &[&str] = Settings::WORDS;

/// Makes what goes through every setting from the table of settings.
macro_rules! by_name {
    ($( $(#[$doc:meta])* $name:ident ( $($word:literal),+ ) : $type:ty = $default:expr ; )+) => {
        /// Says one setting.
        ///
        /// # Errors
        /// When there is no such setting or it cannot have this value, in one
        /// sentence.
        pub fn set(patch: &mut SettingsPatch, name: &str, text: &str) -> Result<(), String> {
            match name {
                $( $($word)|+ => patch.$name = Some(
                    Said::say(patch.$name.as_ref(), part(name), text)
                        .map_err(|why| format!("{name}: {why}"))?,
                ), )+
                _ => return Err(unknown(name)),
            }
            Ok(())
        }

        /// The names of what a declaration says, whether or not it is the default.
        #[must_use]
        pub fn said(patch: &SettingsPatch) -> Vec<&'static str> {
            let said = [ $( (patch.$name.is_some(), &[$($word),+][..]) ),+ ];
            said.into_iter().filter(|(said, _)| *said).flat_map(|(_, names)| names).copied().collect()
        }

        /// Every setting by name, as it can be written again.
        #[must_use]
        pub fn all(settings: &Settings) -> Vec<(&'static str, String)> {
            vec![ $( $( ($word, shown(&settings.$name, $word)) ),+ ),+ ]
        }
    };
}
gristmill_core::with_settings!(by_name);

/// What follows the dot of a setting that has parts.
fn part(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, part)| part)
}

fn shown(value: &impl Said, name: &str) -> String {
    // Of those that can be without a value, some say so by a word of their own.
    let none = match name {
        "max_attempts" => "unlimited",
        "keep_failed" => "forever",
        "bind.table" | "bind.column" => "",
        _ => "none",
    };
    value.show(part(name)).unwrap_or_else(|| none.to_owned())
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

/// The settings that are not the default, by name, as they can be written
/// again.
#[must_use]
pub fn differing(settings: &Settings) -> Vec<(&'static str, String)> {
    let all = all(&Settings::default()).into_iter().zip(all(settings));
    all.filter(|(default, value)| default != value).map(|(_, value)| value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn words_for_none() {
        let words = ["max_attempts=unlimited", "keep_failed=forever", "keep_done=no"];
        let patch = from_words(&words.map(str::to_owned)).expect("words");
        assert_eq!(patch.max_attempts, Some(None));
        assert_eq!((patch.keep_failed, patch.keep_done), (Some(None), Some(None)));
    }

    #[test]
    fn what_is_shown_can_be_said_again() {
        let words = ["lease=5s", "backoff.jitter=off", "bind.table=item", "bind.column=id"];
        let patch = from_words(&words.map(str::to_owned)).expect("words");
        let mut settings = Settings::default();
        patch.apply_to(&mut settings);
        let differing = differing(&settings);
        let names: Vec<&str> = differing.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["lease", "backoff.jitter", "bind.table", "bind.column"]);
        let mut again = SettingsPatch::default();
        for (name, text) in &differing {
            set(&mut again, name, text).expect(name);
        }
        assert_eq!(again, patch);
        settings.max_attempts = None;
        let all = all(&settings);
        assert!(all.contains(&("max_attempts", "unlimited".to_owned())));
        assert!(all.contains(&("slots", "none".to_owned())));
    }
}
