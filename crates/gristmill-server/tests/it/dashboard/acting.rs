//! What forms do: to one task, to some, and to all that match.

use serde_json::json;

use super::{fail, follow, from, page, place, put, submit};
use crate::client::Site;

#[tokio::test]
async fn one_task_is_acted_on() {
    let site = Site::with(&["a"]).await;
    for (action, words, left) in [
        ("retry", "1 task sent back to run again.", Some("pending")),
        ("resolve", "1 task resolved.", None),
        ("discard", "1 task discarded.", None),
    ] {
        let id = put(&site, "a", &json!({ "payload": action })).await;
        fail(&site, "a", "no").await;
        let fields = format!("action={action}&note=looked+at+it");
        let shown = follow(&site, &format!("/tasks/{id}/act"), &fields).await;
        assert!(shown.text.contains(words), "{action}: {}", shown.text);
        let task = site.mill.inspect().task(id.parse().unwrap()).await.unwrap();
        assert_eq!(task.as_ref().map(|task| task.state.as_str()), left, "{action}");
        if let Some(task) = task {
            let note = task.note.unwrap();
            assert_eq!((note.text.as_str(), note.by.as_str()), ("looked at it", "dashboard"));
            let again = follow(&site, &format!("/tasks/{id}/act"), "action=retry").await;
            assert!(again.text.contains("1 task stayed"), "{}", again.text);
            follow(&site, &format!("/tasks/{id}/act"), "action=cancel").await;
        }
    }
    let odd = submit(&site, "/tasks/1/act", "action=explode").await;
    assert_eq!(odd.status, 422);
    assert!(odd.text.contains("<strong>action</strong>"), "{}", odd.text);
}

#[tokio::test]
async fn a_selection_is_acted_on() {
    let site = Site::with(&["a"]).await;
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(put(&site, "a", &json!({ "payload": n })).await);
    }
    fail(&site, "a", "no").await;
    let fields =
        format!("asked=state%3Dfailed%26evil%3D1&ids={}&ids={}&action=discard", ids[0], ids[2]);
    let answer = submit(&site, "/tasks/act", &fields).await;
    assert_eq!(from("/tasks/act", place(&answer)), "/tasks?state=failed&did=discard&n=2&not=0");
    let left = page(&site, "/tasks?state=failed").await.text;
    assert!(left.contains(&format!("#{}", ids[1])) && !left.contains(&format!("#{}<", ids[0])));
    let none = follow(&site, "/tasks/act", "action=discard").await;
    assert!(none.text.contains("Nothing was selected"), "{}", none.text);
}

#[tokio::test]
async fn all_that_match_are_counted_first_and_then_acted_on() {
    let site = Site::with(&["a", "b"]).await;
    let many: Vec<_> = (0..7).map(|n| json!({ "payload": n })).collect();
    site.post("/v1/queues/a/tasks", &json!(many).to_string()).await;
    fail(&site, "a", "timed out after 30s").await;
    put(&site, "b", &json!({ "payload": 1 })).await;
    fail(&site, "b", "other").await;
    let asked = "/tasks/all?action=retry&queue=a&state=failed&error=timed";
    let preview = page(&site, asked).await.text;
    assert!(preview.contains("<strong>7 tasks</strong>"), "{preview}");
    assert!(page(&site, "/tasks/all?action=retry").await.text.contains("<strong>8 tasks</strong>"));
    for (query, field) in [
        ("action=retry&state=ready", "state"),
        ("action=retry&state=pending", "state"),
        ("action=odd", "action"),
        ("action=retry&since=1h", "state"),
    ] {
        let wrong = page(&site, &format!("/tasks/all?{query}")).await;
        assert_eq!(wrong.status, 422, "{query}");
        assert!(wrong.text.contains(&format!("<strong>{field}</strong>")), "{query}");
    }
    let fields = "action=retry&queue=a&state=failed&error=timed&expected=7&note=back+again";
    let answer = submit(&site, "/tasks/all", fields).await;
    let operation = from("/tasks/all", place(&answer));
    let shown = loop {
        let shown = page(&site, &operation).await.text;
        if shown.contains(">done<") {
            break shown;
        }
        tokio::task::yield_now().await;
    };
    assert!(shown.contains("<strong>7 tasks</strong> moved of about 7"), "{shown}");
    let numbers = site.mill.inspect().queue("a").await.unwrap();
    assert_eq!((numbers.failed, numbers.ready), (0, 7));
    assert_eq!(site.mill.inspect().queue("b").await.unwrap().failed, 1, "it does not match");
    let all = page(&site, "/operations").await.text;
    assert!(all.contains("back again") && all.contains("<code>timed</code>"), "{all}");
    let stop = follow(&site, &format!("{}/stop", operation.split('?').next().unwrap()), "").await;
    assert!(stop.text.contains("It ends after the step it is at."), "{}", stop.text);
    assert_eq!(submit(&site, "/operations/none/stop", "").await.status, 404);
}
