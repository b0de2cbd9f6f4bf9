//! The settings of a queue in YAML: names with values, nested ones with their
//! parts.

use gristmill_core::SettingsPatch;

use super::mistake::Mistakes;
use super::tree::{Key, Node, Value};
use crate::settings;

/// Settings as they were said, by name and text, in the order of the file.
pub type Said = Vec<(String, String)>;

/// Reads the settings of a queue.
pub fn queue_settings(node: &Node, mistakes: &mut Mistakes) -> (SettingsPatch, Said) {
    let mut said = Said::new();
    let mut patch = SettingsPatch::default();
    let Value::Map(entries) = &node.value else {
        if !matches!(node.value, Value::Null) {
            mistakes.add(node, "settings are names with values, like {timeout: 30s}".to_owned());
        }
        return (patch, said);
    };
    for (key, value) in entries {
        match &value.value {
            Value::Map(nested) => {
                for (inner, value) in nested {
                    let name = format!("{}.{}", key.name, inner.name);
                    setting(&mut patch, &mut said, &name, inner, value, mistakes);
                }
            }
            _ => setting(&mut patch, &mut said, &key.name, key, value, mistakes),
        }
    }
    contradictions(node, entries, &said, mistakes);
    (patch, said)
}

fn setting(
    patch: &mut SettingsPatch,
    said: &mut Said,
    name: &str,
    key: &Key,
    value: &Node,
    mistakes: &mut Mistakes,
) {
    if !settings::NAMES.contains(&name) {
        let parts: Vec<&str> = settings::NAMES
            .iter()
            .filter_map(|known| known.strip_prefix(name)?.strip_prefix('.'))
            .collect();
        let why = if parts.is_empty() {
            settings::unknown(name)
        } else {
            format!("{name} has parts: write it like {name}: {{{}: …}}", parts.join(": …, "))
        };
        mistakes.add_at(key.line, key.column, why);
        return;
    }
    match value.scalar() {
        Some(text) => match settings::set(patch, name, &text) {
            Ok(()) => said.push((name.to_owned(), text)),
            Err(why) => mistakes.add(value, why),
        },
        None => mistakes.add(value, format!("{name} wants a single value")),
    }
}

/// What no single value shows: each contradiction stands at the setting that
/// its sentence begins with. That one is then left out, to find the next.
fn contradictions(node: &Node, entries: &[(Key, Node)], said: &Said, mistakes: &mut Mistakes) {
    let mut left: Vec<&(String, String)> = said.iter().collect();
    loop {
        let mut patch = SettingsPatch::default();
        for (name, text) in &left {
            // Each was accepted before.
            let _ = settings::set(&mut patch, name, text);
        }
        let Err(why) = settings::check(&patch) else { return };
        let named = why.split([' ', ':', '.']).next().unwrap_or_default().to_owned();
        let at = entries.iter().find(|(key, _)| key.name == named);
        match at {
            Some((key, _)) => mistakes.add_at(key.line, key.column, why),
            None => mistakes.add(node, why),
        }
        let before = left.len();
        left.retain(|(name, _)| name.split('.').next() != Some(named.as_str()));
        if left.len() == before {
            return;
        }
    }
}
