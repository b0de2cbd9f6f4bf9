//! What an answer means: the value, the store's own error, or what somebody on the way
//! said in its place.

use std::time::Duration;

use gristmill_core::{Result, StoreError};
use serde_json::Value;

use super::line::Answered;
use crate::wire::{Repeat, Wire};

/// An answer that is no value.
#[derive(Debug)]
pub(super) struct NoValue {
    pub(super) error: StoreError,
    /// The service did nothing, and says when to come again.
    pub(super) again: Option<Duration>,
}

/// The value of an answer.
pub(super) fn value(answered: &Answered, repeat: Repeat) -> Result<Value, NoValue> {
    if answered.status == 200 {
        return serde_json::from_slice(&answered.body).map_err(|error| NoValue {
            error: lost(repeat, format!("the answer cannot be read: {error}")),
            again: None,
        });
    }
    let said: Value = serde_json::from_slice(&answered.body).unwrap_or_default();
    let code = said.get("code").and_then(Value::as_str);
    Err(NoValue {
        error: error(answered.status, code, &said, repeat),
        again: again(answered, code),
    })
}

/// A sentence as it stands behind another one.
fn within(sentence: &str) -> String {
    let sentence = sentence.trim_end_matches('.');
    let mut letters = sentence.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// What a problem means, by what the caller can do next.
fn error(status: u16, code: Option<&str>, said: &Value, repeat: Repeat) -> StoreError {
    if let Some(told) = said.get("error").cloned()
        && let Ok(error) = StoreError::read(told)
    {
        return error;
    }
    let text = |name: &str| said.get(name).and_then(Value::as_str);
    let why = match (text("detail"), text("advice")) {
        (Some(detail), Some(advice)) => format!("{detail}; {}", within(advice)),
        (Some(detail), None) => detail.to_owned(),
        (None, _) => format!("the service answered HTTP {status}"),
    };
    if code.is_none() {
        // Not the service's own words: somebody on the way said it, and may have passed
        // the request on before.
        return match status {
            401 | 403 | 407 => StoreError::permission(why),
            404 | 405 => {
                StoreError::not_supported(format!("find the port of gristmill there: {why}"))
            }
            300..=399 => StoreError::invalid(format!("{why}, which points elsewhere: name that")),
            400..=499 => StoreError::invalid(why),
            _ => lost(repeat, why),
        };
    }
    match (status, code) {
        (_, Some("unknown_route" | "method_not_allowed")) => StoreError::not_supported(format!(
            "find the port there: {why}; the service is older than this program"
        )),
        (401 | 403 | 421, _) => StoreError::permission(why),
        (408 | 429 | 503, _) => StoreError::unavailable(why),
        (500, _) => StoreError::fault(why),
        (504, _) => lost(repeat, why),
        _ => StoreError::invalid(why),
    }
}

/// No answer to something that was sent.
pub(super) fn lost(repeat: Repeat, why: impl Into<String>) -> StoreError {
    match repeat {
        Repeat::Looks => StoreError::unavailable(why.into()),
        Repeat::Harmless | Repeat::Once => StoreError::unknown(why.into()),
    }
}

/// Most that is waited before something is asked again.
const PATIENCE: Duration = Duration::from_secs(5);

/// When to ask again: only where the service itself says that it had no room, and did
/// nothing. An answer of the store is the caller's to judge.
fn again(answered: &Answered, code: Option<&str>) -> Option<Duration> {
    if !matches!(code, Some("overloaded" | "too_slow")) {
        return None;
    }
    let seconds = answered.headers.get("retry-after")?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(PATIENCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(status: u16, body: &str, repeat: Repeat) -> StoreError {
        let headers = [("retry-after", "2")].into_iter();
        let headers = headers.map(|(n, v)| (n.parse().unwrap(), v.parse().unwrap())).collect();
        let answered = Answered { status, headers, body: body.to_owned().into() };
        value(&answered, repeat).expect_err("no value").error
    }

    #[test]
    fn what_was_done_is_never_guessed() {
        for (status, body) in [
            (504, r#"{"code":"outcome_unknown","detail":"x"}"#),
            (502, "<html>bad gateway</html>"),
            (504, ""),
            (503, "a proxy's own"),
            (500, "a proxy's own"),
            (200, "{"),
        ] {
            let write = judged(status, body, Repeat::Once);
            assert!(matches!(write, StoreError::Unknown(_)), "{status} {body}: {write:?}");
            let look = judged(status, body, Repeat::Looks);
            assert!(matches!(look, StoreError::Unavailable(_)), "{status} {body}: {look:?}");
        }
        for (status, body) in [
            (503, r#"{"code":"stopping","detail":"x"}"#),
            (503, r#"{"code":"overloaded","detail":"x"}"#),
            (429, r#"{"code":"too_many_failures","detail":"x"}"#),
        ] {
            let write = judged(status, body, Repeat::Once);
            assert!(matches!(write, StoreError::Unavailable(_)), "{status} {body}: {write:?}");
        }
    }

    #[test]
    fn the_stores_own_error_comes_through() {
        for error in [
            StoreError::busy("b"),
            StoreError::unknown("u"),
            StoreError::Closed,
            StoreError::NewerSchema { found: 9, known: 7 },
            StoreError::UnknownQueue { name: "a".to_owned(), suggestion: Some("b".to_owned()) },
        ] {
            let body = serde_json::json!({ "code": "x", "error": error.write() }).to_string();
            assert_eq!(judged(503, &body, Repeat::Once), error);
        }
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let forbidden = r#"{"code":"forbidden","detail":"token 'a' has not the scope admin","advice":"Use another."}"#;
        let said = judged(403, forbidden, Repeat::Once).to_string();
        assert_eq!(said, "no permission: token 'a' has not the scope admin; use another");
        let old = r#"{"code":"unknown_route","detail":"there is nothing at /v1/port"}"#;
        let said = judged(404, old, Repeat::Once).to_string();
        assert!(said.contains("older than this program"), "{said}");
        assert!(judged(302, "", Repeat::Once).to_string().contains("points elsewhere"));
    }
}
