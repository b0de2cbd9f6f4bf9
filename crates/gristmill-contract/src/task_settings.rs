//! A task's own settings in the words of its queue's: for the command line, lines
//! of JSON and HTTP, so that all take the same and say the same about a wrong value.

use std::time::Duration;

use gristmill_core::{SettingsPatch, TaskSettings};
use serde_json::{Map, Value, json};

use crate::{duration, settings};

/// Which field of what was said is wrong, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Wrong {
    /// The field, with a dot where a part of it is meant.
    pub field: String,
    /// What is wrong, in one sentence.
    pub why: String,
}

/// What was said of one task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    patch: SettingsPatch,
}

impl Said {
    /// Says one setting: `timeout` like `"30s"`, `max_attempts` like `3` or
    /// `"unlimited"`, `backoff` like `{"base": "1s", "cap": "1m", "jitter": false}`.
    ///
    /// # Errors
    /// When it cannot have this value.
    pub fn value(&mut self, field: &str, value: &Value) -> Result<(), Wrong> {
        let text = match value {
            Value::Null => return Ok(()),
            Value::Object(parts) if field == "backoff" => {
                for (part, value) in parts {
                    let part: String = part.chars().take(80).collect();
                    self.value(&format!("{field}.{part}"), value)?;
                }
                return Ok(());
            }
            _ if field == "backoff" => {
                return Err(Wrong {
                    field: field.to_owned(),
                    why: r#"backoff has parts: {"base": "1s", "cap": "1m", "jitter": true}"#
                        .to_owned(),
                });
            }
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(yes) => yes.to_string(),
            _ => {
                let why = format!("{field} wants one value");
                return Err(Wrong { field: field.to_owned(), why });
            }
        };
        self.text(field, &text)
    }

    /// The same of what was typed. `backoff` has its parts with commas between:
    /// `base=1s,cap=1m,jitter=no`.
    ///
    /// # Errors
    /// When it cannot have this value.
    pub fn text(&mut self, field: &str, text: &str) -> Result<(), Wrong> {
        let wrong = |why| Wrong { field: field.to_owned(), why };
        if field != "backoff" {
            return settings::set(&mut self.patch, field, text).map_err(wrong);
        }
        for part in text.split(',') {
            let (name, value) = part.split_once('=').ok_or_else(|| {
                wrong(format!("backoff: '{part}' sets nothing: write base=1s,cap=1m,jitter=no"))
            })?;
            self.text(&format!("backoff.{name}"), value)?;
        }
        Ok(())
    }

    /// The settings that were said.
    ///
    /// # Errors
    /// When no task can have them.
    pub fn settings(&self) -> Result<TaskSettings, Wrong> {
        let own = TaskSettings::from(&self.patch);
        match own.fault() {
            None => Ok(own),
            Some(why) => {
                let field = why.split(' ').next().unwrap_or_default().to_owned();
                Err(Wrong { field, why })
            }
        }
    }
}

/// What a task has of its own, by name, as it can be said again; nothing where it
/// has nothing.
#[must_use]
pub fn shown(own: &TaskSettings) -> Map<String, Value> {
    let mut shown = Map::new();
    if let Some(timeout) = own.timeout() {
        shown.insert("timeout".to_owned(), span(timeout).into());
    }
    if let Some(max_attempts) = own.max_attempts() {
        let max_attempts = max_attempts.map_or_else(|| json!("unlimited"), |max| json!(max));
        shown.insert("max_attempts".to_owned(), max_attempts);
    }
    if let Some(backoff) = own.backoff() {
        let (base, cap) = (span(backoff.base), span(backoff.cap));
        let backoff = json!({ "base": base, "cap": cap, "jitter": backoff.jitter });
        shown.insert("backoff".to_owned(), backoff);
    }
    shown
}

/// A span that is read back as it was: short where that says all of it.
fn span(span: Duration) -> String {
    let short = duration::show(span);
    let whole = duration::parse(&short).is_ok_and(|read| read == span);
    if whole { short } else { format!("{}ms", span.as_millis()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(json: Value) -> Result<TaskSettings, Wrong> {
        let mut said = Said::default();
        for (name, value) in json.as_object().into_iter().flatten() {
            said.value(name, value)?;
        }
        said.settings()
    }

    #[test]
    fn what_is_shown_can_be_said_again() {
        for whole in [
            json!({}),
            json!({ "timeout": "30s" }),
            json!({ "timeout": "61500ms", "max_attempts": "unlimited" }),
            json!({ "max_attempts": 3,
                    "backoff": { "base": "1s", "cap": "1m", "jitter": false } }),
        ] {
            let own = said(whole.clone()).expect("settings");
            assert_eq!(Value::Object(shown(&own)), whole);
        }
        let mut typed = Said::default();
        typed.text("backoff", "base=1s,jitter=no").expect("parts");
        let backoff = typed.settings().expect("settings").backoff().expect("a backoff");
        assert!(!backoff.jitter && backoff.base == Duration::from_secs(1));
    }

    #[test]
    fn a_wrong_value_is_named_by_its_field() {
        for (whole, field) in [
            (json!({ "timeout": "0s" }), "timeout"),
            (json!({ "timeout": 5 }), "timeout"),
            (json!({ "timeout": "367d" }), "timeout"),
            (json!({ "max_attempts": 0 }), "max_attempts"),
            (json!({ "max_attempts": -1 }), "max_attempts"),
            (json!({ "max_attempts": [] }), "max_attempts"),
            (json!({ "backoff": "2s" }), "backoff"),
            (json!({ "backoff": { "first": "2s" } }), "backoff.first"),
            (json!({ "backoff": { "cap": "367d" } }), "backoff.cap"),
        ] {
            let wrong = said(whole.clone()).expect_err("wrong");
            assert_eq!(wrong.field, field, "{whole}: {wrong}");
        }
    }
}
