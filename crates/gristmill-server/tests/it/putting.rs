//! Putting: one task, a list, and every way in which either can be wrong.

use crate::client::Site;

const TASKS: &str = "/v1/queues/emails/tasks";

#[tokio::test]
async fn a_put_says_what_became_of_it() {
    let site = Site::with(&["emails"]).await;
    let put = site.post(TASKS, r#"{"payload":{"to":"ada","n":2.50},"key":"ada"}"#).await;
    assert_eq!((put.status, put.json()["outcome"].as_str()), (201, Some("enqueued")));
    let id = put.json()["id"].as_str().expect("ids are texts").to_owned();
    let again = site.post(TASKS, r#"{"payload":{"to":"ada"},"key":"ada"}"#).await;
    assert_eq!(again.status, 200);
    assert_eq!(
        (&again.json()["outcome"], again.json()["id"].as_str()),
        (&"duplicate".into(), Some(&*id))
    );
    // As it was sent, to the last digit.
    let shown = site.get(&format!("/v1/tasks/{id}")).await;
    assert!(shown.text.contains(r#""payload":{"to":"ada","n":2.50}"#), "{}", shown.text);
    let listed = site.get("/v1/tasks?queue=emails&state=ready").await;
    assert!(listed.text.contains(r#""payload":{"to":"ada","n":2.50}"#), "{}", listed.text);
}

#[tokio::test]
async fn everything_that_can_be_said_of_a_task_is_kept() {
    let site = Site::with(&["emails"]).await;
    let said = r#"{"payload_base64":"/wA=","encoding":"raw","key":"k","delay":"1h","priority":-7,
        "group":"g","source":"s","id":"mine","headers":{"traceparent":"x"},"timeout":"90s",
        "max_attempts":"unlimited","backoff":{"base":"1s","cap":"1m","jitter":false}}"#;
    let put = site.post(TASKS, said).await.json();
    let task = site.get(&format!("/v1/tasks/{}", put["id"].as_str().unwrap())).await.json();
    for (field, wanted) in [
        ("payload_base64", "/wA="),
        ("encoding", "raw"),
        ("key", "k"),
        ("group", "g"),
        ("source", "s"),
        ("standing", "delayed"),
    ] {
        assert_eq!(task[field], wanted, "{field}: {task}");
    }
    assert_eq!((&task["priority"], &task["headers"]["traceparent"]), (&(-7).into(), &"x".into()));
    let backoff = serde_json::json!({ "base": "1s", "cap": "1m", "jitter": false });
    assert_eq!((&task["timeout"], &task["max_attempts"]), (&"1m30s".into(), &"unlimited".into()));
    assert_eq!(task["backoff"], backoff);
    // The same put under the same id is one task; another payload under it is a mistake.
    assert_eq!(site.post(TASKS, said).await.json()["outcome"], "duplicate");
    let other = site.post(TASKS, r#"{"payload":1,"id":"mine"}"#).await;
    assert_eq!(other.problem(), (409, "id_reused".to_owned(), "id".to_owned()));
}

#[tokio::test]
async fn a_list_has_an_answer_each_and_may_be_atomic() {
    let site = Site::with(&["emails"]).await;
    let list = r#"[{"payload":1,"key":"a"},{"payload":2,"key":"a"},{"payload":3}]"#;
    let put = site.post(TASKS, list).await;
    let outcomes: Vec<_> =
        put.json().as_array().unwrap().iter().map(|a| a["outcome"].clone()).collect();
    assert_eq!(
        (put.status, outcomes),
        (200, vec!["enqueued".into(), "duplicate".into(), "enqueued".into()])
    );
    let atomic = site
        .post(&format!("{TASKS}?atomic=true"), r#"[{"payload":4},{"payload":5,"key":"a"}]"#)
        .await;
    assert_eq!(atomic.problem().1, "undone");
    assert_eq!(atomic.json()["answers"][1]["outcome"], "duplicate");
    assert_eq!(site.mill.inspect().queue("emails").await.unwrap().ready, 2);
    assert_eq!(site.post(TASKS, "[]").await.json(), serde_json::json!([]));
}

#[tokio::test]
async fn mistakes_have_a_status_a_code_and_a_field() {
    let site = Site::with(&["emails"]).await;
    let large = format!(r#"{{"payload":"{}"}}"#, "x".repeat(1 << 20));
    let huge = format!("[{}1]", "1,".repeat(5 << 20));
    for (path, body, status, code, field) in [
        (TASKS, r#"{"payload":1,"when":2}"#, 422, "unknown_field", "when"),
        (TASKS, r#"{"payload":1,"timeout":"0s"}"#, 422, "invalid", "timeout"),
        (TASKS, r#"{"payload":1,"key":""}"#, 422, "invalid", ""),
        (TASKS, r#"[{"payload":1},{"payload":1,"delay":"5"}]"#, 422, "invalid", "[1].delay"),
        (TASKS, r#"{"payload":1"#, 400, "not_json", ""),
        (TASKS, "", 400, "not_json", ""),
        (TASKS, &large, 413, "payload_too_large", "payload"),
        (TASKS, &huge, 413, "body_too_large", ""),
        ("/v1/queues/emial/tasks", r#"{"payload":1}"#, 404, "unknown_queue", "queue"),
        ("/v1/queues/a%20b/tasks", r#"{"payload":1}"#, 422, "invalid", "queue"),
        ("/v1/queues/emails/tasks?atomik=1", r#"{"payload":1}"#, 422, "unknown_field", "atomik"),
    ] {
        let answer = site.post(path, body).await;
        assert_eq!(answer.problem(), (status, code.to_owned(), field.to_owned()), "{path}");
    }
    // Near enough to be a slip of the hand.
    let near = site.post("/v1/queues/emailz/tasks", r#"{"payload":1}"#).await;
    assert!(near.json()["detail"].as_str().unwrap().contains("did you mean 'emails'"), "{near:?}");
    assert_eq!(site.mill.inspect().queue("emails").await.unwrap().total(), 0);
}

#[tokio::test]
async fn a_full_queue_is_told_apart() {
    let site = Site::with(&[]).await;
    let made = site
        .send(
            "PUT",
            "/v1/queues/small",
            &[("content-type", "application/json")],
            r#"{"settings":{"capacity":1}}"#,
        )
        .await;
    assert_eq!((made.status, made.json()["created"].as_bool()), (201, Some(true)));
    assert_eq!(site.post("/v1/queues/small/tasks", r#"{"payload":1}"#).await.status, 201);
    let full = site.post("/v1/queues/small/tasks", r#"{"payload":1}"#).await;
    assert_eq!(full.problem().1, "queue_full");
    assert_eq!(full.json()["outcome"], "refused");
}
