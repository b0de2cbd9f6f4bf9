//! Every route of the router's own table, with every scope, on a queue of the token's
//! and on a foreign one.

use gristmill_server::Scope;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::client::{Answer, Site, read, request, token};
use crate::port::asked::{self as port, About};

/// Who may use what, said a second time: a route that is added, or whose rule is changed,
/// is thought about here.
const RULES: &[(&str, &str)] = &[
    ("GET /docs", "open"),
    ("GET /docs/style.css", "open"),
    ("GET /livez", "open"),
    ("GET /metrics", "read"),
    ("GET /openapi.json", "open"),
    ("GET /readyz", "open"),
    ("GET /v1", "any"),
    ("GET /v1/audit", "admin"),
    ("POST /v1/claims", "work"),
    ("POST /v1/claims/{token}/extend", "work"),
    ("GET /v1/events", "read"),
    ("POST /v1/extensions", "work"),
    ("POST /v1/find", "read"),
    ("GET /v1/minutes", "read"),
    ("GET /v1/operations", "read"),
    ("GET /v1/operations/{id}", "read"),
    ("POST /v1/operations/{id}/stop", "admin"),
    ("GET /v1/port", "any"),
    ("POST /v1/port/checkpoint", "work"),
    ("POST /v1/port/claim", "work"),
    ("POST /v1/port/declare_queue", "admin of all"),
    ("POST /v1/port/declare_schedule", "admin of all"),
    ("POST /v1/port/diagnose", "admin of all"),
    ("POST /v1/port/document", "work"),
    ("POST /v1/port/documents", "read of all"),
    ("POST /v1/port/endings", "read of all"),
    ("POST /v1/port/extend", "work"),
    ("POST /v1/port/find", "read"),
    ("POST /v1/port/fire", "admin of all"),
    ("POST /v1/port/get", "read"),
    ("POST /v1/port/import", "admin of all"),
    ("POST /v1/port/list", "read"),
    ("POST /v1/port/minutes", "read"),
    ("POST /v1/port/open_under", "work"),
    ("POST /v1/port/operate", "admin of all"),
    ("POST /v1/port/override_queue", "admin of all"),
    ("POST /v1/port/pause_queue", "admin of all"),
    ("POST /v1/port/pause_schedule", "admin of all"),
    ("POST /v1/port/put", "put"),
    ("POST /v1/port/queues", "work"),
    ("POST /v1/port/reach", "work"),
    ("POST /v1/port/reclaim", "work"),
    ("POST /v1/port/register_contract", "admin of all"),
    ("POST /v1/port/remove_schedule", "admin of all"),
    ("POST /v1/port/reset_queue", "admin of all"),
    ("POST /v1/port/save_document", "work"),
    ("POST /v1/port/schedules", "read"),
    ("POST /v1/port/settle", "work"),
    ("POST /v1/port/stats", "read"),
    ("POST /v1/port/sweep", "work"),
    ("POST /v1/port/wait", "work"),
    ("POST /v1/port/wait_ended", "read of all"),
    ("GET /v1/queues", "read"),
    ("GET /v1/queues/{queue}", "read"),
    ("PATCH /v1/queues/{queue}", "admin"),
    ("PUT /v1/queues/{queue}", "admin"),
    ("POST /v1/queues/{queue}/pause", "admin"),
    ("POST /v1/queues/{queue}/reset", "admin"),
    ("POST /v1/queues/{queue}/resume", "admin"),
    ("POST /v1/queues/{queue}/tasks", "put"),
    ("GET /v1/schedules", "read"),
    ("DELETE /v1/schedules/{schedule}", "admin"),
    ("GET /v1/schedules/{schedule}", "read"),
    ("PATCH /v1/schedules/{schedule}", "admin"),
    ("PUT /v1/schedules/{schedule}", "admin"),
    ("POST /v1/schedules/{schedule}/fire", "admin"),
    ("POST /v1/schedules/{schedule}/pause", "admin"),
    ("POST /v1/schedules/{schedule}/resume", "admin"),
    ("POST /v1/settlements", "work"),
    ("GET /v1/stats", "read"),
    ("GET /v1/tasks", "read"),
    ("POST /v1/tasks/cancel", "admin"),
    ("POST /v1/tasks/discard", "admin"),
    ("POST /v1/tasks/resolve", "admin"),
    ("POST /v1/tasks/retry", "admin"),
    ("GET /v1/tasks/{id}", "read"),
    ("GET /v1/workers", "read"),
];

/// What stands in one queue.
struct Ground {
    queue: &'static str,
    pending: String,
    failed: String,
    claimed: String,
    lease: String,
    operation: String,
}

/// Puts something of everything on a queue.
async fn ground(site: &Site, root: &str, queue: &'static str) -> Ground {
    let post = async |path: String, body: Value| {
        site.by(root, "POST", &path, &body.to_string()).await.json()
    };
    let put = async |key: &str| {
        let body = json!({ "payload": { "of": queue }, "key": format!("{key}-{queue}") });
        post(format!("/v1/queues/{queue}/tasks"), body).await["id"].as_str().unwrap().to_owned()
    };
    let ask = json!({ "queues": [queue], "worker": format!("worker-{queue}") });
    let failed = put("failed").await;
    let claim = post("/v1/claims".to_owned(), ask.clone()).await;
    let fail = json!([{ "id": failed, "token": token(&claim), "outcome": "fail", "error": "no" }]);
    post("/v1/settlements".to_owned(), fail).await;
    let claimed = put("claimed").await;
    let claim = post("/v1/claims".to_owned(), ask).await;
    let schedule = json!({ "queue": queue, "every": "1h", "payload": 1 }).to_string();
    let path = format!("/v1/schedules/nightly-{queue}");
    assert_eq!(site.by(root, "PUT", &path, &schedule).await.status, 201);
    let filter = json!({ "filter": { "queue": queue, "key": "nobody" } });
    let operation = post("/v1/tasks/retry".to_owned(), filter).await;
    let operation = operation["id"].as_str().unwrap().to_owned();
    let pending = put("pending").await;
    Ground { queue, pending, failed, claimed, lease: token(&claim).to_owned(), operation }
}

/// How a route is asked about what stands there.
fn asked(route: &str, ground: &Ground) -> (String, String) {
    let Ground { queue, pending, failed, claimed, lease, operation } = ground;
    let (_, path) = route.split_once(' ').unwrap();
    let id = if path.contains("operations") { operation } else { pending };
    let path = path
        .replace("{queue}", queue)
        .replace("{schedule}", &format!("nightly-{queue}"))
        .replace("{token}", lease)
        .replace("{id}", id);
    let body = match route {
        _ if path.starts_with("/v1/port/") => {
            let about = About { queue, pending, failed, claimed, lease };
            port::asked(path.trim_start_matches("/v1/port/"), &about)
        }
        "POST /v1/queues/{queue}/tasks" => json!({ "payload": 1 }),
        "POST /v1/claims" => json!({ "queues": [queue], "worker": "w" }),
        "POST /v1/claims/{token}/extend" => json!({ "lease": "5m" }),
        // It says that the lease is of a queue of its own.
        "POST /v1/extensions" => json!([{ "queue": "ours", "token": lease, "lease": "5m" }]),
        "POST /v1/settlements" => json!([{ "id": claimed, "token": lease, "outcome": "done" }]),
        "POST /v1/find" => json!({ "queue": queue, "keys": [format!("pending-{queue}")] }),
        "POST /v1/tasks/cancel" => json!({ "ids": [pending] }),
        "POST /v1/tasks/retry" | "POST /v1/tasks/discard" | "POST /v1/tasks/resolve" => {
            json!({ "ids": [failed] })
        }
        "PUT /v1/queues/{queue}" | "PATCH /v1/queues/{queue}" => {
            json!({ "settings": { "max_attempts": 7 } })
        }
        "PUT /v1/schedules/{schedule}" => json!({ "queue": queue, "every": "2h", "payload": 2 }),
        "PATCH /v1/schedules/{schedule}" => json!({ "every": "3h" }),
        _ if route.starts_with("POST") => json!({}),
        _ => {
            return (
                format!(
                    "{path}{}",
                    if path == "/v1/minutes" { format!("?queue={queue}") } else { String::new() }
                ),
                String::new(),
            );
        }
    };
    (path, body.to_string())
}

/// Asks; of a stream of events only the head is read.
async fn ask(site: &Site, bearer: Option<&str>, route: &str, ground: &Ground) -> Answer {
    let (path, body) = asked(route, ground);
    let method = route.split(' ').next().unwrap();
    let bearer = bearer.map(|token| format!("Bearer {token}"));
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
    if path != "/v1/events" {
        return site.send(method, &path, &headers, &body).await;
    }
    let mut stream = BufReader::new(site.connect().await);
    stream.write_all(&request(method, &path, &headers, &body)).await.unwrap();
    read_head(&mut stream).await
}

/// The answer, without the events that may come.
async fn read_head(stream: &mut BufReader<TcpStream>) -> Answer {
    let begin = stream.fill_buf().await.unwrap();
    if begin.starts_with(b"HTTP/1.1 200") {
        return Answer { status: 200, head: String::new(), text: String::new() };
    }
    read(stream).await
}

/// What of a queue must not change under anybody else's hands.
async fn stands(site: &Site, root: &str, ground: &Ground) -> Value {
    let queue = ground.queue;
    let get = async |path: String| site.by(root, "GET", &path, "").await.json();
    let task = get(format!("/v1/tasks/{}", ground.claimed)).await;
    let mut stats = get(format!("/v1/stats?queue={queue}")).await;
    // Time passes for them.
    stats[0]["wait_ms"] = Value::Null;
    stats[0]["backlog_seconds"] = Value::Null;
    json!({
        "stats": stats,
        "lease": task["lease"]["until"],
        "queue": get(format!("/v1/queues/{queue}")).await,
        "schedule": get(format!("/v1/schedules/nightly-{queue}")).await["every"],
        "paused": get(format!("/v1/schedules/nightly-{queue}")).await["paused"],
        "operation": get(format!("/v1/operations/{}", ground.operation)).await["stopped_by"],
    })
}

/// Asks until a new token is known.
async fn until_known(site: &Site, bearer: &str, route: &str, ground: &Ground) -> Answer {
    while site.by(bearer, "GET", "/v1", "").await.status != 200 {
        tokio::task::yield_now().await;
    }
    ask(site, Some(bearer), route, ground).await
}

/// The same but for its last digit.
fn other(token: &str) -> String {
    let (start, last) = token.split_at(token.len() - 1);
    format!("{start}{}", if last == "0" { "1" } else { "0" })
}

fn routes(document: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, said) in methods.as_object().unwrap() {
            let open = said["security"].as_array().unwrap().is_empty();
            let rule = said["x-scope"].as_str().unwrap_or(if open { "open" } else { "any" });
            let whole = if said["x-queues"] == "all" { " of all" } else { "" };
            let route = format!("{} {path}", method.to_ascii_uppercase());
            found.push((route, format!("{rule}{whole}")));
        }
    }
    found
}

#[tokio::test]
async fn every_route_has_the_rule_that_is_meant() {
    let site = Site::with(&[]).await;
    let mut found = routes(&site.get("/openapi.json").await.json());
    let mut meant: Vec<_> =
        RULES.iter().map(|(route, rule)| ((*route).to_owned(), (*rule).to_owned())).collect();
    found.sort();
    meant.sort();
    assert_eq!(found, meant);
}

#[tokio::test]
async fn every_route_asks_for_its_scope_and_keeps_foreign_queues_apart() {
    for (route, rule) in RULES {
        for scope in Scope::ALL {
            let site = Site::with(&["ours", "theirs"]).await;
            let root = site.token("root", &[Scope::Admin], &[]).await;
            let limited = site.token("limited", &[scope], &["ours"]).await;
            let (ours, theirs) =
                (ground(&site, &root, "ours").await, ground(&site, &root, "theirs").await);
            let (place, open) = (format!("{route} with {scope}"), *rule == "open");
            let unknown = ask(&site, None, route, &ours).await;
            assert_eq!(unknown.status == 401, !open, "{place}: {unknown:?}");
            let wrong = ask(&site, Some(&other(&root)), route, &ours).await;
            assert_eq!(wrong.status == 401, !open, "{place}: {wrong:?}");
            let needed = rule.strip_suffix(" of all");
            let good = |rule: &str| scope == Scope::Admin || rule == scope.as_str();
            let may = open || *rule == "any" || (needed.is_none() && good(rule));

            let before = stands(&site, &root, &theirs).await;
            let foreign = ask(&site, Some(&limited), route, &theirs).await;
            match foreign.status {
                403 => assert_eq!(foreign.problem().1, "forbidden", "{place}"),
                404 => {
                    assert!(may && !foreign.text.contains("did you mean"), "{place}: {foreign:?}")
                }
                200 => assert!(may && !foreign.text.contains("theirs"), "{place}: {foreign:?}"),
                _ => panic!("{place}: {foreign:?}"),
            }
            assert_eq!(stands(&site, &root, &theirs).await, before, "{place}");

            let own = ask(&site, Some(&limited), route, &ours).await;
            assert_eq!(own.status / 100 == 2, may, "{place}: {own:?}");
            if !may {
                assert_eq!((own.status, &*own.problem().1), (403, "forbidden"), "{place}");
                let scope = needed.unwrap_or(rule);
                let challenge = format!("error=\"insufficient_scope\", scope=\"{scope}\"");
                assert!(own.head.contains(&challenge), "{place}: {}", own.head);
            }
            if let Some(needed) = needed {
                // For every queue it is good, if its scope is.
                let whole = site.token("whole", &[scope], &[]).await;
                let own = until_known(&site, &whole, route, &ours).await;
                let as_meant = if good(needed) { own.status / 100 == 2 } else { own.status == 403 };
                assert!(as_meant, "{place}, for all queues: {own:?}");
            }
        }
    }
}
