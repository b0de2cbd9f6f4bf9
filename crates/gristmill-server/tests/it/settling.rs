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
    let progress =
        json!([{ "queue": "a", "token": token, "lease": "5m", "progress": 1 }]).to_string();
    let refused = site.post("/v1/extensions", &progress).await;
    assert_eq!(refused.problem(), (422, "not_available".to_owned(), "[0].progress".to_owned()));
}
