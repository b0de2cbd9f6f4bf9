//! The published document: OpenAPI 3.1 made from the table of routes, and the same
//! for people, on one page without outside assets.

use std::fmt::Write as _;
use std::sync::OnceLock;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::access::Rule;
use crate::call::{self, Call};
use crate::problem::{Answer, KINDS, PROBLEM_JSON};
use crate::router::{ROUTES, Route};

/// What goes in and out, by name.
const SCHEMAS: &str = include_str!("schemas.json");

pub(crate) async fn document(_: Call) -> Answer {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    let text = TEXT.get_or_init(|| whole().to_string().into());
    Ok(call::json_text(StatusCode::OK, text.clone()))
}

pub(crate) async fn page(_: Call) -> Answer {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    let text = TEXT.get_or_init(|| html().into());
    Ok(typed("text/html; charset=utf-8", text.clone()))
}

pub(crate) async fn style(_: Call) -> Answer {
    Ok(typed("text/css; charset=utf-8", Bytes::from_static(include_bytes!("docs.css"))))
}

fn typed(kind: &'static str, text: Bytes) -> Response {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn schemas() -> Map<String, Value> {
    // A test holds that it can be read.
    serde_json::from_str(SCHEMAS).unwrap_or_default()
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

/// The whole document.
pub(crate) fn whole() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Value::Object(methods) = path {
            methods.insert(route.method.to_ascii_lowercase(), described(route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Gristmill",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Queues over HTTP. Ids and tokens are opaque strings; durations are \
                            written like 500ms, 5s or 1h30m; times like 2026-11-15T08:30:00Z.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Made by 'gristmill token create'. A service whose store has \
                                    no token, and that only its own machine can reach, asks for \
                                    none.",
                },
            },
        },
    })
}

fn described(route: &Route) -> Value {
    let mut answers = Map::new();
    for (status, schema) in route.answers {
        let content = if schema.contains('/') {
            json!({ *schema: { "schema": { "type": "string" } } })
        } else if *status >= 400 {
            json!({ PROBLEM_JSON: { "schema": reference(schema) } })
        } else if *schema == "PutAnswers" {
            json!({
                "application/json": { "schema": reference(schema) },
                "application/x-ndjson": { "schema": { "type": "string" } },
            })
        } else {
            json!({ "application/json": { "schema": reference(schema) } })
        };
        answers.insert(status.to_string(), json!({ "description": schema, "content": content }));
    }
    let problem = json!({ PROBLEM_JSON: { "schema": reference("Problem") } });
    let mut problems: Vec<u16> = route.problems.to_vec();
    if route.body.is_some() {
        problems.extend([400, 408, 413, 415]);
    }
    if route.rule != Rule::Open {
        problems.extend([401, 429]);
    }
    problems.extend([403, 421, 422, 503, 504]);
    for status in problems {
        let described = json!({ "description": "a problem", "content": problem });
        answers.entry(status.to_string()).or_insert(described);
    }
    answers.insert("default".to_owned(), json!({ "description": "a problem", "content": problem }));
    let mut said = json!({
        "summary": route.summary,
        "operationId": operation_id(route),
        "parameters": parameters(route),
        "responses": answers,
        "security": security(route.rule),
    });
    if let (Rule::Needs(scope) | Rule::Whole(scope), Value::Object(fields)) =
        (route.rule, &mut said)
    {
        fields.insert("x-scope".to_owned(), json!(scope.as_str()));
        if route.rule == Rule::Whole(scope) {
            fields.insert("x-queues".to_owned(), json!("all"));
        }
    }
    if let (Some(body), Value::Object(fields)) = (route.body, &mut said) {
        let mut content = json!({ "application/json": { "schema": reference(body) } });
        if let (true, Value::Object(kinds)) = (body == "Tasks", &mut content) {
            kinds.insert(
                "application/x-ndjson".to_owned(),
                json!({ "schema": { "type": "string" } }),
            );
        }
        let required = !matches!(body, "By" | "QueueSettings");
        fields
            .insert("requestBody".to_owned(), json!({ "required": required, "content": content }));
    }
    said
}

/// What is asked of who calls: nothing, or a token where there are any.
fn security(rule: Rule) -> Value {
    match rule {
        Rule::Open => json!([]),
        Rule::Any | Rule::Needs(_) | Rule::Whole(_) => json!([{ "token": [] }, {}]),
    }
}

/// A name for generated clients: `post_v1_queues_queue_tasks`.
fn operation_id(route: &Route) -> String {
    let path: String =
        route.path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let mut name = route.method.to_ascii_lowercase();
    for part in path.split('_').filter(|part| !part.is_empty()) {
        let _ = write!(name, "_{part}");
    }
    name
}

/// Ids of tasks, durations within their limits, and times, as far as a pattern can tell.
const ID: &str = r"^[1-9][0-9]{0,17}(?!\n)$";
const WAIT: &str = r"^([0-9]{1,4}ms|([0-9]|[1-5][0-9]|60)s|1m)(?!\n)$";
const BACK: &str = r"^([0-9]{1,4}s|[0-9]{1,3}m|([0-9]|1[0-9]|2[0-4])h|[0-7]d)(?!\n)$";
const STEP: &str = r"^([1-9][0-9]?m|([1-9]|1[0-9]|2[0-4])h)(?!\n)$";
const SINCE: &str = concat!(
    r"^([0-9]{1,4}[smhd]|20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T",
    r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)(?!\n)$"
);

/// What queues and schedules may be called. Some readers of patterns let a line's end
/// stand behind `$`.
fn named_like() -> Value {
    json!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}(?!\\n)$" })
}

fn parameters(route: &Route) -> Vec<Value> {
    let named = route.path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        let schema = match name {
            "token" => json!({ "type": "string", "pattern": "^[0-9a-fA-F]{32}(?!\\n)$" }),
            "id" if route.path.starts_with("/v1/tasks") => {
                json!({ "type": "string", "pattern": ID })
            }
            "id" => json!({ "type": "string", "minLength": 1 }),
            _ => named_like(),
        };
        Some(json!({ "name": name, "in": "path", "required": true, "schema": schema }))
    });
    let asked = route.query.iter().map(|(name, what)| {
        let schema = match *what {
            "boolean" => json!({ "type": "boolean" }),
            "integer" => json!({ "type": "integer", "minimum": 1, "maximum": 1000 }),
            "state" => json!({
                "enum": ["ready", "delayed", "blocked", "pending", "processing", "failed", "done"]
            }),
            "order" => json!({ "enum": ["newest", "oldest"] }),
            "name" => named_like(),
            "id" => json!({ "type": "string", "pattern": ID }),
            "wait" => json!({ "type": "string", "pattern": WAIT }),
            "back" => json!({ "type": "string", "pattern": BACK }),
            "step" => json!({ "type": "string", "pattern": STEP }),
            "since" => json!({ "type": "string", "pattern": SINCE }),
            _ => json!({ "type": "string", "minLength": 1, "pattern": "^[^\\u0000]*$" }),
        };
        json!({ "name": name, "in": "query", "required": false, "schema": schema })
    });
    named.chain(asked).collect()
}

/// The page. Nothing in it comes from outside, so that no text could be a script.
fn html() -> String {
    let mut page = String::from(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Gristmill</title>\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <link rel=\"stylesheet\" href=\"/docs/style.css\"></head><body><main><h1>Gristmill over \
         HTTP</h1><p>JSON in and out; <a href=\"/openapi.json\">the same as OpenAPI 3.1</a>. Ids \
         and tokens are opaque strings. Durations are written like <code>500ms</code>, \
         <code>5s</code> or <code>1h30m</code>, times like <code>2026-11-15T08:30:00Z</code>. A \
         field that is not known is refused.</p><pre>curl --json '{\"payload\":{\"to\":\"ada\"}}' \
         localhost:4747/v1/queues/emails/tasks</pre><h2>Routes</h2><table>",
    );
    for route in ROUTES {
        let _ = write!(
            page,
            "<tr><td><code>{}</code></td><td><code>{}</code></td><td>{}</td><td>{}",
            route.method,
            route.path,
            route.rule.as_str(),
            route.summary
        );
        if !route.query.is_empty() {
            let names: Vec<&str> = route.query.iter().map(|(name, _)| *name).collect();
            let _ = write!(page, "<br><small>?{}</small>", names.join(", "));
        }
        let named = |schema: &str| {
            if schema.contains('/') || schema == "Any" {
                schema.to_owned()
            } else {
                format!("<a href=\"#{schema}\">{schema}</a>")
            }
        };
        let body = route.body.map(named).unwrap_or_default();
        let answers: Vec<String> = route
            .answers
            .iter()
            .map(|(status, schema)| format!("{status} {}", named(schema)))
            .collect();
        let _ = write!(page, "</td><td>{body}</td><td>{}</td></tr>", answers.join("<br>"));
    }
    page += "</table><h2>Problems</h2><p>An answer that is no success is problem+json with a \
             stable <code>code</code>, what happened (<code>detail</code>), the <code>field</code> \
             at fault, and what to do (<code>advice</code>).</p><table>";
    for kind in KINDS {
        let _ = write!(
            page,
            "<tr id=\"{code}\"><td>{status}</td><td><code>{code}</code></td><td>{title}<br>\
             <small>{advice}</small></td></tr>",
            code = kind.code,
            status = kind.status,
            title = escaped(kind.title),
            advice = escaped(kind.advice),
        );
    }
    page += "</table><h2>What goes in and out</h2>";
    for (name, schema) in schemas() {
        let text = serde_json::to_string_pretty(&schema).unwrap_or_default();
        let _ = write!(page, "<h3 id=\"{name}\">{name}</h3><pre>{}</pre>", escaped(&text));
    }
    page + "</main></body></html>"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::claim::{ClaimIn, ExtendIn, ExtensionIn, ProgressIn};
    use crate::message::queue::{ByIn, QueueIn};
    use crate::message::settle::SettlementIn;
    use crate::message::task::TaskIn;
    use crate::route::operate::{OperateIn, RetryIn};
    use crate::route::tasks::{FilterIn, FindIn};
    use serde::de::DeserializeOwned;

    #[test]
    fn every_name_that_a_route_uses_is_described() {
        let known: Map<String, Value> = serde_json::from_str(SCHEMAS).expect("schemas");
        let used = ROUTES
            .iter()
            .flat_map(|route| route.answers.iter().map(|(_, schema)| *schema).chain(route.body));
        for name in used.filter(|name| !name.contains('/')) {
            assert!(known.contains_key(name), "{name}");
        }
        // Nothing points to what is not there.
        let text = whole().to_string();
        for target in text.split("#/components/schemas/").skip(1) {
            let name = target.split('"').next().expect("a name");
            assert!(known.contains_key(name), "{name}");
        }
    }

    /// The fields that serde expects, as it says itself of one that it does not.
    fn fields<T: DeserializeOwned>() -> Vec<String> {
        let Err(error) = serde_json::from_str::<T>(r#"{"~":1}"#) else { panic!("it was taken") };
        let said = error.to_string();
        let listed = said.split("expected ").nth(1).expect(&said);
        let mut names: Vec<String> =
            listed.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn the_described_fields_are_those_that_are_read() {
        let known = schemas();
        let described = |name: &str| -> Vec<String> {
            let fields = known.get(name).and_then(|schema| schema.get("properties"));
            let mut names: Vec<String> =
                fields.and_then(Value::as_object).expect(name).keys().cloned().collect();
            names.sort_unstable();
            names
        };
        let closed = |name: &str| known.get(name).and_then(|s| s.get("additionalProperties"));
        for (name, read) in [
            ("NewTask", fields::<TaskIn>()),
            ("Claim", fields::<ClaimIn>()),
            ("Extension", fields::<ExtensionIn>()),
            ("Extend", fields::<ExtendIn>()),
            ("TaskProgress", fields::<ProgressIn>()),
            ("Settlement", fields::<SettlementIn>()),
            ("QueueSettings", fields::<QueueIn>()),
            ("By", fields::<ByIn>()),
            ("Operation", fields::<OperateIn>()),
            ("Retry", fields::<RetryIn>()),
            ("Filter", fields::<FilterIn>()),
            ("Find", fields::<FindIn>()),
        ] {
            assert_eq!(described(name), read, "{name}");
            assert_eq!(closed(name), Some(&Value::Bool(false)), "{name}");
        }
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let page = html();
        assert!(
            !page.contains("http://") && !page.contains("https://") && !page.contains("<script")
        );
        for route in ROUTES {
            assert!(page.contains(route.path));
        }
    }
}
