//! YAML as a tree of values that know where they stand.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Spanned, UserMessageFormatter};

use super::mistake::Mistakes;

/// A value and its place.
#[derive(Debug)]
pub struct Node {
    /// Its line, from 1.
    pub line: u64,
    /// Its column in characters, from 1.
    pub column: u64,
    /// What stands there.
    pub value: Value,
}

/// A field's name and its place.
#[derive(Debug)]
pub struct Key {
    /// The name.
    pub name: String,
    /// Its line, from 1.
    pub line: u64,
    /// Its column in characters, from 1.
    pub column: u64,
}

/// What YAML can say.
#[derive(Debug)]
pub enum Value {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A number.
    Number(serde_json::Number),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Fields by name.
    Map(Vec<(Key, Node)>),
}

/// Reads one document.
///
/// # Errors
/// Where and why it is no YAML.
pub fn parse(text: &str) -> Result<Node, Mistakes> {
    // YAML 1.2: `y`, `no` and `on` are words, such as a field's name.
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options::<Node>(text, options).map_err(|error| {
        let mut mistakes = Mistakes::default();
        let (line, column) =
            error.location().map_or((1, 1), |place| (place.line(), place.column()));
        let plain = error.without_snippet().render_with_formatter(&UserMessageFormatter);
        // The place is said by us, in front.
        let plain = plain.split(" at line ").next().unwrap_or(&plain).to_owned();
        let twice = plain.strip_prefix("duplicate mapping key: ");
        let twice = twice.and_then(|rest| rest.strip_suffix(" not allowed here"));
        let plain = twice.map(|key| format!("'{key}' is said twice: keep one")).unwrap_or(plain);
        let plain = format!("{plain}{}", advice(&plain));
        mistakes.add_at(line, column, plain);
        mistakes
    })
}

/// What to do about what the parser found.
fn advice(found: &str) -> &'static str {
    let known = [
        ("tabs", ": indent with spaces"),
        ("unclosed", ": close it"),
        ("multiple found", ": take out all but one, and the '---' between them"),
        ("quoted", ": close the quote, or indent its lines more than their field"),
        ("block", ": what belongs together begins in the same column"),
        ("indentation", ": what belongs together begins in the same column"),
        ("unknown value", ": say it with & before it is used with *"),
        ("unexpected character", ": take it out, or write it as an escape in quotes"),
        ("recursion", ": it is nested too deep"),
        ("string scalar", ": a field's name is a text"),
    ];
    known.iter().find(|(part, _)| found.contains(part)).map_or("", |(_, advice)| advice)
}

impl Node {
    /// What kind of value it is, in words.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "fields",
        }
    }

    /// A single value as text, as it could be written in the file.
    #[must_use]
    pub fn scalar(&self) -> Option<String> {
        match &self.value {
            Value::Null => Some("none".to_owned()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Number(value) => Some(value.to_string()),
            Value::Text(value) => Some(value.clone()),
            Value::List(_) | Value::Map(_) => None,
        }
    }

    /// The value as JSON, for a payload.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(value) => value.clone().into(),
            Value::Text(value) => value.clone().into(),
            Value::List(items) => items.iter().map(Node::json).collect(),
            Value::Map(entries) => {
                entries.iter().map(|(key, value)| (key.name.clone(), value.json())).collect()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        let place = spanned.referenced;
        // An empty file stands nowhere.
        let (line, column) = (place.line().max(1), place.column().max(1));
        Ok(Node { line, column, value: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<String>::deserialize(deserializer)?;
        let place = spanned.referenced;
        Ok(Key { name: spanned.value, line: place.line(), column: place.column() })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        // JSON has no word for what is not finite.
        Ok(serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Value::Map(map))
    }
}
