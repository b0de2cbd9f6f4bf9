//! What was declared of a schedule.

use std::time::Duration;

use gristmill_core::{Payload, Result, Rule, ScheduleDeclaration, ScheduleName};
use serde::{Deserialize, Serialize};

use crate::{corrupt, micros, parse, queue_name, text};

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
        Ok(())
    }

    #[test]
    fn a_schedule_without_a_rule_is_corrupt() {
        assert_eq!(rule(None, None), Err(corrupt("a schedule", "it has not one rule")));
        assert!(rule(Some("* * * * *".to_owned()), Some(1)).is_err());
    }
}
