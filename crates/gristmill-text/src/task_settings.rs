//! A task's own settings, in the words of its queue's. Read leniently, as its
//! headers are: whatever stands there is this one task's affair.

use gristmill_core::{Result, SettingsPatch, TaskSettings};
use serde_json::Value;

use crate::task::Readable;
use crate::{settings, text};

/// A task's own settings as they are stored: nothing when it has none.
///
/// # Errors
///
/// Invalid, when they cannot be said in JSON.
pub fn task_settings_text(own: &TaskSettings) -> Result<Option<String>> {
    task_settings_value(own).as_ref().map(text).transpose()
}

/// The same, within something else that is stored as JSON.
#[must_use]
pub fn task_settings_value(own: &TaskSettings) -> Option<Value> {
    let patch = SettingsPatch {
        timeout: own.timeout(),
        max_attempts: own.max_attempts(),
        backoff: own.backoff(),
        ..SettingsPatch::default()
    };
    let mut said = settings::write(&patch);
    if let (true, Some(said)) = (own.is_wanted(), said.as_object_mut()) {
        said.insert(WANTED.to_owned(), Value::Bool(true));
    }
    (!own.is_empty()).then_some(said)
}

/// A task's own settings as they are read back: those that are some.
#[must_use]
pub fn task_settings(stored: Option<&str>) -> Readable<TaskSettings> {
    let none = || Readable { value: TaskSettings::default(), fault: None };
    match stored.map(serde_json::from_str) {
        None => none(),
        Some(Ok(stored)) => task_settings_read(&stored),
        Some(Err(_)) => Readable { fault: Some(NO_OBJECT.to_owned()), ..none() },
    }
}

/// Whoever put it waits for its end.
const WANTED: &str = "wanted";

const NO_OBJECT: &str = "its own settings are no object";

/// The same, within something else that is stored as JSON.
#[must_use]
pub fn task_settings_read(stored: &Value) -> Readable<TaskSettings> {
    let mut read = Readable { value: TaskSettings::default(), fault: None };
    if stored.is_null() {
        return read;
    }
    let Some(said) = stored.as_object() else {
        read.fault = Some(NO_OBJECT.to_owned());
        return read;
    };
    // One at a time, so that one which is none does not take the others along.
    for (name, value) in said {
        let one = Value::Object([(name.clone(), value.clone())].into_iter().collect());
        let own = settings::read(&one).map(|patch| TaskSettings::from(&patch));
        let mut own = own.unwrap_or_default();
        if name == WANTED && value.as_bool() == Some(true) {
            own.set_wanted();
        }
        let fault = if own.is_empty() {
            Some(format!("'{}' cannot be read", name.chars().take(80).collect::<String>()))
        } else {
            own.fault()
        };
        match fault {
            None => read.value.say(&own),
            Some(why) => {
                read.fault.get_or_insert_with(|| format!("of its own settings, {why}"));
            }
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gristmill_core::Backoff;

    use super::*;

    #[test]
    fn they_are_stored_in_these_words_and_none_as_nothing() -> Result<()> {
        let mut own = TaskSettings::default();
        assert_eq!(task_settings_text(&own)?, None);
        own.set_timeout(Duration::from_secs(2));
        own.set_max_attempts(None);
        own.set_backoff(Backoff { jitter: false, ..Backoff::default() });
        let stored = concat!(
            r#"{"backoff":{"base":2000000,"cap":3600000000,"jitter":false},"#,
            r#""max_attempts":null,"timeout":2000000}"#
        );
        assert_eq!(task_settings_text(&own)?.as_deref(), Some(stored));
        assert_eq!(task_settings(Some(stored)), Readable { value: own, fault: None });
        let mut wanted = TaskSettings::default();
        wanted.set_wanted();
        assert_eq!(task_settings_text(&wanted)?.as_deref(), Some(r#"{"wanted":true}"#));
        let read = task_settings(Some(r#"{"wanted":true}"#));
        assert_eq!(read, Readable { value: wanted, fault: None });
        for none in [None, Some("null")] {
            assert!(task_settings(none).value.is_empty() && task_settings(none).fault.is_none());
        }
        Ok(())
    }

    #[test]
    fn what_cannot_be_read_leaves_the_rest() {
        let read = task_settings(Some(r#"{"timeout":"soon","max_attempts":3,"colour":1}"#));
        assert_eq!(read.value.max_attempts(), Some(Some(3)));
        assert_eq!(read.fault.as_deref(), Some("of its own settings, 'colour' cannot be read"));
        let zero = task_settings(Some(r#"{"max_attempts":0}"#));
        assert!(zero.value.is_empty() && zero.fault.is_some(), "{zero:?}");
        for stored in ["[]", "7", "no json", ""] {
            let fault = task_settings(Some(stored)).fault;
            assert_eq!(fault.as_deref(), Some("its own settings are no object"), "{stored}");
        }
    }
}
