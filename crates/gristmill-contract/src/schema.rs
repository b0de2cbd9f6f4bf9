//! A contract as JSON Schema, for editors, clients and validators that know no
//! contracts.

use serde_json::{Map, Value, json};

use crate::{Contract, FieldType, QueueContract, Scalar};

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema of one queue's payloads.
#[must_use]
pub fn of_queue(queue: &QueueContract) -> Value {
    let mut schema = object(queue);
    if let Value::Object(schema) = &mut schema {
        schema.insert("$schema".to_owned(), DRAFT.into());
    }
    schema
}

/// The schemas of all queues' payloads, under `$defs` by queue.
#[must_use]
pub fn of_contract(contract: &Contract) -> Value {
    let defs: Map<String, Value> =
        contract.queues.iter().map(|queue| (queue.name.to_string(), object(queue))).collect();
    json!({ "$schema": DRAFT, "$defs": defs })
}

fn object(queue: &QueueContract) -> Value {
    let properties: Map<String, Value> = queue
        .fields
        .iter()
        .map(|field| {
            let mut schema = of_type(field.kind);
            if let (Some(doc), Value::Object(schema)) = (&field.doc, &mut schema) {
                schema.insert("description".to_owned(), doc.as_str().into());
            }
            (field.name.clone(), schema)
        })
        .collect();
    let required: Vec<&str> = queue
        .fields
        .iter()
        .filter(|field| !field.kind.optional)
        .map(|field| field.name.as_str())
        .collect();
    let mut schema = json!({
        "title": queue.name.as_str(),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    if let (Some(doc), Value::Object(schema)) = (&queue.doc, &mut schema) {
        schema.insert("description".to_owned(), doc.as_str().into());
    }
    schema
}

fn of_type(kind: FieldType) -> Value {
    let scalar = match kind.scalar {
        Scalar::Int | Scalar::Int64 => {
            json!({ "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX })
        }
        Scalar::String => json!({ "type": "string" }),
        Scalar::Bool => json!({ "type": "boolean" }),
        Scalar::Bytes => json!({ "type": "string", "contentEncoding": "base64" }),
        Scalar::Float64 => json!({
            "anyOf": [{ "type": "number" }, { "enum": ["NaN", "Infinity", "-Infinity"] }]
        }),
        Scalar::Timestamp => json!({ "type": "string", "format": "date-time" }),
    };
    let whole = if kind.list { json!({ "type": "array", "items": scalar }) } else { scalar };
    if kind.optional { json!({ "anyOf": [whole, { "type": "null" }] }) } else { whole }
}
