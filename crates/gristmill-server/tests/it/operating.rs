//! What operators do: to tasks by ids and by filter, to queues and to schedules.

use gristmill::ControlPlane;
use serde_json::{Value, json};

use crate::client::{Site, token};

const JSON: (&str, &str) = ("content-type", "application/json");

/// Tasks that failed for good.
async fn failed(site: &Site, tasks: usize) -> Vec<Value> {
    let list: Vec<_> = (0..tasks).map(|n| json!({ "payload": n })).collect();
    site.post("/v1/queues/a/tasks", &json!(list).to_string()).await;
    let ask = json!({ "queues": ["a"], "max": tasks, "worker": "w" }).to_string();
    let claim = site.post("/v1/claims", &ask).await.json();
    let ids: Vec<Value> =
        claim["tasks"].as_array().unwrap().iter().map(|t| t["id"].clone()).collect();
    let said: Vec<_> = ids
        .iter()
        .map(|id| json!({ "id": id, "token": token(&claim), "outcome": "fail", "error": "no" }))
        .collect();
    site.post("/v1/settlements", &json!(said).to_string()).await;
    ids
}

#[tokio::test]
async fn tasks_are_moved_by_id() {
    let site = Site::with(&["a"]).await;
    let ids = failed(&site, 3).await;
    let asked = json!({ "ids": [ids[0], "999"], "note": "again", "by": "ada" }).to_string();
    let answer = site.post("/v1/tasks/retry", &asked).await.json();
    assert_eq!(answer["moved"], 1);
    assert_eq!(
        (&answer["answers"][0]["outcome"], &answer["answers"][1]["outcome"]),
        (&json!("moved"), &json!("gone"))
    );
    let wrong =
        site.post("/v1/tasks/discard", &json!({ "ids": [ids[0]] }).to_string()).await.json();
    assert_eq!(
        (&wrong["answers"][0]["outcome"], &wrong["answers"][0]["state"]),
        (&json!("wrong_state"), &json!("pending"))
    );
    let task = site.get(&format!("/v1/tasks/{}", ids[0].as_str().unwrap())).await.json();
    assert_eq!((&task["note"]["text"], &task["note"]["by"]), (&json!("again"), &json!("ada")));
}

#[tokio::test]
async fn tasks_are_moved_by_filter() {
    let site = Site::with(&["a", "b"]).await;
    failed(&site, 5).await;
    for (body, status, code, field) in [
        (json!({}), 422, "invalid", "ids"),
        (json!({ "ids": ["1"], "filter": {} }), 422, "invalid", "filter"),
        (json!({ "ids": [] }), 422, "invalid", "ids"),
        (json!({ "ids": ["x"] }), 422, "invalid", "ids[0]"),
        (json!({ "filter": { "state": "pending" } }), 422, "invalid", "filter.state"),
        (json!({ "filter": { "state": "ready" } }), 422, "invalid", "filter.state"),
        (json!({ "filter": { "quque": "a" } }), 422, "unknown_field", "filter.quque"),
        (json!({ "filter": { "queue": "none" } }), 404, "unknown_queue", "filter.queue"),
    ] {
        let answer = site.post("/v1/tasks/retry", &body.to_string()).await;
        assert_eq!(answer.problem(), (status, code.to_owned(), field.to_owned()), "{body}");
    }
    let other = json!({ "filter": { "queue": "b" } }).to_string();
    let begun = site.post("/v1/tasks/discard", &other).await;
    assert_eq!(begun.status, 202);
    assert_eq!(ended(&site, &begun.json()).await["moved"], 0);
    let all = json!({ "filter": { "queue": "a", "error": "no" }, "by": "ada", "note": "why" })
        .to_string();
    let begun = site.post("/v1/tasks/discard", &all).await.json();
    assert_eq!((&begun["by"], &begun["filter"]["queue"]), (&json!("ada"), &json!("a")));
    let over = ended(&site, &begun).await;
    assert_eq!((&over["state"], &over["moved"]), (&json!("done"), &json!(5)));
    assert_eq!((&over["began_at"], &over["note"]), (&begun["began_at"], &json!("why")));
    assert_eq!(site.mill.inspect().queue("a").await.unwrap().total(), 0);
    let listed = site.get("/v1/operations").await.json();
    let ids: Vec<&Value> = listed.as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!((ids.len(), ids[0]), (2, &begun["id"]), "the newest first");
    // What ended stays as it ended.
    let path = format!("/v1/operations/{}/stop", begun["id"].as_str().unwrap());
    assert_eq!(site.post(&path, "{}").await.json()["state"], "done");
    assert_eq!(site.get("/v1/operations/1").await.problem().1, "unknown_operation");
    assert_eq!(site.post("/v1/operations/1/stop", "{}").await.problem().1, "unknown_operation");
}

/// An operation once it is over.
async fn ended(site: &Site, begun: &Value) -> Value {
    let path = format!("/v1/operations/{}", begun["id"].as_str().unwrap());
    loop {
        let one = site.get(&path).await.json();
        if !["running", "stopping"].contains(&one["state"].as_str().unwrap()) {
            return one;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_operation_is_stopped_and_leaves_alone_what_came_later() {
    let site = Site::with(&["a"]).await;
    // Somebody else has the role and does nothing: nothing begins.
    let store = site.mill.store();
    let other = gristmill::port::WorkerId::new("other").unwrap();
    let hold = std::time::Duration::from_secs(600);
    store.campaign("operations", &other, hold).await.unwrap();
    failed(&site, 3).await;
    let all = json!({ "filter": {} }).to_string();
    let stopped = site.post("/v1/tasks/retry", &all).await.json();
    let path = format!("/v1/operations/{}/stop", stopped["id"].as_str().unwrap());
    let stopping = site.post(&path, r#"{"by":"bob"}"#).await.json();
    assert_eq!((&stopping["state"], &stopping["stopped_by"]), (&json!("stopping"), &json!("bob")));
    let begun = site.post("/v1/tasks/discard", &all).await.json();
    let later = failed(&site, 2).await;
    assert_eq!(site.mill.inspect().queue("a").await.unwrap().failed, 5);
    store.resign("operations", &other).await.unwrap();
    assert_eq!(ended(&site, &stopped).await["state"], "stopped");
    let over = ended(&site, &begun).await;
    assert_eq!((&over["state"], &over["moved"]), (&json!("done"), &json!(3)));
    for id in later {
        let task = site.get(&format!("/v1/tasks/{}", id.as_str().unwrap())).await.json();
        assert_eq!(task["state"], "failed", "it failed after the operation began");
    }
}

#[tokio::test]
async fn two_services_carry_out_an_operation_once() {
    let site = Site::with(&["a"]).await;
    let beside = Site::over(site.mill.clone()).await;
    for _ in 0..5 {
        failed(&site, 1_000).await;
    }
    let all = json!({ "filter": { "queue": "a" } }).to_string();
    let (one, two) =
        tokio::join!(site.post("/v1/tasks/retry", &all), beside.post("/v1/tasks/retry", &all));
    let moved = |over: &Value| over["moved"].as_u64().unwrap();
    let (one, two) = (ended(&site, &one.json()).await, ended(&beside, &two.json()).await);
    assert_eq!(moved(&one) + moved(&two), 5_000, "{one} {two}");
    let stats = site.mill.inspect().queue("a").await.unwrap();
    assert_eq!((stats.counters.operator_retried, stats.failed), (5_000, 0));
    // The one that goes hands its role on.
    site.stop().await;
    let begun = beside.post("/v1/tasks/cancel", &all).await.json();
    assert_eq!(moved(&ended(&beside, &begun).await), 5_000);
}

#[tokio::test]
async fn queues_are_declared_changed_paused_and_reset() {
    let site = Site::with(&[]).await;
    let path = "/v1/queues/mails";
    let declared = r#"{"settings":{"max_attempts":3,"backoff":{"base":"5s"}}}"#;
    assert_eq!(site.send("PUT", path, &[JSON], declared).await.status, 201);
    assert_eq!(site.send("PUT", path, &[JSON], declared).await.status, 200);
    let queue = site.get(path).await.json();
    assert_eq!(
        (&queue["settings"]["max_attempts"], &queue["settings"]["backoff.base"]),
        (&json!("3"), &json!("5s"))
    );
    let changed =
        site.send("PATCH", path, &[JSON], r#"{"settings":{"lease":"5m"},"by":"ada"}"#).await.json();
    assert_eq!(
        (&changed["settings"]["lease"], &changed["changed_by"]),
        (&json!("5m"), &json!("ada"))
    );
    let reset = site.send("POST", "/v1/queues/mails/reset", &[], "").await.json();
    assert_eq!((&reset["settings"]["lease"], &reset["changed_by"]), (&json!(null), &json!(null)));
    let paused = site.post("/v1/queues/mails/pause", r#"{"by":"ada"}"#).await.json();
    assert_eq!((&paused["paused"], &paused["paused_by"]), (&json!(true), &json!("ada")));
    assert_eq!(site.send("POST", "/v1/queues/mails/resume", &[], "").await.json()["paused"], false);
    for (body, field) in [
        (r#"{"settings":{"leese":"5m"}}"#, "settings.leese"),
        (r#"{"settings":{"lease":5}}"#, "settings.lease"),
        (r#"{"settings":{"max_attempts":0}}"#, "settings"),
        (r#"{"setings":{}}"#, "setings"),
    ] {
        let answer = site.send("PATCH", path, &[JSON], body).await;
        assert_eq!((answer.problem().0, answer.problem().2), (422, field.to_owned()), "{body}");
    }
    for (method, path) in [
        ("GET", "/v1/queues/none"),
        ("POST", "/v1/queues/none/pause"),
        ("POST", "/v1/queues/none/reset"),
    ] {
        assert_eq!(site.send(method, path, &[], "").await.problem().1, "unknown_queue");
    }
}

#[tokio::test]
async fn schedules_are_declared_and_changed() {
    let site = Site::with(&["a"]).await;
    let path = "/v1/schedules/morning";
    let declared = r#"{"queue":"a","cron":"0 7 * * *","zone":"Europe/Athens","payload":{"to":"all"},"key":"k"}"#;
    assert_eq!(site.send("PUT", path, &[JSON], declared).await.status, 201);
    let stands = site.send("PUT", path, &[JSON], declared).await;
    assert_eq!((stands.status, &stands.json()["zone"]), (200, &json!("Europe/Athens")));
    let changed =
        site.send("PATCH", path, &[JSON], r#"{"every":"1h","overlap":"skip"}"#).await.json();
    assert_eq!(
        (&changed["cron"], &changed["every_ms"], &changed["overlap"], &changed["queue"]),
        (&json!(null), &json!(3_600_000), &json!("skip"), &json!("a"))
    );
    // What was not said stayed.
    let kept = site.mill.store().schedules().await.unwrap();
    let kept = &kept[0].declared;
    assert_eq!(kept.payload, Some(gristmill::Payload::json(r#"{"to":"all"}"#)));
    assert_eq!(kept.options.key.as_deref(), Some("k"));
    // Said anew it is as it is said.
    let again =
        site.send("PUT", path, &[JSON], r#"{"queue":"a","every":"2h","payload":null}"#).await;
    assert_eq!((again.status, &again.json()["zone"]), (200, &json!("UTC")));
    for (method, body, code, field) in [
        ("PUT", r#"{"cron":"0 7 * * *","payload":1}"#, "invalid", "queue"),
        ("PUT", r#"{"queue":"a","payload":1}"#, "invalid", "cron"),
        ("PUT", r#"{"queue":"a","cron":"0 7 * * *"}"#, "invalid", "payload"),
        ("PUT", r#"{"queue":"b","cron":"0 7 * * *","payload":1}"#, "unknown_queue", "queue"),
        ("PUT", r#"{"queue":"a","cron":"99 7 * * *","payload":1}"#, "invalid", "cron"),
        ("PUT", r#"{"queue":"a","cron":"0 7 * * *","every":"1h","payload":1}"#, "invalid", "every"),
        ("PATCH", r#"{"every":"5"}"#, "invalid", "every"),
        ("PATCH", r#"{"zone":"Mars/Olympus"}"#, "invalid", "zone"),
        ("PATCH", r#"{"missed":"never"}"#, "invalid", "missed"),
        ("PATCH", r#"{"wen":"now"}"#, "unknown_field", "wen"),
    ] {
        let problem = site.send(method, path, &[JSON], body).await.problem();
        assert_eq!((problem.1, problem.2), (code.to_owned(), field.to_owned()), "{body}");
    }
    let none = site.send("PATCH", "/v1/schedules/none", &[JSON], "{}").await;
    assert_eq!(none.problem().1, "unknown_schedule");
}

#[tokio::test]
async fn schedules_are_seen_paused_fired_and_removed() {
    let site = Site::with(&["a"]).await;
    let hour = std::time::Duration::from_secs(3600);
    let payload = gristmill::Payload::json("1");
    site.mill.schedule("hourly").every(hour).puts(gristmill::Put::raw("a", payload)).await.unwrap();
    let listed = site.get("/v1/schedules").await.json();
    assert_eq!(
        (&listed[0]["schedule"], &listed[0]["every_ms"]),
        (&json!("hourly"), &json!(3_600_000))
    );
    assert_eq!(
        site.post("/v1/schedules/hourly/pause", r#"{"by":"ada"}"#).await.json()["paused_by"],
        "ada"
    );
    assert_eq!(site.get("/v1/schedules/hourly").await.json()["next_fire"], json!(null));
    assert_eq!(site.post("/v1/schedules/hourly/resume", "{}").await.json()["paused"], false);
    let fired = site.post("/v1/schedules/hourly/fire", "{}").await.json();
    assert_eq!(
        (&fired["outcome"], &fired["answers"][0]["outcome"]),
        (&json!("fired"), &json!("enqueued"))
    );
    let near = site.get("/v1/schedules/hourli").await;
    assert!(near.json()["detail"].as_str().unwrap().contains("did you mean 'hourly'"), "{near:?}");
    assert_eq!(site.send("DELETE", "/v1/schedules/hourly", &[], "").await.status, 200);
    assert_eq!(
        site.send("DELETE", "/v1/schedules/hourly", &[], "").await.problem().1,
        "unknown_schedule"
    );
}
