//! Looking: tasks, numbers, events, and the documents.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::client::{Site, request, token};

#[tokio::test]
async fn the_first_answer_says_what_is_there() {
    let site = Site::with(&[]).await;
    let about = site.get("/v1").await.json();
    assert_eq!(about["limits"]["payload_bytes"], 1 << 20);
    for there in
        ["operations", "progress", "results", "task_timeout", "task_max_attempts", "tokens"]
    {
        assert_eq!(about["capabilities"][there], true, "{there}");
    }
}

#[tokio::test]
async fn a_list_comes_in_pages() {
    let site = Site::with(&["a", "b"]).await;
    let list: Vec<_> =
        (0..5).map(|n| json!({ "payload": n, "key": format!("k{n}"), "source": "s" })).collect();
    site.post("/v1/queues/a/tasks", &json!(list).to_string()).await;
    site.post("/v1/queues/b/tasks", r#"{"payload":1,"delay":"1h"}"#).await;
    let ids = |page: &Value| -> Vec<String> {
        page["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page =
            site.get(&format!("/v1/tasks?queue=a&order=oldest&limit=2{cursor}")).await.json();
        seen.extend(ids(&page));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 5);
    assert!(seen.is_sorted());
    for (query, count) in [
        ("", 6),
        ("?key=k3", 1),
        ("?source=s", 5),
        ("?state=delayed", 1),
        ("?state=ready", 5),
        ("?state=failed", 0),
        ("?since=1h", 6),
        ("?since=2100-01-01T00:00:00Z", 0),
        ("?queue=b&state=pending", 1),
    ] {
        assert_eq!(
            ids(&site.get(&format!("/v1/tasks{query}")).await.json()).len(),
            count,
            "{query}"
        );
    }
    for (query, field) in [
        ("?state=odd", "state"),
        ("?limit=0", "limit"),
        ("?limit=99999", "limit"),
        ("?limit=x", "limit"),
        ("?cursor=x", "cursor"),
        ("?since=yesterday", "since"),
        ("?order=up", "order"),
        ("?what=1", "what"),
        ("?key=a&key=b", "key"),
    ] {
        let answer = site.get(&format!("/v1/tasks{query}")).await;
        assert_eq!((answer.problem().0, answer.problem().2), (422, field.to_owned()), "{query}");
    }
    let found = site.post("/v1/find", r#"{"queue":"a","keys":["k1","none"]}"#).await.json();
    assert_eq!(
        (&found["standing"][0]["place"], found["standing"].as_array().unwrap().len()),
        (&json!("waiting"), 1)
    );
}

#[tokio::test]
async fn the_end_of_a_task_is_waited_for() {
    let site = Site::with(&["a"]).await;
    let id = site.post("/v1/queues/a/tasks", r#"{"payload":1}"#).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/v1/tasks/{id}?wait=30s");
    let working = async {
        while site.mill.verbs().get.calls() < 2 {
            tokio::task::yield_now().await;
        }
        let claim = site.post("/v1/claims", r#"{"queues":["a"]}"#).await.json();
        let done = json!([{ "id": id, "token": token(&claim), "outcome": "done" }]).to_string();
        site.post("/v1/settlements", &done).await
    };
    let (ended, _) = tokio::join!(site.get(&path), working);
    assert_eq!(
        (&ended.json()["state"], &ended.json()["outcome"]),
        (&json!("gone"), &json!("done"))
    );
    assert_eq!(site.get(&path).await.problem().1, "unknown_task");
    assert_eq!(site.get("/v1/tasks/x").await.problem().2, "id");
    assert_eq!(site.get("/v1/tasks/1?wait=2h").await.problem().2, "wait");
}

#[tokio::test]
async fn what_a_handler_returns_comes_to_who_waits() {
    let site = Site::with(&["a"]).await;
    let task = r#"{"payload":1,"wanted":true}"#;
    let put = || async {
        let put = site.post("/v1/queues/a/tasks", task).await.json();
        put["id"].as_str().unwrap().to_owned()
    };
    let settle = |id: String, more: &'static str| {
        let site = &site;
        async move {
            let claim = site.post("/v1/claims", r#"{"queues":["a"]}"#).await.json();
            let token = token(&claim);
            let said = format!(r#"[{{"id":"{id}","token":"{token}",{more}}}]"#);
            site.post("/v1/settlements", &said).await
        }
    };
    let id = put().await;
    let path = format!("/v1/tasks/{id}?wait=30s");
    let done = settle(id.clone(), r#""outcome":"done","result":{"b":1, "a":2.50}"#);
    let (ended, settled) = tokio::join!(site.get(&path), done);
    assert_eq!(settled.json()[0]["became"], "done");
    let ended = ended.text;
    assert!(ended.contains(r#""outcome":"done","result":{"b":1, "a":2.50}"#), "{ended}");
    // Once more, while it is kept.
    assert_eq!(site.get(&path).await.json()["result"]["b"], 1);
    let id = put().await;
    settle(id.clone(), r#""outcome":"fail","error":"no host""#).await;
    let failed = site.get(&format!("/v1/tasks/{id}")).await.json();
    assert_eq!((&failed["state"], &failed["error"]), (&json!("failed"), &json!("no host")));
    site.post("/v1/tasks/discard", &json!({ "ids": [id], "by": "ada" }).to_string()).await;
    let discarded = site.get(&format!("/v1/tasks/{id}")).await.json();
    assert_eq!((&discarded["state"], &discarded["outcome"]), (&json!("gone"), &json!("discarded")));
    // What cannot be kept is refused, and nothing is settled.
    let id = put().await;
    let wrong = settle(id.clone(), r#""outcome":"error","result":1"#).await;
    assert_eq!(wrong.problem().2, "[0].result");
    assert_eq!(site.get(&format!("/v1/tasks/{id}")).await.json()["state"], "processing");
}

#[tokio::test]
async fn minutes_go_back_as_far_as_the_store_keeps_them() {
    let site = Site::with(&["a"]).await;
    site.post("/v1/queues/a/tasks", r#"{"payload":1}"#).await;
    let back = |days: u32, step: &str| format!("/v1/minutes?queue=a&back={days}d&step={step}");
    assert_eq!(site.get(&back(7, "1m")).await.json()["minutes"][0]["put"], 1);
    let refused = site.get(&back(8, "1h")).await;
    assert!(refused.text.contains("minutes are kept for 7d"), "{}", refused.text);
    site.mill.keep_minutes(Duration::from_secs(30 * 24 * 3600)).await.unwrap();
    assert_eq!(site.get(&back(30, "1h")).await.json()["minutes"][0]["put"], 1);
    assert_eq!(site.get(&back(31, "1h")).await.problem().2, "back");
    // An answer has no more numbers for it.
    assert_eq!(site.get(&back(8, "1m")).await.problem().2, "step");
}

#[tokio::test]
async fn numbers_are_told() {
    let site = Site::with(&["a"]).await;
    site.post("/v1/queues/a/tasks", r#"{"payload":1,"key":"k"}"#).await;
    site.post("/v1/queues/a/tasks", r#"{"payload":1,"key":"k"}"#).await;
    let stats = site.get("/v1/stats?queue=a").await.json();
    assert_eq!((&stats[0]["ready"], &stats[0]["counters"]["duplicate"]), (&json!(1), &json!(1)));
    assert_eq!(site.get("/v1/minutes?queue=a").await.json()["minutes"][0]["put"], 1);
    let all = site.get("/v1/minutes").await.json();
    assert_eq!((&all["queue"], &all["minutes"][0]["put"]), (&json!(null), &json!(1)));
    site.post("/v1/claims", r#"{"queues":["a"],"worker":"w"}"#).await;
    let text = site.get("/metrics").await.text;
    for line in [
        "gristmill_store_up 1",
        "gristmill_puts_total{queue=\"a\"} 1",
        "gristmill_duplicates_total{queue=\"a\"} 1",
        "gristmill_workers{queue=\"a\"} 1",
        "# TYPE gristmill_backlog_seconds gauge",
        "gristmill_http_connections 1",
        "queue_running_workers 0",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
    assert_eq!((site.get("/livez").await.status, site.get("/readyz").await.status), (200, 200));
    let workers = site.get("/v1/workers").await.json();
    assert_eq!(
        (&workers[0]["worker"], &workers[0]["queues"], &workers[0]["over_http"]),
        (&json!("w"), &json!(["a"]), &json!(true))
    );
}

#[tokio::test]
async fn what_happens_is_told_as_it_happens() {
    let site = Site::with(&["a"]).await;
    let mut stream = BufReader::new(site.connect().await);
    stream.get_mut().write_all(&request("GET", "/v1/events", &[], "")).await.unwrap();
    let mut text = String::new();
    while !text.contains(": listening") {
        stream.read_line(&mut text).await.unwrap();
    }
    assert!(text.to_ascii_lowercase().contains("content-type: text/event-stream"), "{text}");
    site.post("/v1/queues/a/tasks", r#"{"payload":"secret"}"#).await;
    while !text.contains("data: {\"duplicates\":0,\"enqueued\":1") {
        stream.read_line(&mut text).await.unwrap();
    }
    assert!(text.contains("event: put\n") && !text.contains("secret"), "{text}");
}

#[tokio::test]
async fn the_documents_are_served() {
    let site = Site::with(&[]).await;
    let document = site.get("/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["paths"]["/v1/claims"]["post"]["requestBody"].is_object());
    let page = site.get("/docs").await;
    assert!(page.head.contains("text/html") && page.text.contains("/v1/settlements"));
    assert!(page.head.contains("content-security-policy: default-src 'none'"), "{}", page.head);
    let style = site.get("/docs/style.css").await;
    assert!(style.head.contains("text/css"));
}
