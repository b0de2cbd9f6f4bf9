//! Claiming: by rotation, with a wait, and never for somebody who is gone.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncWriteExt, BufReader};

use crate::client::{Site, read, request, token};

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn a_claim_is_of_one_queue_and_takes_turns() {
    let site = Site::with(&["a", "b"]).await;
    for queue in ["a", "b"] {
        let tasks: Vec<_> = (0..4).map(|n| json!({ "payload": n })).collect();
        site.post(&format!("/v1/queues/{queue}/tasks"), &json!(tasks).to_string()).await;
    }
    let mut seen = Vec::new();
    for _ in 0..4 {
        let claim =
            site.post("/v1/claims", r#"{"queues":["a","b"],"max":2,"worker":"w"}"#).await.json();
        assert_eq!(claim["tasks"].as_array().unwrap().len(), 2, "{claim}");
        assert_eq!(claim["lease_ms"], 60_000);
        seen.push(claim["queue"].as_str().unwrap().to_owned());
    }
    seen.sort_unstable();
    assert_eq!(seen, ["a", "a", "b", "b"]);
    let empty = site.post("/v1/claims", r#"{"queues":["a","b"]}"#).await.json();
    assert_eq!((empty["tasks"].clone(), empty["queue"].clone()), (json!([]), json!(null)));
}

#[tokio::test]
async fn who_waits_is_woken_by_a_put() {
    let site = Site::with(&["a", "b"]).await;
    let waiting = site.post("/v1/claims", r#"{"queues":["a","b"],"wait":"60s","lease":"5s"}"#);
    let putting = async {
        // Whoever waits has looked once.
        while site.mill.verbs().wait.calls() == 0 && site.mill.verbs().claim.calls() < 2 {
            tokio::task::yield_now().await;
        }
        site.post("/v1/queues/b/tasks", r#"{"payload":1}"#).await
    };
    let (claim, _) = tokio::join!(waiting, putting);
    assert_eq!((&claim.json()["queue"], &claim.json()["lease_ms"]), (&json!("b"), &json!(5_000)));
}

#[tokio::test]
async fn who_leaves_while_waiting_gets_nothing() {
    let site = Site::with(&["a"]).await;
    let mut stream = site.connect().await;
    let asked =
        request("POST", "/v1/claims", &[JSON], r#"{"queues":["a"],"wait":"60s","worker":"gone"}"#);
    stream.write_all(&asked).await.unwrap();
    while site.mill.verbs().claim.calls() == 0 {
        tokio::task::yield_now().await;
    }
    drop(stream);
    site.post("/v1/queues/a/tasks", r#"{"payload":1}"#).await;
    // Either nobody took it, or who did gave it back at once.
    let claim =
        site.post("/v1/claims", r#"{"queues":["a"],"wait":"10s","worker":"here"}"#).await.json();
    assert_eq!(claim["tasks"].as_array().unwrap().len(), 1, "{claim}");
}

#[tokio::test]
async fn the_callers_token_gives_the_same_claim_again() {
    let site = Site::with(&["a"]).await;
    let list = r#"[{"payload":{"n":1.0}},{"payload":2},{"payload":3}]"#;
    site.post("/v1/queues/a/tasks", list).await;
    let mine = "0123456789abcdef0123456789abcdef";
    let ask = json!({ "queues": ["a"], "max": 2, "worker": "w", "token": mine }).to_string();
    let first = site.post("/v1/claims", &ask).await;
    assert_eq!(token(&first.json()), mine);
    let again = site.post("/v1/claims", &ask).await;
    assert_eq!(first.text, again.text, "the same claim, to the byte");
    // What was settled meanwhile is not given again.
    let id = first.json()["tasks"][0]["id"].clone();
    let done = json!([{ "id": id, "token": mine, "outcome": "done" }]).to_string();
    site.post("/v1/settlements", &done).await;
    let left = site.post("/v1/claims", &ask).await.json();
    assert_eq!(left["tasks"].as_array().unwrap().len(), 1, "{left}");
    assert_eq!(site.mill.inspect().queue("a").await.unwrap().ready, 1, "nothing more was claimed");
}

#[tokio::test]
async fn two_at_once_with_one_token_get_one_claim() {
    let site = Site::with(&["a"]).await;
    site.post("/v1/queues/a/tasks", r#"[{"payload":1},{"payload":2}]"#).await;
    let ask = json!({ "queues": ["a"], "worker": "w", "token": "f".repeat(32) }).to_string();
    let (one, two) = tokio::join!(site.post("/v1/claims", &ask), site.post("/v1/claims", &ask));
    assert_eq!(one.text, two.text);
    assert_eq!(site.mill.inspect().queue("a").await.unwrap().processing, 1);
}

#[tokio::test]
async fn another_process_gives_the_same_claim() {
    let site = Site::with(&["a"]).await;
    site.post("/v1/queues/a/tasks", r#"[{"payload":1},{"payload":2}]"#).await;
    let ask = json!({ "queues": ["a"], "worker": "w", "token": "e".repeat(32) }).to_string();
    let first = site.post("/v1/claims", &ask).await;
    // Over the same store, as this one would be after a restart.
    let other = Site::over(site.mill.clone()).await;
    assert_eq!(other.post("/v1/claims", &ask).await.text, first.text);
    assert_eq!(site.mill.inspect().queue("a").await.unwrap().processing, 1);
}

#[tokio::test]
async fn a_task_that_falls_due_ends_the_wait() {
    let site = Site::with(&["a"]).await;
    site.post("/v1/queues/a/tasks", r#"{"payload":1,"delay":"50ms"}"#).await;
    let claim = site.post("/v1/claims", r#"{"queues":["a"],"wait":"60s"}"#);
    let claim = tokio::time::timeout(Duration::from_secs(20), claim).await.unwrap().json();
    assert_eq!(claim["tasks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn claims_that_cannot_be_are_refused() {
    let site = Site::with(&["a"]).await;
    for (body, status, code, field) in [
        (r#"{"queues":[]}"#, 422, "invalid", "queues"),
        (r#"{}"#, 422, "invalid", "queues"),
        (r#"{"queues":["a"],"max":0}"#, 422, "invalid", "max"),
        (r#"{"queues":["a"],"max":100000}"#, 422, "invalid", "max"),
        (r#"{"queues":["a"],"lease":"1ms"}"#, 422, "invalid", "lease"),
        (r#"{"queues":["a"],"lease":5}"#, 422, "invalid", "lease"),
        (r#"{"queues":["a"],"wait":"61s"}"#, 422, "invalid", "wait"),
        (r#"{"queues":["a"],"worker":"a b"}"#, 422, "invalid", "worker"),
        (r#"{"queues":["a"],"token":"x"}"#, 422, "invalid", "token"),
        (r#"{"queues":["a","b"]}"#, 404, "unknown_queue", "queue"),
        (r#"{"queues":["a"],"progress":1}"#, 422, "unknown_field", "progress"),
    ] {
        let answer = site.post("/v1/claims", body).await;
        assert_eq!(answer.problem(), (status, code.to_owned(), field.to_owned()), "{body}");
    }
}

#[tokio::test]
async fn a_connection_serves_one_request_after_the_other() {
    let site = Site::with(&["a"]).await;
    let mut stream = BufReader::new(site.connect().await);
    for _ in 0..3 {
        stream.get_mut().write_all(&request("GET", "/livez", &[], "")).await.unwrap();
        assert_eq!(read(&mut stream).await.status, 200);
    }
}
