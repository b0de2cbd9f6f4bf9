//! Where in the file each value stands, by its path: `queues.emails.settings.lease`.

use std::collections::BTreeMap;

use gristmill_contract::yaml::{Node, Value};

/// The lines of values, counted from 1.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines(BTreeMap<String, u64>);

impl Lines {
    pub(super) fn of(tree: &Node) -> Self {
        let mut lines = Lines::default();
        lines.walk("", tree);
        lines
    }

    /// The line of a value that stands in the file.
    pub(crate) fn line(&self, path: &str) -> Option<u64> {
        self.0.get(path).copied()
    }

    fn walk(&mut self, path: &str, node: &Node) {
        let below = |name: &str| {
            if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
        };
        match &node.value {
            Value::Map(entries) => {
                for (key, value) in entries {
                    let path = below(&key.name);
                    self.0.insert(path.clone(), key.line);
                    self.walk(&path, value);
                }
            }
            Value::List(items) => {
                for (number, item) in items.iter().enumerate() {
                    // Queues and schedules have names, others only a place.
                    let name = name_of(item).unwrap_or_else(|| number.to_string());
                    let path = below(&name);
                    self.0.insert(path.clone(), item.line);
                    self.walk(&path, item);
                }
            }
            _ => {}
        }
    }
}

fn name_of(item: &Node) -> Option<String> {
    let Value::Map(entries) = &item.value else { return None };
    let (_, name) = entries.iter().find(|(key, _)| key.name == "name")?;
    name.scalar()
}
