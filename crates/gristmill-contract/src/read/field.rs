//! One field of a queue: its name and its type.

use std::collections::BTreeMap;

use gristmill_core::name::did_you_mean;

use crate::naming::{field_name, snake_case};
use crate::yaml::{Fields, Mistakes, Node};
use crate::{Field, FieldType, Scalar};

const PARTS: &[&str] = &["name", "type", "doc"];
/// Longest name of a field.
const NAME_MAX: usize = 60;

/// What other languages and databases call them.
const FOREIGN: &[(&str, &str)] = &[
    ("str", "string"),
    ("text", "string"),
    ("varchar", "string"),
    ("char", "string"),
    ("uuid", "string"),
    ("integer", "int64"),
    ("long", "int64"),
    ("bigint", "int64"),
    ("i64", "int64"),
    ("i32", "int64"),
    ("int8", "int64"),
    ("int16", "int64"),
    ("int32", "int64"),
    ("uint", "int64"),
    ("uint32", "int64"),
    ("uint64", "int64"),
    ("float", "float64"),
    ("float32", "float64"),
    ("double", "float64"),
    ("number", "float64"),
    ("decimal", "string"),
    ("boolean", "bool"),
    ("byte", "bytes"),
    ("binary", "bytes"),
    ("blob", "bytes"),
    ("datetime", "timestamp"),
    ("date", "timestamp"),
    ("time", "timestamp"),
    ("time.time", "timestamp"),
    ("timestamptz", "timestamp"),
];

/// The fields of a queue so far: their names in code, as written and where.
#[derive(Debug, Default)]
pub(super) struct Known(BTreeMap<String, (String, u64)>);

/// Reads one field.
pub(super) fn read(node: &Node, known: &mut Known, mistakes: &mut Mistakes) -> Option<Field> {
    let mut top = Fields::of(node, "the entry of a field", mistakes)?;
    let name = name(&mut top, node, known, mistakes);
    let kind = kind(&mut top, node, mistakes);
    let doc = top.text("doc", mistakes);
    top.done(PARTS, mistakes);
    Some(Field { name: name?, kind: kind?, doc })
}

fn name(
    top: &mut Fields<'_>,
    at: &Node,
    known: &mut Known,
    mistakes: &mut Mistakes,
) -> Option<String> {
    if top.node("name").is_none() {
        // Misspelt, it is told as such.
        if !top.has_near("name", PARTS) {
            mistakes.add(at, "a field needs a name: write {name: to, type: string}".to_owned());
        }
        return None;
    }
    let (name, node) = top.required_text("name", mistakes)?;
    let code = snake_case(&name);
    let shown: String = name.chars().take(80).collect();
    let strange = name.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '_');
    let wrong = if name.is_empty() {
        "a field's name is empty".to_owned()
    } else if let Some(strange) = strange {
        format!(
            "'{shown}' is not a field name: {strange:?} is not allowed (letters, digits, '_' are)"
        )
    } else if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        format!("'{shown}' is not a field name: it must start with a letter")
    } else if name.len() > NAME_MAX {
        format!(
            "'{shown}…' is not a field name: it has {} bytes and {NAME_MAX} are allowed",
            name.len()
        )
    } else if field_name(&name).is_none() {
        format!(
            "'{name}' can be no name in Rust: call the field '{code}_of', '{code}_name' or the like"
        )
    } else if let Some((other, line)) = known.0.get(&code) {
        if *other == name {
            format!("field '{name}' is declared twice: the first stands on line {line}")
        } else {
            format!("'{name}' would be {code} in code, as is '{other}' on line {line}: rename one")
        }
    } else {
        known.0.insert(code, (name.clone(), node.line));
        return Some(name);
    };
    mistakes.add(node, wrong);
    None
}

fn kind(top: &mut Fields<'_>, at: &Node, mistakes: &mut Mistakes) -> Option<FieldType> {
    let Some(node) = top.node("type") else {
        if !top.has_near("type", PARTS) {
            mistakes.add(at, format!("a field needs a type: one of {}", all()));
        }
        return None;
    };
    let Some(text) = node.scalar() else {
        mistakes.add(node, "type wants a word in quotes, like \"[]int64\"".to_owned());
        return None;
    };
    let kind = FieldType::parse(&text);
    if kind.is_none() {
        mistakes.add(node, unknown(&text));
    }
    kind
}

fn all() -> String {
    Scalar::ALL.map(Scalar::as_str).join(", ")
}

/// The sentence about what is no type, with what was most likely meant.
fn unknown(text: &str) -> String {
    let shown: String = text.chars().take(40).collect();
    let simple: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let simple = simple.to_ascii_lowercase();
    let optional = simple.contains('?');
    let simple = simple.replace('?', "");
    // Lists as others write them: int[], []int, list<int>, array of int.
    let inside = simple.strip_prefix("[]").or_else(|| simple.strip_suffix("[]")).or_else(|| {
        let (outer, inner) = simple.split_once(['<', '[', '('])?;
        ["list", "array", "vec", "slice", "repeated", ""].contains(&outer).then_some(inner)?;
        inner.strip_suffix(['>', ']', ')'])
    });
    if inside.is_some_and(|inside| inside.contains("[]") && inside != "[]byte") {
        return format!("there is no type '{shown}': a list holds single values, not lists");
    }
    if ["map", "object", "json", "dict", "struct", "any"].iter().any(|w| simple.starts_with(w)) {
        return format!(
            "there is no type '{shown}': fields are flat; spread its parts over fields of their own"
        );
    }
    let word = inside.unwrap_or(&simple);
    let meant = Scalar::ALL
        .iter()
        .map(|scalar| scalar.as_str())
        .find(|known| *known == word)
        .or_else(|| FOREIGN.iter().find(|(foreign, _)| *foreign == word).map(|(_, own)| *own))
        .or_else(|| did_you_mean(word, Scalar::ALL.iter().map(|scalar| scalar.as_str())));
    match meant {
        Some(own) => {
            let list = if inside.is_some() { "[]" } else { "" };
            let end = if optional { "?" } else { "" };
            format!("there is no type '{shown}'; did you mean '{list}{own}{end}'?")
        }
        None => format!(
            "there is no type '{shown}': use {}, a list like \"[]int64\", or '?' behind one that may be missing",
            all()
        ),
    }
}
