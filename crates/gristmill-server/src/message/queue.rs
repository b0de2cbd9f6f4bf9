//! A queue: what is declared or changed of it, and how it is shown.

use gristmill::SettingsPatch;
use gristmill::port::{Declared, Queue};
use gristmill_contract::settings;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::problem::{Answer, Problem};

/// Settings by name, as in gristmill.yaml: nested or with a dot.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueueIn {
    #[serde(default)]
    settings: Map<String, Value>,
    /// Who changes it.
    pub(crate) by: Option<String>,
}

/// An action on a queue or schedule that needs no more than who does it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ByIn {
    pub(crate) by: Option<String>,
}

impl QueueIn {
    pub(crate) fn patch(&self) -> Answer<SettingsPatch> {
        let mut patch = SettingsPatch::default();
        for (name, value) in &self.settings {
            if let Value::Object(parts) = value {
                for (part, value) in parts {
                    say(&mut patch, &format!("{name}.{part}"), value)?;
                }
            } else {
                say(&mut patch, name, value)?;
            }
        }
        Ok(patch)
    }
}

fn say(patch: &mut SettingsPatch, name: &str, value: &Value) -> Answer<()> {
    let shown: String = name.chars().take(80).collect();
    let field = format!("settings.{shown}");
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(yes) => yes.to_string(),
        Value::Null => "none".to_owned(),
        _ => return Err(Problem::field(field, format!("{shown} wants one value"))),
    };
    settings::set(patch, &shown, &text).map_err(|why| Problem::field(field, why))
}

/// A queue with what is not as by default.
#[derive(Debug, Serialize)]
pub(crate) struct QueueOut {
    queue: String,
    number: u32,
    declared_by: Vec<&'static str>,
    changed_by: Option<String>,
    changed_at: Option<String>,
    paused: bool,
    paused_by: Option<String>,
    created_at: String,
    has_contract: bool,
    settings: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<bool>,
}

impl QueueOut {
    pub(crate) fn of(queue: &Queue) -> Self {
        let settings = settings::differing(&queue.settings);
        let settings = settings.into_iter().map(|(name, value)| (name.to_owned(), value.into()));
        let changed = queue.overridden.as_ref();
        QueueOut {
            queue: queue.name.to_string(),
            number: queue.number,
            declared_by: queue.declared.iter().map(|(origin, _)| origin.as_str()).collect(),
            changed_by: changed.map(|change| change.by.clone()),
            changed_at: changed.map(|change| change.at.to_string()),
            paused: queue.paused,
            paused_by: queue.paused_by.clone(),
            created_at: queue.created_at.to_string(),
            has_contract: queue.contract.is_some(),
            settings: settings.collect(),
            created: None,
        }
    }

    pub(crate) fn declared(declared: &Declared) -> Self {
        QueueOut { created: Some(declared.created), ..QueueOut::of(&declared.queue) }
    }
}
