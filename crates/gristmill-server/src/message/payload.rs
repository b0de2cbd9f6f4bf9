//! A payload inside JSON: itself where it is JSON that any reader can read, otherwise as
//! base64: one that is nested without end must not hide the tasks beside it.

use gristmill::{Encoding, Payload};
use gristmill_contract::base64;
use serde::Serialize;
use serde_json::value::RawValue;

/// A payload as clients get it: one of the two, and how its bytes are encoded.
#[derive(Debug, Serialize)]
pub(crate) struct PayloadOut {
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    encoding: &'static str,
}

impl PayloadOut {
    /// `view` is the payload in JSON by its queue's contract, where it has one.
    pub(crate) fn of(payload: &Payload, view: Option<String>) -> Self {
        let encoding = payload.encoding.as_str();
        let text = match view {
            Some(view) => Some(view),
            None if payload.encoding == Encoding::Json => {
                std::str::from_utf8(&payload.bytes).ok().map(str::to_owned)
            }
            None => None,
        };
        let text = text.filter(|text| !is_deep(text.as_bytes()));
        match text.and_then(|text| RawValue::from_string(text).ok()) {
            Some(json) => PayloadOut { payload: Some(json), payload_base64: None, encoding },
            None => PayloadOut {
                payload: None,
                payload_base64: Some(base64::encode(&payload.bytes)),
                encoding,
            },
        }
    }
}

/// As deep as common readers of JSON go.
const DEPTH: usize = 128;

/// Whether something in it is nested deeper than that.
fn is_deep(json: &[u8]) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    json.iter().any(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        // The answer around it is some levels deep itself.
        depth > DEPTH - 8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nested_too_deep_is_told_from_what_looks_so() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(!is_deep(nested(120).as_bytes()) && is_deep(nested(121).as_bytes()));
        assert!(!is_deep(format!("\"{}\"", nested(500)).as_bytes()), "a text is flat");
        assert!(!is_deep(format!("\"\\\"{}\"", "[".repeat(500)).as_bytes()), "an escaped quote");
        assert!(!is_deep(format!("[{}]", vec!["[{}]"; 500].join(",")).as_bytes()), "side by side");
    }

    #[test]
    fn a_payload_is_itself_where_it_is_json() {
        let json = |payload: &Payload, view: Option<&str>| {
            serde_json::to_string(&PayloadOut::of(payload, view.map(str::to_owned))).expect("json")
        };
        assert_eq!(
            json(&Payload::json(r#"{"b":1, "a":2.50}"#), None),
            r#"{"payload":{"b":1, "a":2.50},"encoding":"json"}"#
        );
        assert_eq!(
            json(&Payload::json("not json"), None),
            r#"{"payload_base64":"bm90IGpzb24=","encoding":"json"}"#
        );
        assert_eq!(
            json(&Payload::raw(vec![0xff, 0x00]), None),
            r#"{"payload_base64":"/wA=","encoding":"raw"}"#
        );
        assert_eq!(
            json(&Payload::msgpack(vec![0x01]), Some("{}")),
            r#"{"payload":{},"encoding":"msgpack"}"#
        );
    }
}
