//! What was declared of a schedule.

use std::time::Duration;

use gristmill_core::{
    Headers, Payload, Result, Rule, ScheduleDeclaration, ScheduleName, TaskOptions,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{corrupt, micros, parse, queue_name, task_settings_read, task_settings_value, text};

/// A declaration as databases store it; name and payload have columns of their
/// own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleText {
    queue: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    every: Option<u64>,
    zone: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    missed: String,
    overlap: String,
    #[serde(default, skip_serializing_if = "OptionsText::is_empty")]
    task: OptionsText,
}

/// What is said about a schedule's tasks besides their payload.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OptionsText {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priority: Option<i16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay: Option<u64>,
    #[serde(default, skip_serializing_if = "Headers::is_empty")]
    headers: Headers,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settings: Option<Value>,
}

impl OptionsText {
    /// As it is stored.
    #[must_use]
    pub fn of(options: &TaskOptions) -> Self {
        OptionsText {
            key: options.key.clone(),
            group: options.group.clone(),
            source: options.source.clone(),
            priority: Some(options.priority).filter(|priority| *priority != 0),
            delay: options.delay.map(micros),
            headers: options.headers.clone(),
            settings: task_settings_value(&options.settings),
        }
    }

    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == OptionsText::default()
    }

    /// As it was said.
    ///
    /// # Errors
    ///
    /// Corrupt, when the settings of its tasks are none.
    pub fn into_options(self) -> Result<TaskOptions> {
        let own = task_settings_read(self.settings.as_ref().unwrap_or(&Value::Null));
        if let Some(why) = own.fault {
            return Err(corrupt("a schedule", why));
        }
        Ok(TaskOptions {
            key: self.key,
            group: self.group,
            source: self.source,
            priority: self.priority.unwrap_or_default(),
            delay: self.delay.map(Duration::from_micros),
            headers: self.headers,
            settings: own.value,
        })
    }
}

impl ScheduleText {
    /// The declaration's text.
    ///
    /// # Errors
    ///
    /// Invalid, when it cannot be said in JSON.
    pub fn write(declared: &ScheduleDeclaration) -> Result<String> {
        let (cron, every) = rule_parts(&declared.rule);
        text(&ScheduleText {
            queue: declared.queue.to_string(),
            cron,
            every,
            zone: declared.zone.clone(),
            encoding: declared.payload.as_ref().map(|p| p.encoding.to_string()),
            missed: declared.missed.as_str().to_owned(),
            overlap: declared.overlap.as_str().to_owned(),
            task: OptionsText::of(&declared.options),
        })
    }

    /// The declaration from its text and what stands beside it.
    ///
    /// # Errors
    ///
    /// Corrupt, when the text is none of a declaration.
    pub fn read(name: &str, stored: &str, payload: Option<Vec<u8>>) -> Result<ScheduleDeclaration> {
        let text: ScheduleText = parse("a schedule", stored)?;
        let payload = match (payload, text.encoding) {
            (Some(bytes), Some(encoding)) => Some(Payload {
                bytes: bytes.into(),
                encoding: encoding.parse().map_err(|e| corrupt("a schedule", e))?,
            }),
            _ => None,
        };
        Ok(ScheduleDeclaration {
            name: ScheduleName::new(name).map_err(|e| corrupt("a schedule", e))?,
            queue: queue_name(&text.queue)?,
            rule: rule(text.cron, text.every)?,
            zone: text.zone,
            payload,
            options: text.task.into_options()?,
            missed: text.missed.parse().map_err(|e| corrupt("a schedule", e))?,
            overlap: text.overlap.parse().map_err(|e| corrupt("a schedule", e))?,
        })
    }
}

/// A rule as it is stored: one of the two is said.
#[must_use]
pub fn rule_parts(rule: &Rule) -> (Option<String>, Option<u64>) {
    match rule {
        Rule::Cron(cron) => (Some(cron.clone()), None),
        Rule::Every(every) => (None, Some(micros(*every))),
    }
}

/// A rule as it is read back.
///
/// # Errors
///
/// Corrupt, when not exactly one is said.
pub fn rule(cron: Option<String>, every: Option<u64>) -> Result<Rule> {
    match (cron, every) {
        (Some(cron), None) => Ok(Rule::Cron(cron)),
        (None, Some(every)) => Ok(Rule::Every(Duration::from_micros(every))),
        _ => Err(corrupt("a schedule", "it has not one rule")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_is_stored_in_these_words() -> Result<()> {
        let cron = r#"{"queue":"mails","cron":"0 6 * * *","zone":"Europe/Athens","encoding":"json","missed":"all","overlap":"skip"}"#;
        let declared = ScheduleText::read("daily", cron, Some(b"{}".to_vec()))?;
        assert_eq!(declared.payload.as_ref().map(|p| p.bytes.as_ref()), Some(&b"{}"[..]));
        assert_eq!(ScheduleText::write(&declared)?, cron);
        let every =
            r#"{"queue":"mails","every":60000000,"zone":"UTC","missed":"once","overlap":"allow"}"#;
        let declared = ScheduleText::read("often", every, None)?;
        assert_eq!(declared.rule, Rule::Every(Duration::from_secs(60)));
        assert_eq!(ScheduleText::write(&declared)?, every);
        let keyed = r#"{"queue":"mails","every":60000000,"zone":"UTC","missed":"once","overlap":"allow","task":{"key":"7","priority":-1,"delay":1000000,"headers":{"a":"b"},"settings":{"max_attempts":3}}}"#;
        let declared = ScheduleText::read("keyed", keyed, None)?;
        assert_eq!(declared.options.key.as_deref(), Some("7"));
        assert_eq!(declared.options.delay, Some(Duration::from_secs(1)));
        assert_eq!(ScheduleText::write(&declared)?, keyed);
        Ok(())
    }

    #[test]
    fn a_schedule_without_a_rule_is_corrupt() {
        assert_eq!(rule(None, None), Err(corrupt("a schedule", "it has not one rule")));
        assert!(rule(Some("* * * * *".to_owned()), Some(1)).is_err());
    }
}
