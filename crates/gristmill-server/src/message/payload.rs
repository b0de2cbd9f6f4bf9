//! A payload inside JSON: itself where it is JSON, otherwise as base64.

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

#[cfg(test)]
mod tests {
    use super::*;

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
