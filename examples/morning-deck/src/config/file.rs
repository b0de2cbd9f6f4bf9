//! A configuration file as a list of settings with their places: YAML, or
//! `name=value` lines in a file that ends in `.properties`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_saphyr::{Spanned, UserMessageFormatter};

/// A property as a file says it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) value: String,
    /// File and line.
    pub(super) place: String,
}

/// Reads a file. The error says where.
pub(super) fn settings(file: &str, text: &str) -> Result<Vec<Setting>, String> {
    if file.ends_with(".properties") { lines(file, text) } else { yaml(file, text) }
}

fn lines(file: &str, text: &str) -> Result<Vec<Setting>, String> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    let said = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    said.map(|(number, line)| {
        let place = format!("{file}:{number}");
        let (name, value) =
            line.split_once('=').ok_or_else(|| format!("{place}: there is no '=' in it"))?;
        Ok(Setting { name: name.trim().to_owned(), value: value.trim().to_owned(), place })
    })
    .collect()
}

fn yaml(file: &str, text: &str) -> Result<Vec<Setting>, String> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim().starts_with('#')) {
        return Ok(Vec::new());
    }
    let root: Spanned<Node> = serde_saphyr::from_str(text).map_err(|error| {
        let line = error.location().map_or(1, |place| place.line());
        let plain = error.without_snippet().render_with_formatter(&UserMessageFormatter);
        format!("{file}:{line}: {plain}")
    })?;
    let mut settings = Vec::new();
    flatten(file, String::new(), root, &mut settings);
    Ok(settings)
}

/// `a: {b: 1}` and `a.b: 1` are the same setting.
fn flatten(file: &str, name: String, node: Spanned<Node>, settings: &mut Vec<Setting>) {
    match node.value {
        Node::Value(value) => {
            let place = format!("{file}:{}", node.referenced.line());
            settings.push(Setting { name, value, place });
        }
        Node::Map(entries) => {
            for (key, value) in entries {
                let name = if name.is_empty() { key } else { format!("{name}.{key}") };
                flatten(file, name, value, settings);
            }
        }
    }
}

/// YAML as far as a configuration needs it.
enum Node {
    Value(String),
    Map(Vec<(String, Spanned<Node>)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or a map of values")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Value(String::new()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Value(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Value(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Value(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Value(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Value(value.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Node::Map(map))
    }
}
