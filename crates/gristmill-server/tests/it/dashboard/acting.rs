//! What forms do: to one task, to some, and to all that match.

use std::time::Duration;

use gristmill::ControlPlane;
use gristmill::QueueName;
use gristmill::port::{ProcessorReport, WorkerId, WorkerReport};
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

#[tokio::test]
async fn failed_tasks_are_grouped_and_acted_on_by_their_error() {
    let site = Site::with(&["a", "b"]).await;
    for (queue, error) in [
        ("a", "user 17 not found"),
        ("a", "user 4711 not found"),
        ("b", "user 9 not found"),
        ("a", "user 9 not found and more"),
        ("a", "timed out after 30s"),
    ] {
        put(&site, queue, &json!({ "payload": error })).await;
        fail(&site, queue, error).await;
    }
    let all = page(&site, "/failed").await.text;
    for words in
        ["5 in all, of 3 kinds of error.", "1 task</span>", "a, b", "3 in the last 24 hours"]
    {
        assert!(all.contains(words), "{words}\n{all}");
    }
    let kinds: Vec<&str> = all.split("class=\"error\">").skip(1).collect();
    let users = kinds.iter().find(|kind| kind.starts_with("user # not found</code>")).unwrap();
    assert!(users.contains("<span class=\"many\">3 tasks</span>"), "{users}");
    let first = kinds[0];
    assert!(first.starts_with("timed out after"), "the newest failure comes first: {first}");
    let one = page(&site, "/failed?queue=a").await.text;
    assert!(one.contains("4 in all, of 3 kinds") && one.contains("2 tasks</span>"), "{one}");
    assert_eq!(page(&site, "/failed?queue=none").await.status, 404);
    let shape = "shape=user+%23+not+found";
    let list = page(&site, &format!("/tasks?state=failed&{shape}")).await.text;
    assert_eq!(list.matches("<tr data-row=").count(), 3, "{list}");
    let preview = page(&site, &format!("/tasks/all?action=retry&queue=a&{shape}")).await.text;
    assert!(preview.contains("<strong>2 tasks</strong>"), "{preview}");
    let fields = format!("action=retry&queue=a&{shape}&expected=2");
    let answer = submit(&site, "/tasks/all", &fields).await;
    let operation = from("/tasks/all", place(&answer));
    let shown = loop {
        let shown = page(&site, &operation).await.text;
        if shown.contains(">done<") {
            break shown;
        }
        tokio::task::yield_now().await;
    };
    assert!(shown.contains("<strong>2 tasks</strong> moved"), "{shown}");
    assert!(shown.contains("shape <code>user # not found</code>"), "{shown}");
    let left = site.mill.inspect().failed(None, 10).await.unwrap();
    let mut left: Vec<_> = left.into_iter().filter_map(|task| task.error).collect();
    left.sort();
    assert_eq!(left, ["timed out after 30s", "user 9 not found", "user 9 not found and more"]);
    // Over HTTP it is the same operation.
    let told = site.get("/v1/operations").await.json();
    assert_eq!(
        (&told[0]["action"], &told[0]["filter"]["shape"]),
        (&json!("retry"), &json!("user # not found"))
    );
}

#[tokio::test]
async fn a_queue_is_paused_changed_and_reset() {
    let site = Site::with(&["a"]).await;
    let place = "/queues/a/act";
    assert!(follow(&site, place, "action=pause").await.text.contains("Paused by dashboard"));
    assert!(page(&site, "/queues").await.text.contains(">Resume</button>"));
    assert!(follow(&site, place, "action=resume").await.text.contains("Resumed."));
    let changed = follow(&site, place, "action=set&setting=max_attempts&value=9").await.text;
    assert!(changed.contains("by hand by dashboard"), "{changed}");
    let in_force =
        || async { site.mill.inspect().queues().await.unwrap()[0].settings.max_attempts };
    assert_eq!(in_force().await, Some(9));
    for (fields, field) in [
        ("action=set&setting=max_attempts&value=x", "value"),
        ("action=set&setting=odd&value=1", "value"),
        ("action=set&setting=lease&value=1ms", "value"),
        ("action=set&setting=lease", "value"),
        ("action=odd", "action"),
    ] {
        let wrong = submit(&site, place, fields).await;
        assert_eq!(wrong.status, 422, "{fields}");
        assert!(wrong.text.contains(&format!("<strong>{field}</strong>")), "{}", wrong.text);
    }
    follow(&site, place, "action=reset").await;
    assert_eq!(in_force().await, Some(5));
    assert_eq!(submit(&site, "/queues/none/act", "action=pause").await.status, 404);
}

#[tokio::test]
async fn a_schedule_is_added_fired_paused_and_removed() {
    let site = Site::with(&["a"]).await;
    let fields =
        "name=nightly&queue=a&cron=0+3+*+*+*&zone=Europe/Berlin&payload=%7B%22n%22:2.50%7D";
    let shown = follow(&site, "/schedules/add", fields).await.text;
    assert!(shown.contains("The schedule stands."), "{shown}");
    assert_eq!(shown.matches("<time ").count(), 5, "the next five: {shown}");
    for (fields, field) in [
        (fields, "name"),
        ("name=x&queue=a&payload=1", "cron"),
        ("name=x&queue=a&cron=odd&payload=1", "cron"),
        ("name=x&queue=a&every=5&payload=1", "every"),
        ("name=x&queue=a&every=5s&payload=%7B", "payload"),
        ("name=&queue=a&every=5s&payload=1", "name"),
        ("name=x&every=5s&payload=1", "queue"),
    ] {
        let wrong = submit(&site, "/schedules/add", fields).await;
        assert!(
            wrong.text.contains(&format!("<strong>{field}</strong>")),
            "{fields}: {}",
            wrong.text
        );
    }
    let place = "/schedules/nightly/act";
    assert!(follow(&site, place, "action=fire").await.text.contains("Fired by hand."));
    let task = site.mill.inspect().task("1".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(&task.payload.bytes[..], b"{\"n\":2.50}");
    assert!(follow(&site, place, "action=pause").await.text.contains("paused by dashboard"));
    assert!(follow(&site, place, "action=resume").await.text.contains("from now on"));
    assert!(follow(&site, place, "action=remove").await.text.contains("No schedule"));
    assert_eq!(submit(&site, place, "action=fire").await.status, 404);
    assert_eq!(submit(&site, place, "action=pause").await.status, 404);
}

#[tokio::test]
async fn a_task_is_put_and_put_again_edited() {
    let site = Site::with(&["a"]).await;
    let fields = "queue=a&payload=%7B%22n%22:2.50%7D&key=k&delay=&priority=-3&group=g&source=s";
    let shown = follow(&site, "/put", fields).await.text;
    assert!(shown.contains("The task was put."), "{shown}");
    let task = site.mill.inspect().task("1".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(&task.payload.bytes[..], b"{\"n\":2.50}", "as it was written");
    assert_eq!((task.key.as_deref(), task.priority), (Some("k"), -3));
    assert!(follow(&site, "/put", fields).await.text.contains("stands for its key already"));
    for (fields, field) in [
        ("queue=a&payload=%7B", "payload"),
        ("queue=a", "payload"),
        ("queue=a&payload=1&delay=5", "delay"),
        ("queue=a&payload=1&priority=x", "priority"),
        ("payload=1", "queue"),
        ("queue=none&payload=1", "queue"),
    ] {
        let wrong = submit(&site, "/put", fields).await;
        assert!(
            wrong.text.contains(&format!("<strong>{field}</strong>")),
            "{fields}: {}",
            wrong.text
        );
    }
    fail(&site, "a", "no").await;
    let form = page(&site, "/put?copy=1").await.text;
    assert!(form.contains("name=\"resolves\" value=\"1\" checked"), "{form}");
    assert!(form.contains("&quot;n&quot;: 2.50") && form.contains("value=\"k\""), "{form}");
    let fields = "queue=a&payload=3&key=k&resolves=1";
    assert!(follow(&site, "/put", fields).await.text.contains("Task 2"));
    assert_eq!(site.mill.inspect().task("1".parse().unwrap()).await.unwrap(), None, "resolved");
}

#[tokio::test]
async fn what_was_done_by_hand_is_listed() {
    let site = Site::with(&["a"]).await;
    let none = page(&site, "/audit").await.text;
    assert!(
        none.contains("Nothing was done by hand") && none.contains("gristmill audit"),
        "{none}"
    );
    let id = put(&site, "a", &json!({ "payload": 1 })).await;
    fail(&site, "a", "no").await;
    let retry = "action=retry&note=the+%3Cb%3Eserver%3C%2Fb%3E+is+back";
    follow(&site, &format!("/tasks/{id}/act"), retry).await;
    for _ in 0..101 {
        site.post("/v1/queues/a/pause", r#"{"by":"ada"}"#).await;
    }
    let first = page(&site, "/audit").await.text;
    assert_eq!(first.matches("queues.pause").count(), 100, "{first}");
    assert!(
        first.contains("<td class=\"text\">ada</td>") && first.contains("<td>http</td>"),
        "{first}"
    );
    let next = first.split("rel=\"next\"").next().unwrap().rsplit("href=\"").next().unwrap();
    let next = next.split('"').next().unwrap().replace("./", "/");
    let second = page(&site, &next).await.text;
    for words in
        ["tasks.retry", "the &lt;b&gt;server&lt;/b&gt; is back", "<td>dashboard</td>", "First page"]
    {
        assert!(second.contains(words), "{words}\n{second}");
    }
    assert_eq!(page(&site, "/audit?after=").await.status, 200);
    assert_eq!(page(&site, &format!("/audit?after={}", "x".repeat(65))).await.status, 422);
}

#[tokio::test]
async fn a_failed_task_is_retried_at_a_time() {
    let site = Site::with(&["a"]).await;
    let task =
        async |id: &str| site.mill.inspect().task(id.parse().unwrap()).await.unwrap().unwrap();
    let far = "2099-01-01T00:00:00Z";
    for (when, from, to) in [("2h", 7_100, 7_300), (far, 1_000_000, u64::MAX), ("", 0, 100)] {
        let id = put(&site, "a", &json!({ "payload": when })).await;
        fail(&site, "a", "no").await;
        let asked = format!("action=retry&when={when}");
        let shown = follow(&site, &format!("/tasks/{id}/act"), &asked).await.text;
        assert!(shown.contains("1 task sent back"), "{shown}");
        let task = task(&id).await;
        let ahead = task.run_at.since(task.created_at).as_secs();
        assert!((from..to).contains(&ahead), "{when}: {ahead} s");
    }
    let id = put(&site, "a", &json!({ "payload": 1 })).await;
    fail(&site, "a", "no").await;
    let wrong = submit(&site, &format!("/tasks/{id}/act"), "action=retry&when=tomorrow").await;
    assert_eq!(wrong.status, 422);
    assert!(wrong.text.contains("<strong>when</strong>"), "{}", wrong.text);
    // Over HTTP the same, and only where it means something.
    let retry = |more: &str| format!(r#"{{"ids":["{id}"]{more}}}"#);
    for (path, more, field) in [
        ("retry", r#","delay":"5s","run_at":"2099-01-01T00:00:00Z""#, "run_at"),
        ("retry", r#","run_at":"tomorrow""#, "run_at"),
    ] {
        let answer = site.post(&format!("/v1/tasks/{path}"), &retry(more)).await;
        assert_eq!(answer.problem().2, field, "{path}{more}");
    }
    let discard = site.post("/v1/tasks/discard", &retry(r#","delay":"5s""#)).await;
    assert_eq!(discard.status, 422, "{discard:?}");
    let filter = r#"{"filter":{"queue":"a"},"delay":"5s"}"#;
    assert_eq!(site.post("/v1/tasks/retry", filter).await.problem().2, "delay");
    let done = site.post("/v1/tasks/retry", &retry(r#","delay":"1h""#)).await.json();
    assert_eq!(done["moved"], 1, "{done}");
    assert!(task(&id).await.run_at > task(&id).await.created_at);
}

#[tokio::test]
async fn workers_are_told_what_to_do() {
    let site = Site::with(&["a", "b", "c"]).await;
    let name = |name: &str| QueueName::new(name).unwrap();
    let id = WorkerId::new("w-1").unwrap();
    let idle = || ProcessorReport { queue: None, holding: 0, cycle: Duration::ZERO };
    let report = WorkerReport {
        id: id.clone(),
        host: "h".to_owned(),
        pid: 7,
        version: "1".to_owned(),
        queues: vec![name("a"), name("b")],
        processors: vec![ProcessorReport { queue: Some(name("b")), ..idle() }, idle()],
        handled: Vec::new(),
        follows_term: None,
        stopping: false,
    };
    site.mill.store().report_worker(report).await.unwrap();
    let told =
        async |what: &str| follow(&site, "/workers/act", &format!("worker=w-1&{what}")).await.text;
    let orders = async || site.mill.worker_orders().await.unwrap()[&id].clone();
    let quiet = told("action=quiet").await;
    assert!(quiet.contains("asked to be quiet") && quiet.contains(">quiet</span>"), "{quiet}");
    assert!(quiet.contains("value=\"resume\"") && orders().await.quiet);
    assert!(told("action=resume").await.contains("asked to go on") && !orders().await.quiet);
    // The one that goes round is moved first; one that is there already stays.
    told("action=move&queue=b").await;
    assert_eq!(orders().await.moved, [(1, name("b"))].into());
    told("action=move&queue=b").await;
    assert_eq!(orders().await.moved.len(), 1, "all serve it");
    told("action=move&queue=a").await;
    assert_eq!(orders().await.moved, [(0, name("a")), (1, name("b"))].into());
    assert!(told("action=rotate").await.contains("go round again"));
    assert!(orders().await.moved.is_empty());
    assert!(told("action=stop").await.contains("asked to stop") && orders().await.stop);
    for (fields, field) in
        [("worker=w-1&action=odd", "action"), ("worker=w-1&action=move&queue=c", "queue")]
    {
        let wrong = submit(&site, "/workers/act", fields).await;
        assert!(wrong.text.contains(&format!("<strong>{field}</strong>")), "{}", wrong.text);
    }
    assert_eq!(submit(&site, "/workers/act", "worker=w-2&action=quiet").await.status, 422);
    let log = page(&site, "/audit").await.text;
    assert!(log.contains("workers.stop") && log.contains("w-1"), "{log}");
}
