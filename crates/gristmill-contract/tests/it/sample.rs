//! Contracts for these tests, and values of every type.

use bytes::Bytes;
use gristmill_contract::wire::{Fields, MapReader, MapWriter, QueueSpec, Wrong};
use gristmill_contract::{Contract, QueueContract, Source, read};
use serde_json::{Value, json};

/// Reads a contract that must be fine.
pub(crate) fn contract(text: &str) -> Contract {
    let source = Source { name: "queues.yaml".to_owned(), text: text.to_owned() };
    read(&[source]).unwrap_or_else(|error| panic!("{error}"))
}

/// A queue with a field of every type, alone, in a list and optional.
pub(crate) fn every_type() -> QueueContract {
    let mut text = String::from("queues:\n  - id: 1\n    name: all\n    fields:\n");
    for scalar in ["int", "int64", "string", "bool", "bytes", "float64", "timestamp"] {
        for (name, kind) in [("one", "{}"), ("many", "[]{}"), ("maybe", "{}?"), ("list", "[]{}?")] {
            let kind = kind.replace("{}", scalar);
            text += &format!("      - {{name: {scalar}_{name}, type: \"{kind}\"}}\n");
        }
    }
    contract(&text).queues.remove(0)
}

/// A value of that queue with everything that is hard to carry.
pub(crate) fn hard_value() -> Value {
    let ints = json!([
        0,
        -1,
        127,
        128,
        255,
        256,
        -32,
        -33,
        -128,
        -129,
        32_767,
        65_535,
        65_536,
        -32_769,
        2_147_483_648_i64,
        4_294_967_296_i64,
        9_007_199_254_740_993_i64,
        i64::MAX,
        i64::MIN
    ]);
    let texts =
        json!(["", "a", "x".repeat(31), "y".repeat(32), "z".repeat(300), "ünï \u{1f980}\n\"\\"]);
    let bytes = json!(["", "AA==", "/////w==", "aGVsbG8="]);
    let floats = json!([0.1, 1.5e300, 5e-324, -2.5, 1.0, "Infinity"]);
    let times =
        json!(["1970-01-01T00:00:00Z", "2026-11-15T08:30:00.000001Z", "1969-12-31T23:59:59.9Z"]);
    json!({
        "int_one": -1, "int_many": ints, "int_maybe": 0, "int_list": [],
        "int64_one": i64::MAX, "int64_many": ints, "int64_list": ints,
        "string_one": "ada", "string_many": texts, "string_maybe": "",
        "bool_one": true, "bool_many": [true, false], "bool_maybe": false, "bool_list": [],
        "bytes_one": "AP8=", "bytes_many": bytes, "bytes_maybe": "",
        "float64_one": 0.30000000000000004, "float64_many": floats, "float64_maybe": 2.5,
        "timestamp_one": "2026-11-15T08:30:00Z", "timestamp_many": times,
        "timestamp_maybe": "9999-01-01T00:00:00Z",
    })
}

/// What is generated for the sample contract of the documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Emails {
    pub(crate) to: String,
    pub(crate) user_id: i64,
    pub(crate) body: Option<Bytes>,
}

impl Fields for Emails {
    const SPEC: QueueSpec = QueueSpec {
        number: 1,
        name: "emails",
        fields: &[("to", "string"), ("user_id", "int64"), ("body", "bytes?")],
        settings: &[],
    };

    fn write(&self, map: &mut MapWriter) {
        map.field("to", &self.to);
        map.field("user_id", &self.user_id);
        map.field("body", &self.body);
    }

    fn read(map: &mut MapReader<'_>) -> Result<Self, Wrong> {
        let mut to = None;
        let mut user_id = None;
        let mut body = None;
        while let Some(name) = map.name()? {
            match name {
                "to" => to = map.value(name)?,
                "user_id" => user_id = map.value(name)?,
                "body" => body = map.value(name)?,
                _ => map.skip()?,
            }
        }
        Ok(Self {
            to: map.required("to", to)?,
            user_id: map.required("user_id", user_id)?,
            body: map.required("body", body)?,
        })
    }
}
