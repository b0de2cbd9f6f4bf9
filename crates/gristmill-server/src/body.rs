//! Reading a body: of a type that is read here, within its size, in time, and with
//! room for it in memory.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tokio::sync::OwnedSemaphorePermit;

use crate::limits::{self, BODY};
use crate::problem::{
    Answer, BAD_REQUEST, INVALID, NOT_JSON, Problem, TOO_LARGE, TOO_SLOW, UNKNOWN_FIELD, WRONG_TYPE,
};
use crate::service::Service;

/// Bytes for which room is taken before any came.
const FIRST: usize = 16 << 10;

/// A whole body, and its room in memory for as long as it is held.
pub(crate) struct Whole {
    pub(crate) bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

/// The body's media type, without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let said = headers.get(header::CONTENT_TYPE).and_then(|said| said.to_str().ok());
    let essence = said.unwrap_or_default().split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// Refuses what is not said to be JSON. A form of some page cannot say so.
pub(crate) fn expect_json(headers: &HeaderMap) -> Answer<()> {
    let said = media_type(headers);
    if said == "application/json" || (said.starts_with("application/") && said.ends_with("+json")) {
        return Ok(());
    }
    let shown: String = said.chars().take(80).collect();
    let shown = if shown.is_empty() { "nothing".to_owned() } else { format!("'{shown}'") };
    Err(Problem::new(&WRONG_TYPE, format!("the content type is {shown}, not application/json")))
}

/// Reads all of it.
pub(crate) async fn read(service: &Service, headers: &HeaderMap, body: Body) -> Answer<Whole> {
    let limit = limits::body_bytes(service.store.limits());
    let too_large = || Problem::new(&TOO_LARGE, format!("a body has at most {limit} bytes here"));
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let length = length.and_then(|length| length.parse::<usize>().ok());
    let mut body = body;
    if length.is_some_and(|length| length > limit) {
        if !headers.contains_key(header::EXPECT) {
            let_it_come(&mut body).await;
        }
        return Err(too_large());
    }
    // Room is taken as bytes come: who only says that much is to come holds none.
    let reading = async {
        let mut held = length.unwrap_or(FIRST).clamp(1, FIRST);
        let mut room = service.room(held).await?;
        let mut bytes = BytesMut::with_capacity(held);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Problem::new(&BAD_REQUEST, error.to_string()))?;
            if let Some(data) = frame.data_ref() {
                if bytes.len() + data.len() > limit {
                    let_it_come(&mut body).await;
                    return Err(too_large());
                }
                if bytes.len() + data.len() > held {
                    let more = data.len().max(held);
                    room.merge(service.more_room(more)?);
                    held += more;
                }
                bytes.extend_from_slice(data);
            }
        }
        Ok(Whole { bytes: bytes.freeze(), _room: room })
    };
    match tokio::time::timeout(BODY, reading).await {
        Ok(read) => read,
        Err(_) => Err(Problem::new(&TOO_SLOW, format!("the body took over {BODY:?}"))),
    }
}

/// Most of a body that is let come after it was refused, and how long a pause ends it.
const LET_COME: (usize, Duration) = (16 << 20, Duration::from_millis(200));

/// Takes some of what a client still sends and drops it: closed in the middle, the
/// connection would lose the answer on its way.
async fn let_it_come(body: &mut Body) {
    let mut came = 0;
    while came < LET_COME.0 {
        match tokio::time::timeout(LET_COME.1, body.frame()).await {
            Ok(Some(Ok(frame))) => came += frame.data_ref().map_or(0, Bytes::len).max(1),
            _ => return,
        }
    }
}

/// Reads JSON, and says which field is wrong.
pub(crate) fn parse<'a, T: serde::Deserialize<'a>>(text: &'a [u8]) -> Answer<T> {
    // To know the way to a field costs as much again: it is asked for where one is wrong.
    if let Ok(value) = serde_json::from_slice(text) {
        return Ok(value);
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        said(&error.into_inner(), &path)
    })?;
    reader.end().map_err(|error| said(&error, "."))?;
    Ok(value)
}

/// What serde says, as a problem.
fn said(error: &serde_json::Error, path: &str) -> Box<Problem> {
    let text = error.to_string();
    // The place tells nothing where the field is named.
    let plain = text.split(" at line ").next().unwrap_or(&text);
    // What was sent is quoted in part, and may be long.
    let plain: String = plain.chars().take(300).collect();
    if !error.is_data() {
        let (line, column) = (error.line(), error.column());
        return Problem::new(&NOT_JSON, format!("{plain} at line {line} column {column}"));
    }
    let kind = if plain.starts_with("unknown field") { &UNKNOWN_FIELD } else { &INVALID };
    let missing = plain.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
    let problem = Problem::new(kind, plain.clone());
    match (path, missing) {
        (".", Some(field)) => problem.at(field),
        (path, Some(field)) => problem.at(format!("{path}.{field}")),
        (".", None) => problem,
        (path, None) => problem.at(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Inner {
        queue: String,
        max: u8,
    }

    #[test]
    fn the_field_at_fault_is_named() {
        for (text, code, field) in [
            (
                r#"[{"queue":"a","max":1},{"queue":"a","maks":2}]"#,
                "unknown_field",
                Some("[1].maks"),
            ),
            (r#"[{"queue":"a"}]"#, "invalid", Some("[0].max")),
            (r#"[{"queue":"a","max":"x"}]"#, "invalid", Some("[0].max")),
            (r#"[{"queue":"a","max":999}]"#, "invalid", Some("[0].max")),
            (r#"[{"#, "not_json", None),
            (r#"[]]"#, "not_json", None),
            ("", "not_json", None),
        ] {
            let problem = parse::<Vec<Inner>>(text.as_bytes()).expect_err(text);
            assert_eq!((problem.code(), problem.at_field()), (code, field), "{text}");
        }
    }
}
