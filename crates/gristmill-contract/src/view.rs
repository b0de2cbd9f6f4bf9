//! The JSON view of a queue's payloads: JSON becomes a payload at the door, if
//! it fits, and a payload becomes JSON for those who look.

use bytes::Bytes;
use gristmill_core::name::did_you_mean;
use gristmill_core::{Payload, Timestamp};
use serde_json::{Map, Value};

use crate::wire::{FieldValue, MapReader, MapWriter, Wrong, read};
use crate::{FieldType, QueueContract, Scalar};

/// Calls a function over the Rust type of a field's type.
macro_rules! typed {
    ($kind:expr, $call:ident ( $($argument:expr),* )) => {
        match ($kind.scalar, $kind.list) {
            (Scalar::Int | Scalar::Int64, false) => $call::<i64>($($argument),*),
            (Scalar::Int | Scalar::Int64, true) => $call::<Vec<i64>>($($argument),*),
            (Scalar::String, false) => $call::<String>($($argument),*),
            (Scalar::String, true) => $call::<Vec<String>>($($argument),*),
            (Scalar::Bool, false) => $call::<bool>($($argument),*),
            (Scalar::Bool, true) => $call::<Vec<bool>>($($argument),*),
            (Scalar::Bytes, false) => $call::<Bytes>($($argument),*),
            (Scalar::Bytes, true) => $call::<Vec<Bytes>>($($argument),*),
            (Scalar::Float64, false) => $call::<f64>($($argument),*),
            (Scalar::Float64, true) => $call::<Vec<f64>>($($argument),*),
            (Scalar::Timestamp, false) => $call::<Timestamp>($($argument),*),
            (Scalar::Timestamp, true) => $call::<Vec<Timestamp>>($($argument),*),
        }
    };
}

/// Most mistakes that are told of one payload.
const TOLD: usize = 20;

/// Turns JSON into a payload of the queue.
///
/// # Errors
/// Everything that does not fit, each with its field's path.
pub fn to_payload(queue: &QueueContract, json: &Value) -> Result<Payload, Vec<Wrong>> {
    let Value::Object(given) = json else {
        let wrong = Wrong::new(format!("an object with the fields of {} is wanted", queue.name));
        return Err(vec![wrong]);
    };
    let mut wrong = strangers(queue, given);
    let mut map = MapWriter::new();
    for field in &queue.fields {
        let value = given.get(&field.name);
        let added = match value {
            None | Some(Value::Null) if field.kind.optional => Ok(()),
            None => Err(Wrong::new("is missing")),
            Some(value) => typed!(field.kind, add(&mut map, &field.name, value)),
        };
        wrong.extend(added.err().map(|wrong| wrong.within(&field.name)));
    }
    wrong.truncate(TOLD);
    if !wrong.is_empty() {
        return Err(wrong);
    }
    map.finish().map(Payload::msgpack).map_err(|wrong| vec![wrong])
}

/// Turns the text of a JSON value into a payload of the queue.
///
/// # Errors
/// When it is no JSON, or everything that does not fit, as one sentence.
pub fn text_to_payload(queue: &QueueContract, json: &[u8]) -> Result<Payload, String> {
    let value = serde_json::from_slice(json).map_err(|error| format!("it is not JSON: {error}"))?;
    to_payload(queue, &value).map_err(|wrong| sentence(&wrong))
}

/// What does not fit, in one sentence.
#[must_use]
pub fn sentence(wrong: &[Wrong]) -> String {
    wrong.iter().map(Wrong::to_string).collect::<Vec<_>>().join("; ")
}

/// Fields that the contract does not have: at the door that is a mistake, most
/// likely a misspelt name.
fn strangers(queue: &QueueContract, given: &Map<String, Value>) -> Vec<Wrong> {
    let known = || queue.fields.iter().map(|field| field.name.as_str());
    let strange = given.keys().filter(|name| queue.field(name).is_none());
    let told = strange.map(|name| {
        let shown: String = name.chars().take(64).collect();
        let what = match did_you_mean(name, known()) {
            Some(near) => format!("there is no such field; did you mean '{near}'?"),
            None => "there is no such field".to_owned(),
        };
        Wrong::new(what).within(&shown)
    });
    told.take(TOLD).collect()
}

fn add<T: FieldValue>(map: &mut MapWriter, name: &str, value: &Value) -> Result<(), Wrong> {
    map.field(name, &T::from_json(value)?);
    Ok(())
}

/// Turns a payload, in MessagePack or JSON, into the text of a JSON object
/// with the contract's fields in their order.
///
/// # Errors
/// When the payload is not of the contract.
pub fn to_json(queue: &QueueContract, payload: &Payload) -> Result<String, Wrong> {
    let mut values: Vec<Option<Value>> = queue.fields.iter().map(|_| None).collect();
    read(payload, |map| {
        while let Some(name) = map.name()? {
            let at = queue.fields.iter().position(|field| field.name == name);
            match at.and_then(|at| queue.fields.get(at).zip(values.get_mut(at))) {
                Some((field, place)) => *place = Some(value(map, name, field.kind)?),
                None => map.skip()?,
            }
        }
        Ok(())
    })?;
    let mut text = String::from("{");
    for (field, value) in queue.fields.iter().zip(values) {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            if field.kind.optional {
                continue;
            }
            return Err(Wrong::new("is missing").within(&field.name));
        };
        if text.len() > 1 {
            text.push(',');
        }
        // Names of fields need no escapes.
        text.push_str(&format!("\"{}\":{value}", field.name));
    }
    text.push('}');
    Ok(text)
}

fn value(map: &mut MapReader<'_>, name: &str, kind: FieldType) -> Result<Value, Wrong> {
    fn of<T: FieldValue>(map: &mut MapReader<'_>, name: &str) -> Result<Value, Wrong> {
        // Nil in a field that is not optional is found missing at the end.
        let value = map.value::<Option<T>>(name)?.flatten();
        Ok(value.map_or(Value::Null, |value| value.to_json()))
    }
    typed!(kind, of(map, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn queue() -> QueueContract {
        let text = "id: 1\nname: emails\nfields:\n  - {name: to, type: \"string\"}\n  \
                    - {name: user_ids, type: \"[]int64\"}\n  - {name: body, type: \"bytes?\"}\n  \
                    - {name: at, type: \"timestamp?\"}\n  - {name: score, type: \"float64?\"}\n";
        QueueContract::from_text(text).expect("a contract")
    }

    #[test]
    fn json_comes_back_as_it_was_given() {
        let queue = queue();
        let given = json!({
            "user_ids": [1, -2, i64::MAX], "to": "ada", "body": "aGk=",
            "at": "2026-11-15T08:30:00.000001Z", "score": 5,
        });
        let payload = to_payload(&queue, &given).expect("a payload");
        let text = to_json(&queue, &payload).expect("json");
        assert!(
            text.starts_with(r#"{"to":"ada","user_ids":[1,-2,9223372036854775807],"#),
            "{text}"
        );
        let mut back: Value = serde_json::from_str(&text).expect("json");
        assert_eq!(back["score"], json!(5.0));
        back["score"] = json!(5);
        assert_eq!(back, given);
    }

    #[test]
    fn what_does_not_fit_is_told_by_path() {
        let queue = queue();
        for (given, said) in [
            (json!([]), "an object with the fields of emails is wanted"),
            (json!({"to": "a"}), "user_ids: is missing"),
            (json!({"to": 5, "user_ids": []}), "to: a number was given and a string is wanted"),
            (
                json!({"to": "a", "user_ids": [1, "2"]}),
                "user_ids[1]: a string was given and an int64 is wanted",
            ),
            (json!({"to": "a", "user_ids": [1.5]}), "user_ids[0]: 1.5 is not a whole number"),
            (
                json!({"to": "a", "user_ids": [u64::MAX]}),
                "user_ids[0]: 18446744073709551615 is more than an int64 holds",
            ),
            (
                serde_json::from_str(r#"{"to": "a", "user_ids": [-9223372036854775809]}"#)
                    .expect("JSON"),
                "user_ids[0]: a whole number from -9223372036854775808 to 9223372036854775807 is \
                 wanted",
            ),
            (json!({"to": "a", "user_ids": [], "body": "?"}), "body: the text is not base64"),
            (
                json!({"user_idz": "a", "to": null, "user_ids": []}),
                "user_idz: there is no such field; did you mean 'user_ids'?; \
                 to: null was given and a string is wanted",
            ),
        ] {
            let wrong = to_payload(&queue, &given).expect_err("a misfit");
            assert_eq!(sentence(&wrong), said);
        }
    }

    #[test]
    fn fields_of_a_newer_writer_are_skipped() {
        let queue = queue();
        let newer = br#"{"to":"ada","user_ids":[],"colour":{"deep":[1,{"x":null}]},"body":null}"#;
        let payload = Payload::json(newer.to_vec());
        assert_eq!(to_json(&queue, &payload).as_deref(), Ok(r#"{"to":"ada","user_ids":[]}"#));
    }
}
