//! What operators do is written down: who, what, how many.

use gristmill_server::{Audit, Deed, Scope};
use serde_json::{Value, json};

use crate::client::{Site, token};

async fn lines(site: &Site, bearer: &str) -> Vec<Value> {
    let said = site.by(bearer, "GET", "/v1/audit", "").await.json();
    said["lines"].as_array().unwrap().clone()
}

#[tokio::test]
async fn who_did_what_to_how_many_is_there() {
    let site = Site::with(&["a", "b"]).await;
    let root = site.token("root", &[Scope::Admin], &[]).await;
    let ours = site.token("ours", &[Scope::Admin], &["a"]).await;
    let post = async |bearer: &str, path: &str, body: Value| {
        site.by(bearer, "POST", path, &body.to_string()).await
    };
    let mut ids = Vec::new();
    for _ in 0..2 {
        let put = post(&root, "/v1/queues/a/tasks", json!({ "payload": 1 })).await;
        ids.push(put.json()["id"].clone());
    }
    post(&ours, "/v1/tasks/cancel", json!({ "ids": [ids[0], "999"], "note": "wrong" })).await;
    post(&root, "/v1/queues/b/pause", json!({ "by": "ada" })).await;
    let schedule = json!({ "queue": "b", "every": "1h", "payload": 1 }).to_string();
    site.by(&root, "PUT", "/v1/schedules/s", &schedule).await;
    let begun = post(&ours, "/v1/tasks/cancel", json!({ "filter": {}, "by": "bob" })).await.json();
    // Neither what was refused nor looking is an action.
    assert_eq!(post(&ours, "/v1/queues/b/pause", json!({})).await.status, 403);
    assert_eq!(post(&root, "/v1/queues/c/pause", json!({})).await.status, 404);
    let claim = post(&root, "/v1/claims", json!({ "queues": ["a"], "worker": "w" })).await.json();
    assert!(!token(&claim).is_empty());

    let all = lines(&site, &root).await;
    let told: Vec<Value> = all
        .iter()
        .map(|line| {
            json!([
                line["action"],
                line["actor"],
                line["by"],
                line["target"],
                line["queue"],
                line["moved"],
                line["note"]
            ])
        })
        .collect();
    let meant = [
        json!(["tasks.cancel", "ours", "bob", begun["id"], "a", null, null]),
        json!(["schedules.declare", "root", null, "s", "b", null, null]),
        json!(["queues.pause", "root", "ada", "b", "b", null, null]),
        json!(["tasks.cancel", "ours", "ours", null, null, 1, "wrong"]),
    ];
    assert_eq!(told, meant, "the newest first");
    assert!(all.iter().all(|line| line["via"] == "http"), "{all:?}");
    let theirs = lines(&site, &ours).await;
    assert_eq!(theirs.len(), 1, "of its own queue: {theirs:?}");

    let first = site.by(&root, "GET", "/v1/audit?limit=3", "").await.json();
    let next = first["next"].as_str().unwrap();
    let rest = site.by(&root, "GET", &format!("/v1/audit?limit=3&after={next}"), "").await.json();
    assert_eq!((rest["lines"].as_array().unwrap().len(), &rest["next"]), (1, &Value::Null));
    assert_eq!(rest["lines"][0], all[3]);
    for wrong in ["limit=0", "limit=1001", "limit=x", "after="] {
        assert_eq!(site.by(&root, "GET", &format!("/v1/audit?{wrong}"), "").await.status, 422);
    }
}

#[tokio::test]
async fn what_is_done_from_a_page_is_there() {
    let site = Site::with(&["a"]).await;
    let put = site.post("/v1/queues/a/tasks", r#"{"payload":1}"#).await.json();
    let id = put["id"].as_str().unwrap();
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("origin", "http://localhost"),
        ("sec-fetch-site", "same-origin"),
    ];
    let fields = "action=cancel&note=by+mistake";
    let act = crate::client::request("POST", &format!("/tasks/{id}/act"), &headers, fields);
    assert_eq!(site.raw(&act).await.status, 303);
    let said = site.get("/v1/audit").await.json();
    let line = &said["lines"][0];
    assert_eq!(
        json!([
            line["action"],
            line["via"],
            line["by"],
            line["target"],
            line["moved"],
            line["note"]
        ]),
        json!(["tasks.cancel", "dashboard", "dashboard", id, 1, "by mistake"])
    );
}

#[tokio::test]
async fn a_line_that_cannot_be_read_is_no_gap() {
    let site = Site::with(&[]).await;
    let audit = Audit::of(&site.mill);
    for action in ["first", "last"] {
        let deed =
            Deed { action: action.to_owned(), by: Some("ä".repeat(2_000)), ..Deed::default() };
        audit.write(deed).await.unwrap();
        let (expects, body) = (gristmill::port::Expects::Absent, Some("{".to_owned()));
        let name = format!("~{action}");
        let change = gristmill::port::DocumentChange::new("audit", &name, expects, body);
        site.mill.store().save_document(change).await.unwrap();
    }
    let said = site.get("/v1/audit").await.json();
    let actions: Vec<&Value> =
        said["lines"].as_array().unwrap().iter().map(|line| &line["action"]).collect();
    assert_eq!(actions, ["last", "first", "unreadable", "unreadable"]);
    assert_eq!(said["lines"][0]["by"].as_str().unwrap(), "ä".repeat(512), "cut to what is kept");
}
