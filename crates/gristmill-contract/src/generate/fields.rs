//! A queue's payload: a struct, its wire form, and its place among task types.

use super::layout::{Code, array, literal};
use crate::naming::{field_name, pascal_case, snake_case};
use crate::{Field, FieldType, QueueContract, Scalar};

pub(super) fn write(code: &mut Code, queue: &QueueContract) {
    structure(code, queue);
    let types = pascal_case(queue.name.as_str());
    code.line("");
    code.line(&format!("impl Fields for {types} {{"));
    spec(code, queue);
    code.line("");
    writing(code, queue);
    code.line("");
    reading(code, queue);
    code.line("}");
    code.line("");
    code.line(&format!("impl TaskPayload for {types} {{"));
    code.line("    fn to_payload(&self) -> Result<Payload, Error> {");
    code.line("        contract::to_payload(self)");
    code.line("    }");
    code.line("");
    code.line("    fn from_payload(payload: &Payload) -> Result<Self, Error> {");
    code.line("        contract::from_payload(payload)");
    code.line("    }");
    code.line("}");
    code.line("");
    code.line(&format!("impl TaskType for {types} {{"));
    code.line(&format!("    const QUEUE: &'static str = {};", literal(queue.name.as_str())));
    code.line("}");
}

fn structure(code: &mut Code, queue: &QueueContract) {
    let QueueContract { number, name, fields, .. } = queue;
    let types = pascal_case(name.as_str());
    code.line("");
    code.line(&format!("/// The payload of queue {number}, `{name}`."));
    if let Some(doc) = &queue.doc {
        code.line("///");
        code.doc("", doc);
    }
    if queue.doc.is_some() || fields.iter().any(|field| field.doc.is_some()) {
        code.line("#[allow(clippy::doc_markdown, reason = \"the words are the contract's\")]");
    }
    // Not every float equals itself.
    let float = fields.iter().any(|field| field.kind.scalar == Scalar::Float64);
    let equal = if float { "PartialEq" } else { "PartialEq, Eq" };
    code.line(&format!("#[derive(Debug, Clone, {equal})]"));
    if fields.is_empty() {
        return code.line(&format!("pub struct {types} {{}}"));
    }
    code.line(&format!("pub struct {types} {{"));
    for field in fields {
        match &field.doc {
            Some(doc) => code.doc("    ", doc),
            None => code.line(&format!("    /// `{}`: `{}`.", field.name, field.kind)),
        }
        code.line(&format!("    pub {}: {},", member(field), rust_type(field.kind)));
    }
    code.line("}");
}

/// A field's name in the struct. The reader has refused what could have none.
fn member(field: &Field) -> String {
    field_name(&field.name).unwrap_or_else(|| snake_case(&field.name))
}

/// Its name while a payload is read, which has names of its own.
fn local(field: &Field) -> String {
    match member(field) {
        taken if taken == "map" || taken == "name" => format!("{taken}_"),
        free => free,
    }
}

fn rust_type(kind: FieldType) -> String {
    let scalar = match kind.scalar {
        Scalar::Int | Scalar::Int64 => "i64",
        Scalar::String => "String",
        Scalar::Bool => "bool",
        Scalar::Bytes => "Bytes",
        Scalar::Float64 => "f64",
        Scalar::Timestamp => "Timestamp",
    };
    let whole = if kind.list { format!("Vec<{scalar}>") } else { scalar.to_owned() };
    if kind.optional { format!("Option<{whole}>") } else { whole }
}

fn spec(code: &mut Code, queue: &QueueContract) {
    let pair = |name: &str, value: &str| format!("({}, {})", literal(name), literal(value));
    let fields: Vec<String> =
        queue.fields.iter().map(|field| pair(&field.name, &field.kind.to_string())).collect();
    let said: Vec<String> = queue.said.iter().map(|(name, value)| pair(name, value)).collect();
    let mut lines = vec![
        "    const SPEC: QueueSpec = QueueSpec {".to_owned(),
        format!("        number: {},", queue.number),
        format!("        name: {},", literal(queue.name.as_str())),
    ];
    lines.extend(array("        fields: &[", &fields, "],"));
    lines.extend(array("        settings: &[", &said, "],"));
    lines.push("    };".to_owned());
    // A pair is as wide as its inside, between parentheses.
    let inside = |pair: &String| pair.trim_matches(['(', ')']).to_owned();
    let calls: Vec<String> = fields.iter().chain(&said).map(inside).collect();
    code.item("    ", &lines, &calls);
}

fn writing(code: &mut Code, queue: &QueueContract) {
    if queue.fields.is_empty() {
        return code.line("    fn write(&self, _map: &mut MapWriter) {}");
    }
    let mut lines = vec!["    fn write(&self, map: &mut MapWriter) {".to_owned()];
    let mut calls = Vec::new();
    for field in &queue.fields {
        let arguments = format!("{}, &self.{}", literal(&field.name), member(field));
        lines.push(format!("        map.field({arguments});"));
        calls.push(arguments);
    }
    lines.push("    }".to_owned());
    code.item("    ", &lines, &calls);
}

fn reading(code: &mut Code, queue: &QueueContract) {
    let mut lines =
        vec!["    fn read(map: &mut MapReader<'_>) -> Result<Self, Wrong> {".to_owned()];
    if queue.fields.is_empty() {
        for line in ["while map.name()?.is_some() {", "    map.skip()?;", "}", "Ok(Self {})"] {
            lines.push(format!("        {line}"));
        }
        lines.push("    }".to_owned());
        return code.item("    ", &lines, &[]);
    }
    for field in &queue.fields {
        lines.push(format!("        let mut {} = None;", local(field)));
    }
    lines.push("        while let Some(name) = map.name()? {".to_owned());
    lines.push("            match name {".to_owned());
    for field in &queue.fields {
        let (key, value) = (literal(&field.name), local(field));
        lines.push(format!("                {key} => {value} = map.value(name)?,"));
    }
    lines.push("                _ => map.skip()?,".to_owned());
    lines.push("            }".to_owned());
    lines.push("        }".to_owned());
    lines.push("        Ok(Self {".to_owned());
    let mut calls = Vec::new();
    for field in &queue.fields {
        let call = format!("map.required({}, {})?", literal(&field.name), local(field));
        lines.push(format!("            {}: {call},", member(field)));
        calls.push(call);
    }
    lines.push("        })".to_owned());
    lines.push("    }".to_owned());
    code.item("    ", &lines, &calls);
}
