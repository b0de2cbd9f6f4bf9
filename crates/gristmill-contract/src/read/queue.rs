//! One queue of a contract.

use gristmill_core::QueueName;
use gristmill_core::queue::FIRST_FREE_NUMBER;

use super::field;
use super::known::Known;
use crate::naming::{is_keyword, is_taken, pascal_case, snake_case};
use crate::yaml::{Fields, Mistakes, Node, Value, queue_settings, unknown_field};
use crate::{QueueContract, settings};

const FIELDS: &[&str] = &["id", "name", "doc", "fields", "settings"];
/// Most fields of one queue.
const FIELDS_MAX: usize = 200;

/// Reads one queue. What is returned may lack what had mistakes.
pub(super) fn read(
    node: &Node,
    known: &mut Known,
    mistakes: &mut Mistakes,
) -> Option<QueueContract> {
    let mut top = Fields::of(node, "a queue", mistakes)?;
    let name = name(&mut top, node, known, mistakes);
    let shown = name.as_ref().map_or("?", QueueName::as_str).to_owned();
    let number = number(&top, node, &shown, known, mistakes);
    let doc = top.text("doc", mistakes);
    let mut fields = Vec::new();
    let listed = top.list("fields", mistakes);
    if listed.len() > FIELDS_MAX {
        let what = format!("{} fields are more than {FIELDS_MAX}", listed.len());
        mistakes.add(top.node("fields").unwrap_or(node), what);
    } else {
        let mut known = field::Known::default();
        for node in listed {
            fields.extend(field::read(node, &mut known, mistakes));
        }
    }
    let settings = top.node("settings").map(|node| queue_settings(node, mistakes));
    let (settings, said) = settings.unwrap_or_default();
    unknown_fields(node, mistakes);
    let (number, name) = (number?, name?);
    Some(QueueContract { number, name, doc, fields, retired: Vec::new(), settings, said })
}

fn number(
    top: &Fields<'_>,
    at: &Node,
    name: &str,
    known: &mut Known,
    mistakes: &mut Mistakes,
) -> Option<u32> {
    let last = u64::from(FIRST_FREE_NUMBER - 1);
    let Some(node) = top.node("id") else {
        let free = known.free_number();
        if !top.has_near("id", FIELDS) {
            mistakes.add(at, format!("queue '{name}' has no id: add one, like id: {free}"));
        }
        return None;
    };
    let text = node.scalar().unwrap_or_default();
    let Ok(number) = text.parse::<i128>() else {
        let shown: String = text.chars().take(40).collect();
        mistakes.add(node, format!("id '{shown}' is not a whole number from 1 to {last}"));
        return None;
    };
    let within = u64::try_from(number).ok().filter(|number| (1..=last).contains(number));
    let Some(number) = within else {
        mistakes.add(node, format!("id {number} is out of range: it is from 1 to {last}"));
        return None;
    };
    if let Some(other) = known.number(number, name, node.line) {
        let free = known.free_number();
        mistakes.add(node, format!("id {number} is taken: {other}; {free} is free"));
        return None;
    }
    u32::try_from(number).ok()
}

fn name(
    top: &mut Fields<'_>,
    at: &Node,
    known: &mut Known,
    mistakes: &mut Mistakes,
) -> Option<QueueName> {
    if top.node("name").is_none() {
        // Misspelt, it is told as such.
        if !top.has_near("name", FIELDS) {
            mistakes.add(at, "a queue needs a name: add one, like name: emails".to_owned());
        }
        return None;
    }
    let (text, node) = top.required_text("name", mistakes)?;
    let mut wrong = |what: String| {
        mistakes.add(node, what);
        None
    };
    let name = match QueueName::new(&text) {
        Ok(name) => name,
        Err(error) => return wrong(error.to_string()),
    };
    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return wrong(format!("'{text}' begins with a digit: a type in code could not"));
    }
    if let Some(place) = known.name(&text, node.line) {
        return wrong(format!("queue '{text}' is declared twice: the first stands {place}"));
    }
    let (types, value) = (pascal_case(&text), snake_case(&text));
    if is_keyword(&value) {
        return wrong(format!(
            "'{text}' is a reserved word of Rust: choose another name, like '{value}_tasks'"
        ));
    }
    if is_taken(&types) {
        return wrong(format!("'{text}' is reserved: the generated code has a {types} of its own"));
    }
    for ending in ["", "Task", "Handler"] {
        let type_name = format!("{types}{ending}");
        if let Some(other) = known.type_name(&type_name, &text, node.line) {
            let what = format!("'{text}' would be {type_name} in code, as is {other}: rename one");
            return wrong(what);
        }
    }
    Some(name)
}

/// What a queue does not have; a setting that stands beside `settings` is the
/// likeliest.
fn unknown_fields(node: &Node, mistakes: &mut Mistakes) {
    let Value::Map(entries) = &node.value else { return };
    for (key, _) in entries.iter().filter(|(key, _)| !FIELDS.contains(&key.name.as_str())) {
        let name = key.name.as_str();
        let is_setting = settings::NAMES.iter().any(|known| {
            *known == name || known.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
        });
        let what = if is_setting {
            format!("{name} is a setting: write it under 'settings:'")
        } else {
            unknown_field("a queue", name, FIELDS)
        };
        mistakes.add_at(key.line, key.column, what);
    }
}
