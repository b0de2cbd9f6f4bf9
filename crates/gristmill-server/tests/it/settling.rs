//! Settling and extending: under the lease's token, each with its answer.

use serde_json::{Value, json};

use crate::client::{Site, token};

async fn claimed(site: &Site, tasks: usize) -> Value {
    let list: Vec<_> = (0..tasks).map(|n| json!({ "payload": n })).collect();
    site.post("/v1/queues/a/tasks", &json!(list).to_string()).await;
    let ask = json!({ "queues": ["a"], "max": tasks, "worker": "w" }).to_string();
    site.post("/v1/claims", &ask).await.json()
}

#[tokio::test]
async fn every_outcome_is_recorded() {
    let site = Site::with(&["a", "b"]).await;
    let claim = claimed(&site, 6).await;
    let id = |at: usize| claim["tasks"][at]["id"].clone();
    let token = token(&claim);
    let said = json!([
        { "id": id(0), "token": token, "outcome": "done", "follow_ups": [{ "queue": "b", "payload": 1 }] },
        { "id": id(1), "token": token, "outcome": "error", "error": "boom" },
        { "id": id(2), "token": token, "outcome": "retry", "after": "1h", "error": "later" },
        { "id": id(3), "token": token, "outcome": "fail", "error": "never" },
        { "id": id(4), "token": token, "outcome": "release", "after": "5s" },
        { "id": id(5), "token": "0".repeat(32), "outcome": "done" },
    ]);
    let answers = site.post("/v1/settlements", &said.to_string()).await.json();
    let told: Vec<String> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|a| {
            format!("{} {}", a["outcome"].as_str().unwrap(), a["became"].as_str().unwrap_or("-"))
        })
        .collect();
    assert_eq!(
        told,
        [
            "recorded done",
            "recorded pending",
            "recorded pending",
            "recorded failed",
            "recorded pending",
            "lease_lost -"
        ]
    );
    assert_eq!(answers[0]["follow_ups"][0]["outcome"], "enqueued");
    assert_eq!(site.mill.inspect().queue("b").await.unwrap().ready, 1);
    let again = site.post("/v1/settlements", &said.to_string()).await.json();
    assert_eq!(
        (&again[0]["outcome"], &again[3]["outcome"]),
        (&json!("gone"), &json!("already_recorded"))
    );
    let failed = site.get("/v1/tasks?state=failed&error=nev").await.json();
    assert_eq!(failed["tasks"][0]["error"], "never");
}

#[tokio::test]
async fn settlements_that_cannot_be_are_refused_whole() {
    let site = Site::with(&["a"]).await;
    let claim = claimed(&site, 1).await;
    let (id, token) = (&claim["tasks"][0]["id"], token(&claim));
    let good = json!({ "id": id, "token": token, "outcome": "done" });
    for (fields, code, field) in [
        (json!({ "outcome": "well" }), "invalid", "[1].outcome"),
        (json!({ "outcome": "retry" }), "invalid", "[1].after"),
        (json!({ "outcome": "done", "after": "5s" }), "invalid", "[1].after"),
        (json!({ "outcome": "done", "error": "x" }), "invalid", "[1].error"),
        (json!({ "outcome": "error", "result": 1 }), "invalid", "[1].result"),
        (json!({ "outcome": "done", "id": "x" }), "invalid", "[1].id"),
        (json!({ "outcome": "done", "token": "x" }), "invalid", "[1].token"),
        (json!({ "outcome": "done", "how": "x" }), "unknown_field", "[1].how"),
        (
            json!({ "outcome": "done", "follow_ups": [{ "payload": 1 }] }),
            "invalid",
            "[1].follow_ups[0].queue",
        ),
        (
            json!({ "outcome": "done", "follow_ups": [{ "payload": 1, "queue": "a", "x": 1 }] }),
            "unknown_field",
            "[1].follow_ups[0].x",
        ),
    ] {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let answer = site.post("/v1/settlements", &json!([good, bad]).to_string()).await;
        assert_eq!(answer.problem(), (422, code.to_owned(), field.to_owned()), "{bad}");
    }
    assert_eq!(site.mill.inspect().queue("a").await.unwrap().processing, 1, "nothing was settled");
}

#[tokio::test]
async fn a_follow_up_that_is_refused_makes_done_an_error() {
    let site = Site::with(&["a"]).await;
    let claim = claimed(&site, 1).await;
    let (id, token) = (&claim["tasks"][0]["id"], token(&claim));
    let done = json!([{ "id": id, "token": token, "outcome": "done", "follow_ups": [{ "queue": "nope", "payload": 1 }] }]);
    let answer = site.post("/v1/settlements", &done.to_string()).await.json();
    assert_eq!(answer[0]["follow_ups"][0]["reason"], "unknown_queue");
    assert_ne!(answer[0]["became"], "done");
}

#[tokio::test]
async fn leases_are_extended_by_token() {
    let site = Site::with(&["a"]).await;
    let claim = claimed(&site, 2).await;
    let token = token(&claim);
    let lost = "0".repeat(32);
    let asked = json!([{ "queue": "a", "token": token, "lease": "5m" }, { "queue": "a", "token": lost, "lease": "5m" }]);
    let answers = site.post("/v1/extensions", &asked.to_string()).await.json();
    assert_eq!(
        (&answers[0]["outcome"], &answers[0]["lease_ms"]),
        (&json!("extended"), &json!(300_000))
    );
    assert_eq!(answers[1]["outcome"], "lease_lost");
    // An operator's cancel is heard at the next extension.
    let id = &claim["tasks"][0]["id"];
    site.post("/v1/tasks/cancel", &json!({ "ids": [id], "by": "ada" }).to_string()).await;
    let answer = site.post(&format!("/v1/claims/{token}/extend"), r#"{"lease":"5m"}"#).await.json();
    assert_eq!(answer["cancelled"], json!([id]));
    let settled = json!([{ "id": id, "token": token, "outcome": "cancelled" }]).to_string();
    assert_eq!(site.post("/v1/settlements", &settled).await.json()[0]["became"], "cancelled");
}

#[tokio::test]
async fn how_far_a_task_is_travels_with_an_extension() {
    let site = Site::with(&["a"]).await;
    let claim = claimed(&site, 2).await;
    let (token, id) = (token(&claim), claim["tasks"][0]["id"].as_str().unwrap().to_owned());
    let shown = async || site.get(&format!("/v1/tasks/{id}")).await.json()["progress"].clone();
    assert_eq!(shown().await, Value::Null);
    let said = json!([{ "id": id, "done": 3, "total": 12, "message": "rows" }]);
    let asked = json!([{ "queue": "a", "token": token, "lease": "5m", "progress": said }]);
    let answers = site.post("/v1/extensions", &asked.to_string()).await.json();
    assert_eq!(answers[0]["outcome"], "extended");
    let progress = shown().await;
    assert_eq!((&progress["done"], &progress["total"]), (&json!(3), &json!(12)));
    assert_eq!((&progress["percent"], &progress["message"]), (&json!(25), &json!("rows")));
    assert!(progress["at"].is_string(), "{progress}");
    // However a number is written, and however large: no lease is lost by it.
    let odd = format!(r#"{{"lease":"5m","progress":[{{"id":"{id}","done":4.0,"total":1e30}}]}}"#);
    let answer = site.post(&format!("/v1/claims/{token}/extend"), &odd).await;
    assert_eq!(answer.json()["outcome"], "extended", "{}", answer.text);
    let progress = shown().await;
    assert_eq!((&progress["done"], &progress["total"]), (&json!(4), &json!((1_u64 << 53) - 1)));
    // By the path, and in a list.
    let said = json!({ "lease": "5m", "progress": [{ "id": id, "message": "last" }] }).to_string();
    site.post(&format!("/v1/claims/{token}/extend"), &said).await;
    let listed = site.get("/v1/tasks?state=processing&order=oldest").await.json();
    assert_eq!(listed["tasks"][0]["progress"]["message"], "last");
    assert_eq!(listed["tasks"][0]["progress"]["total"], Value::Null);
    assert_eq!(listed["tasks"][1]["progress"], Value::Null, "its neighbour said nothing");
    // Another claim's task is not this one's to speak of; a wrong one is named.
    let stale = json!({ "lease": "5m", "progress": [{ "id": id, "done": 9 }] }).to_string();
    let lost = site.post(&format!("/v1/claims/{}/extend", "0".repeat(32)), &stale).await;
    assert_eq!(lost.json()["outcome"], "lease_lost");
    assert_eq!(shown().await["done"], 0);
    let wrong =
        json!([{ "queue": "a", "token": token, "lease": "5m", "progress": [{ "id": "x" }] }]);
    let refused = site.post("/v1/extensions", &wrong.to_string()).await.problem();
    assert_eq!((refused.0, refused.2.as_str()), (422, "[0].progress[0].id"));
    // Over with the attempt.
    let settled = json!([{ "id": id, "token": token, "outcome": "error", "error": "no" }]);
    site.post("/v1/settlements", &settled.to_string()).await;
    assert_eq!(shown().await, Value::Null);
}
