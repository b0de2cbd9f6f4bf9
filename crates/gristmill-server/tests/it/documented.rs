//! Every answer that a test gets, held to the published document: its status is listed,
//! its media type too, and its JSON fits the schema.

use serde_json::Value;

use crate::client::Answer;

/// Fails unless the document knows this answer. A path that it does not have is somebody's
/// mistake, which is answered as a problem.
pub(crate) fn check(document: &Value, method: &str, path: &str, answer: &Answer) {
    let path = path.split('?').next().unwrap();
    let Some(described) = described(document, method, path) else {
        assert!(answer.status >= 400 || method == "OPTIONS", "{method} {path}: {answer:?}");
        return;
    };
    let status = answer.status.to_string();
    let answers = &described["responses"];
    assert!(answers.get(&status).is_some(), "{method} {path} answers {status}: {answer:?}");
    let kind = answer.head.split("content-type: ").nth(1).unwrap_or_default();
    let kind = kind.split(['\r', ';']).next().unwrap();
    let schema = &answers[&status]["content"][kind]["schema"];
    assert!(!schema.is_null(), "{method} {path} {status} answers {kind}");
    if kind.ends_with("json") && !kind.contains("ndjson") {
        let value = answer.json();
        if let Err(why) = fits(document, schema, &value, "$") {
            panic!("{method} {path} {status}: {why}\n{value}");
        }
    }
}

fn described<'a>(document: &'a Value, method: &str, path: &str) -> Option<&'a Value> {
    let paths = document["paths"].as_object().unwrap();
    // An exact one goes before one with a name in it.
    let exact = paths.get(path);
    let fits = |known: &str| {
        let (known, asked): (Vec<_>, Vec<_>) =
            (known.split('/').collect(), path.split('/').collect());
        let part = |(known, asked): (&&str, &&str)| known.starts_with('{') || known == asked;
        known.len() == asked.len() && known.iter().zip(&asked).all(part)
    };
    let found = exact.or_else(|| paths.iter().find(|(known, _)| fits(known)).map(|(_, it)| it));
    found?.get(method.to_ascii_lowercase())
}

/// The part of JSON Schema that the document uses; a word that is not known here fails.
fn fits(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let Some(words) = schema.as_object() else { return Ok(()) };
    for (word, said) in words {
        let fault = |why: String| Err(format!("{at}: {why}"));
        match word.as_str() {
            "$ref" => {
                let name = said.as_str().unwrap().rsplit('/').next().unwrap();
                fits(document, &document["components"]["schemas"][name], value, at)?;
            }
            "type" => {
                let one = |kind: &Value| match kind.as_str().unwrap() {
                    "null" => value.is_null(),
                    "boolean" => value.is_boolean(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "number" => value.is_number(),
                    "string" => value.is_string(),
                    "array" => value.is_array(),
                    "object" => value.is_object(),
                    other => panic!("type {other}"),
                };
                let known =
                    said.as_array().map_or_else(|| one(said), |kinds| kinds.iter().any(one));
                if !known {
                    return fault(format!("{value} is not of type {said}"));
                }
            }
            "enum" if !said.as_array().unwrap().contains(value) => {
                return fault(format!("{value} is none of {said}"));
            }
            "const" if said != value => return fault(format!("{value} is not {said}")),
            "properties" => {
                for (name, schema) in said.as_object().unwrap() {
                    if let Some(value) = value.get(name) {
                        fits(document, schema, value, &format!("{at}.{name}"))?;
                    }
                }
            }
            "required" if value.is_object() => {
                for name in said.as_array().unwrap() {
                    if value.get(name.as_str().unwrap()).is_none() {
                        return fault(format!("{name} is missing"));
                    }
                }
            }
            "additionalProperties" => {
                let known = words.get("properties").and_then(Value::as_object);
                for (name, value) in value.as_object().into_iter().flatten() {
                    if known.is_some_and(|known| known.contains_key(name)) {
                        continue;
                    }
                    if *said == Value::Bool(false) {
                        return fault(format!("'{name}' is not documented"));
                    }
                    fits(document, said, value, &format!("{at}.{name}"))?;
                }
            }
            "items" => {
                for (n, value) in value.as_array().into_iter().flatten().enumerate() {
                    fits(document, said, value, &format!("{at}[{n}]"))?;
                }
            }
            "oneOf" | "anyOf" => {
                let all = said.as_array().unwrap();
                let tried: Vec<_> = all.iter().map(|s| fits(document, s, value, at)).collect();
                if tried.iter().all(Result::is_err) {
                    return fault(format!("it fits none: {tried:?}"));
                }
            }
            "not" if fits(document, said, value, at).is_ok() => {
                return fault(format!("it must not fit {said}"));
            }
            "not" | "enum" | "const" | "required" | "description" | "examples" | "maxItems"
            | "maxLength" | "minLength" | "minItems" | "minimum" | "maximum" | "pattern"
            | "format" => {}
            other => panic!("the schema says {other}"),
        }
    }
    Ok(())
}
