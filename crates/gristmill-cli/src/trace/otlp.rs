//! A span as OTLP has it in JSON, in the words of OpenTelemetry's conventions for
//! messaging.

use serde_json::{Value, json};

/// A span that has ended. Times are microseconds since 1970.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) trace: String,
    pub(super) id: String,
    pub(super) parent: Option<String>,
    pub(super) name: &'static str,
    pub(super) began: i64,
    pub(super) ended: i64,
    pub(super) facts: Vec<(&'static str, Value)>,
}

/// What kinds of spans are numbered in OTLP.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
const PRODUCER: u8 = 4;
const CONSUMER: u8 = 5;

pub(super) fn span(finished: &Finished) -> Value {
    let fact = |name: &str| finished.facts.iter().find(|(known, _)| *known == name);
    let queue = fact("queue").and_then(|(_, queue)| queue.as_str());
    let (operation, kind) = match finished.name {
        "send" => (Some("send"), PRODUCER),
        "receive" => (Some("receive"), CLIENT),
        "attempt" => (Some("process"), CONSUMER),
        _ => (None, INTERNAL),
    };
    let name = match (operation, queue) {
        (Some(operation), Some(queue)) => format!("{operation} {queue}"),
        _ => format!("store {}", finished.name),
    };
    let mut attributes = vec![attribute("messaging.system", &json!("gristmill"))];
    if let Some(operation) = operation {
        attributes.push(attribute("messaging.operation.type", &json!(operation)));
        attributes.push(attribute("messaging.operation.name", &json!(operation)));
    }
    for (name, value) in &finished.facts {
        let name = match *name {
            "queue" => "messaging.destination.name".to_owned(),
            "id" => "messaging.message.id".to_owned(),
            name => format!("gristmill.{name}"),
        };
        attributes.push(attribute(&name, value));
    }
    let outcome = fact("outcome").and_then(|(_, outcome)| outcome.as_str());
    let status = match outcome {
        Some(outcome @ ("error" | "fail" | "timed_out")) => {
            json!({ "code": 2, "message": outcome })
        }
        _ => json!({}),
    };
    let nanos = |micros: i64| (i128::from(micros) * 1_000).to_string();
    json!({
        "traceId": finished.trace,
        "spanId": finished.id,
        "parentSpanId": finished.parent.as_deref().unwrap_or_default(),
        "name": name,
        "kind": kind,
        "startTimeUnixNano": nanos(finished.began),
        "endTimeUnixNano": nanos(finished.ended),
        "attributes": attributes,
        "status": status,
    })
}

/// A request with these spans.
pub(super) fn request(service: &str, spans: &[Value]) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    let resource = json!({ "attributes": [attribute("service.name", &json!(service))] });
    let scope = json!({ "name": "gristmill", "version": version });
    json!({ "resourceSpans": [
        { "resource": resource, "scopeSpans": [{ "scope": scope, "spans": spans }] },
    ] })
}

fn attribute(name: &str, value: &Value) -> Value {
    let value = match value {
        Value::Bool(is) => json!({ "boolValue": is }),
        // 64 bits are text in JSON.
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::String(text) => json!({ "stringValue": text }),
        other => json!({ "stringValue": other.to_string() }),
    };
    json!({ "key": name, "value": value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_a_consumers_span() {
        let finished = Finished {
            trace: "0af7651916cd43dd8448eb211c80319c".to_owned(),
            id: "b7ad6b7169203331".to_owned(),
            parent: None,
            name: "attempt",
            began: 1_000_000,
            ended: 1_000_500,
            facts: vec![
                ("queue", json!("emails")),
                ("attempt", json!(2)),
                ("outcome", json!("fail")),
            ],
        };
        let span = span(&finished);
        assert_eq!((&span["name"], &span["kind"]), (&json!("process emails"), &json!(5)));
        assert_eq!(span["endTimeUnixNano"], "1000500000");
        assert_eq!(span["status"]["code"], 2);
        let attributes = span["attributes"].to_string();
        for part in [
            "\"messaging.destination.name\",\"value\":{\"stringValue\":\"emails\"}",
            "{\"intValue\":\"2\"}",
        ] {
            assert!(attributes.contains(part), "{attributes}");
        }
    }
}
