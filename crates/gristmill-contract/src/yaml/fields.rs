//! The fields of one mapping: wanted ones are read, all others are mistakes.

use std::ops::RangeInclusive;

use gristmill_core::name::did_you_mean;

use super::mistake::Mistakes;
use super::tree::{Key, Node, Value};

/// A mapping being read.
#[derive(Debug)]
pub struct Fields<'a> {
    at: &'a Node,
    what: &'static str,
    entries: &'a [(Key, Node)],
}

impl<'a> Fields<'a> {
    /// The node's fields, if it has any; `what` names it in sentences.
    pub fn of(node: &'a Node, what: &'static str, mistakes: &mut Mistakes) -> Option<Self> {
        match &node.value {
            Value::Map(entries) => Some(Fields { at: node, what, entries }),
            // An empty file, or a dash with nothing behind it.
            Value::Null => Some(Fields { at: node, what, entries: &[] }),
            _ => {
                mistakes.add(node, format!("{what} is made of fields, like 'name: value'"));
                None
            }
        }
    }

    /// A field's value.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&'a Node> {
        self.entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// A field that is text.
    pub fn text(&mut self, name: &str, mistakes: &mut Mistakes) -> Option<String> {
        let node = self.node(name)?;
        match (&node.value, node.scalar()) {
            (Value::Null, _) | (_, None) => {
                let what = node.kind();
                mistakes
                    .add(node, format!("{name} wants a text, not {what}: write it behind the ':'"));
                None
            }
            (_, text) => text,
        }
    }

    /// A field that is text and must be there, with its place.
    pub fn required_text(
        &mut self,
        name: &str,
        mistakes: &mut Mistakes,
    ) -> Option<(String, &'a Node)> {
        let Some(node) = self.node(name) else {
            mistakes.add(self.at, format!("{} needs a field '{name}'", self.what));
            return None;
        };
        self.text(name, mistakes).map(|text| (text, node))
    }

    /// A field that is a whole number within a range.
    pub fn number(
        &mut self,
        name: &str,
        range: RangeInclusive<u64>,
        mistakes: &mut Mistakes,
    ) -> Option<u64> {
        let node = self.node(name)?;
        let number = node.scalar().and_then(|text| text.parse().ok());
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let (least, most) = (range.start(), range.end());
            mistakes.add(node, format!("{name} wants a whole number from {least} to {most}"));
        }
        number
    }

    /// A field that is a list; nothing when it is not there.
    pub fn list(&mut self, name: &str, mistakes: &mut Mistakes) -> &'a [Node] {
        match self.node(name) {
            None => &[],
            Some(Node { value: Value::List(items), .. }) => items,
            Some(Node { value: Value::Null, .. }) => &[],
            Some(node) => {
                mistakes.add(node, format!("{name} wants a list: lines that begin with '- '"));
                &[]
            }
        }
    }

    /// Whether a field that is not known was most likely meant to be this one.
    #[must_use]
    pub fn has_near(&self, name: &str, known: &[&str]) -> bool {
        let strange = self.entries.iter().map(|(key, _)| key.name.as_str());
        let mut strange = strange.filter(|key| !known.contains(key));
        strange.any(|key| near(key, known) == Some(name))
    }

    /// Says which fields nobody asked for.
    pub fn done(self, known: &[&str], mistakes: &mut Mistakes) {
        for (key, _) in self.entries.iter().filter(|(key, _)| !known.contains(&key.name.as_str())) {
            mistakes.add_at(key.line, key.column, unknown_field(self.what, &key.name, known));
        }
    }
}

/// The sentence about a field that a mapping does not have.
pub(crate) fn unknown_field(what: &str, name: &str, known: &[&str]) -> String {
    let hint = match near(name, known) {
        Some(near) => format!("; did you mean '{near}'?"),
        None => format!(": it has {}", known.join(", ")),
    };
    format!("{what} has no field '{name}'{hint}")
}

/// The field that was most likely meant: a few letters differ, or only their
/// order does.
fn near<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    let shuffled = || known.iter().copied().find(|known| sorted(known) == sorted(name));
    did_you_mean(name, known.iter().copied()).or_else(shuffled)
}
