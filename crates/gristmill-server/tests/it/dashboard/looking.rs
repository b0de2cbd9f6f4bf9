//! What pages show: numbers, words, scopes, and what to do where there is nothing.

use std::time::Duration;

use gristmill::ControlPlane;
use gristmill::port::{Assignment, ContractChange, Share, WorkerId, assignment::MANAGER};
use gristmill::{QueueName, Timestamp};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{attributes, fail, follow, page, put, read_only, request, submit, tags};
use crate::client::Site;

#[tokio::test]
async fn a_new_service_teaches_the_next_command() {
    let site = Site::with(&[]).await;
    let text = page(&site, "/").await.text;
    assert!(text.contains("No queue yet") && text.contains("gristmill queue add emails"), "{text}");
    for (path, words) in [
        ("/operations", "gristmill retry --queue"),
        ("/failed", "gristmill failed"),
        ("/queues", "gristmill queue add"),
        ("/workers", "gristmill work"),
        ("/schedules", "cron:"),
        ("/manager", "manager:"),
        ("/put", "gristmill queue add"),
    ] {
        assert!(page(&site, path).await.text.contains(words), "{path}");
    }
    let site = Site::with(&["emails"]).await;
    assert!(page(&site, "/tasks").await.text.contains("gristmill put emails"));
    let text = page(&site, "/").await.text;
    assert!(text.contains("Nothing: every queue is served"), "{text}");
}

#[tokio::test]
async fn the_overview_says_what_needs_attention() {
    let site = Site::with(&["emails", "images"]).await;
    put(&site, "emails", &json!({ "payload": 1 })).await;
    fail(&site, "emails", "no route to host").await;
    put(&site, "emails", &json!({ "payload": 2 })).await;
    site.post("/v1/queues/images/pause", r#"{"by":"ada"}"#).await;
    put(&site, "images", &json!({ "payload": 3 })).await;
    let text = page(&site, "/").await.text;
    for words in [
        "Failures of emails rise: 1 task failed in the last 15 minutes, 0 in the 15 before.",
        "images was paused by ada, and 1 task waits.",
        "last hour: 2 put, 0 done, 1 failed",
        "1 over HTTP",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}

#[tokio::test]
async fn a_list_says_how_much_it_shows() {
    let site = Site::with(&["a", "b"]).await;
    let many: Vec<_> = (0..60).map(|n| json!({ "payload": n, "key": format!("k{n}") })).collect();
    site.post("/v1/queues/a/tasks", &json!(many).to_string()).await;
    put(&site, "b", &json!({ "payload": 1, "delay": "1h" })).await;
    let first = page(&site, "/tasks?queue=a&state=ready").await.text;
    assert!(first.contains("60 in all, 50 shown."), "{first}");
    let next = first.split("rel=\"next\"").next().unwrap().rsplit("href=\"").next().unwrap();
    let next = next.split('"').next().unwrap().replace("&amp;", "&").replace("./", "/");
    let second = page(&site, &next).await.text;
    assert!(
        second.contains("10 tasks shown: these are all from here on.")
            || second.contains("60 in all, 10 shown."),
        "{second}"
    );
    assert!(second.contains("First page"), "{second}");
    let delayed = page(&site, "/tasks?state=delayed").await.text;
    assert!(delayed.contains("1 task shown: these are all from here on."), "{delayed}");
    let none = page(&site, "/tasks?key=nobody").await.text;
    assert!(none.contains("No task matches"), "{none}");
    let one = page(&site, "/tasks?key=k7").await.text;
    assert_eq!(one.matches("<tr data-row=").count(), 1, "{one}");
    for (query, field) in [("state=odd", "state"), ("since=x", "since"), ("cursor=x", "cursor")] {
        let wrong = page(&site, &format!("/tasks?{query}")).await;
        assert_eq!(wrong.status, 422);
        assert!(wrong.text.contains(&format!("<strong>{field}</strong>")), "{}", wrong.text);
    }
}

#[tokio::test]
async fn a_task_is_shown_whole() {
    let site = Site::with(&["a"]).await;
    let task = json!({ "payload": { "to": "ada", "n": 1 }, "key": "k", "group": "g", "source": "s",
                       "headers": { "trace": "abc" }, "priority": 3 });
    let id = put(&site, "a", &task).await;
    fail(&site, "a", "no route\nto host").await;
    let text = page(&site, &format!("/tasks/{id}")).await.text;
    for words in [
        "no route\nto host",
        "&quot;to&quot;: &quot;ada&quot;",
        "gave up for good",
        "<code>worker-1</code>",
        "header <code>trace</code>",
        "When to retry",
        &format!("gristmill retry {id}"),
        &format!("curl localhost/v1/tasks/{id}"),
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let gone = page(&site, "/tasks/999").await;
    assert_eq!(gone.status, 404);
    assert!(gone.text.contains("There is no such task."), "{}", gone.text);
    assert_eq!(page(&site, "/tasks/x").await.status, 422);
}

#[tokio::test]
async fn only_the_part_that_changes_is_sent_again() {
    let site = Site::with(&["a"]).await;
    let again = site.raw(&request("GET", "/?did=retry&n=2", &[("hx-request", "true")], "")).await;
    assert!(again.text.starts_with("<div id=\"live\" hx-get=\"?\""), "{}", again.text);
    assert!(!again.text.contains("<html") && again.text.contains("2 tasks sent back"));
}

#[tokio::test]
async fn what_was_done_is_said_in_our_own_words() {
    let site = Site::with(&["a"]).await;
    let text = page(&site, "/tasks?did=retry&n=2&not=1").await.text;
    assert!(text.contains("2 tasks sent back to run again."), "{text}");
    for odd in ["did=%3Cb%3E&n=1", "did=retry&n=%3Cb%3E", "did=retry"] {
        let text = page(&site, &format!("/tasks?{odd}")).await.text;
        assert!(!text.contains("class=\"flash\""), "{odd}: {text}");
    }
}

#[tokio::test]
async fn pages_that_only_show_have_nothing_to_press() {
    let site = read_only(&["a"]).await;
    let id = put(&site, "a", &json!({ "payload": 1 })).await;
    fail(&site, "a", "x").await;
    let paths = [
        "/",
        "/tasks",
        &format!("/tasks/{id}"),
        "/tasks/all?action=retry",
        "/operations",
        "/failed",
        "/queues",
        "/queues/a",
        "/workers",
        "/schedules",
        "/manager",
    ];
    for path in paths {
        let text = page(&site, path).await.text;
        assert!(text.contains("read only"), "{path}");
        assert!(!text.contains("name=\"action\""), "{path}: {text}");
    }
    assert_eq!(page(&site, "/put").await.status, 403);
    for (path, fields) in [
        ("/tasks/act", "action=discard&ids=1"),
        ("/tasks/all", "action=discard"),
        ("/queues/a/act", "action=pause"),
        ("/schedules/add", "name=x&queue=a&every=5s&payload=1"),
        ("/schedules/x/act", "action=fire"),
        ("/operations/x/stop", ""),
        ("/put", "queue=a&payload=1"),
    ] {
        assert_eq!(submit(&site, path, fields).await.status, 403, "{path}");
    }
    let refused = submit(&site, &format!("/tasks/{id}/act"), "action=discard").await;
    assert_eq!(refused.status, 403);
    assert!(refused.text.contains("These pages only show."), "{}", refused.text);
    assert_eq!(site.mill.inspect().queue("a").await.unwrap().failed, 1);
}

#[tokio::test]
async fn a_page_is_asked_for_below_any_prefix() {
    let site = Site::with(&["a"]).await;
    let id = put(&site, "a", &json!({ "payload": 1 })).await;
    // Every address is seen from the page it stands on; `page` looks that none begins at
    // the root.
    let deep = page(&site, &format!("/tasks/{id}")).await.text;
    assert!(deep.contains("href=\"../tasks\"") && deep.contains("src=\"../assets/app.js?"));
    let shown = follow(&site, &format!("/tasks/{id}/act"), "action=cancel").await;
    assert!(shown.text.contains("1 task cancelled"), "{}", shown.text);
}

#[tokio::test]
async fn workers_are_shown_with_what_they_hold() {
    let site = Site::with(&["a", "b"]).await;
    for n in 0..3 {
        put(&site, "a", &json!({ "payload": n, "key": format!("k{n}") })).await;
    }
    let ask = r#"{"queues":["a"],"max":2,"worker":"w-1"}"#;
    assert_eq!(site.post("/v1/claims", ask).await.status, 200);
    let text = page(&site, "/workers").await.text;
    for words in ["<code>w-1</code>", "over HTTP", "2 tasks in all, 2 shown.", "lease", "k0"] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let queue = page(&site, "/queues/a").await.text;
    for words in ["1 worker over HTTP", "max_attempts", "data-minutes=\"../live/minutes?queue=a"] {
        assert!(queue.contains(words), "{words}\n{queue}");
    }
    assert_eq!(page(&site, "/queues/none").await.status, 404);
}

#[tokio::test]
async fn the_managers_word_is_shown_beside_what_is_reported() {
    let site = Site::with(&["a"]).await;
    let store = site.mill.store();
    let (manager, worker) = (WorkerId::random().unwrap(), WorkerId::new("w-1").unwrap());
    let term = store.campaign(MANAGER, &manager, Duration::from_secs(60)).await.unwrap().term;
    let queue = QueueName::new("a").unwrap();
    let share = Share { worker, queue, processors: 3 };
    let published_at = Timestamp::EPOCH;
    let word = Assignment { term, shares: vec![share], published_at };
    store.publish_assignment(word).await.unwrap();
    let text = page(&site, "/manager").await.text;
    for words in ["<code>w-1</code>", "unknown", "<td class=\"n\">3</td>", "Term 1"] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}

#[tokio::test]
async fn what_came_of_a_task_is_shown() {
    let site = Site::with(&["a"]).await;
    let id = put(&site, "a", &json!({ "payload": 1, "wanted": true })).await;
    let ask = r#"{"queues":["a"],"worker":"w"}"#;
    let claim = site.post("/v1/claims", ask).await.json();
    let done = json!([{ "id": id, "token": claim["token"], "outcome": "done",
                        "result": { "sent": "<b>to ada</b>" } }]);
    site.post("/v1/settlements", &done.to_string()).await;
    let text = page(&site, &format!("/tasks/{id}")).await.text;
    for words in
        ["It is done.", "Result", "&quot;sent&quot;: &quot;&lt;b&gt;to ada&lt;/b&gt;&quot;"]
    {
        assert!(text.contains(words), "{words}\n{text}");
    }
}

#[tokio::test]
async fn a_follow_up_leads_to_the_task_that_put_it() {
    let site = Site::with(&["a", "b"]).await;
    let id = put(&site, "a", &json!({ "payload": 1 })).await;
    let ask = r#"{"queues":["a"],"worker":"w"}"#;
    let claim = site.post("/v1/claims", ask).await.json();
    let done = json!([{ "id": id, "token": claim["token"], "outcome": "done",
                        "follow_ups": [{ "queue": "b", "payload": 2 }] }]);
    let settled = site.post("/v1/settlements", &done.to_string()).await.json();
    let next = settled[0]["follow_ups"][0]["id"].as_str().unwrap().to_owned();
    let text = page(&site, &format!("/tasks/{next}")).await.text;
    let words = format!("follow-up of</dt><dd><a href=\"../tasks/{id}\">#{id}</a>");
    assert!(text.contains(&words), "{text}");
}

#[tokio::test]
async fn minutes_go_back_a_week_and_tell_of_waits() {
    let site = Site::with(&["a"]).await;
    put(&site, "a", &json!({ "payload": 1 })).await;
    site.post("/v1/claims", r#"{"queues":["a"],"worker":"w"}"#).await;
    let week = site.get("/v1/minutes?queue=a&back=7d&step=1h").await.json();
    assert_eq!(week["minutes"][0]["put"], 1, "{week}");
    let waits = week["minutes"][0]["waits"].as_object().unwrap();
    let claimed: u64 = waits.values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(claimed, 1, "{week}");
    assert!(week["minutes"][0]["at"].as_str().unwrap().contains(":00:00"), "{week}");
    for (asked, field) in [("back=8d", "back"), ("step=90s", "step"), ("step=2d", "step")] {
        let wrong = site.get(&format!("/v1/minutes?{asked}")).await;
        assert_eq!(wrong.problem().2, field, "{asked}");
    }
    let shown = page(&site, "/?back=7d").await.text;
    assert!(
        shown.contains("back=7d&amp;step=1h") && shown.contains("data-plot=\"wait\""),
        "{shown}"
    );
}

#[tokio::test]
async fn a_part_of_a_payload_is_looked_for() {
    let site = Site::with(&["emails", "reports"]).await;
    let ada =
        put(&site, "emails", &json!({ "payload": { "to": "ada@example.org", "n": 4711 } })).await;
    put(&site, "emails", &json!({ "payload": { "to": "grace@example.org" } })).await;
    put(&site, "reports", &json!({ "payload": { "for": "ada@example.org" } })).await;
    let shown = async |path: &str| {
        let text = page(&site, path).await.text;
        text.matches("<tr data-row=").count()
    };
    assert_eq!(shown("/tasks?payload=ada%40example").await, 2);
    assert_eq!(shown("/tasks?payload=ada%40example&queue=emails").await, 1);
    assert_eq!(shown("/tasks?payload=4711").await, 1);
    assert_eq!(shown("/tasks?payload=edsger").await, 0);
    // All that match a payload is nothing that an operation can say.
    let found = page(&site, "/tasks?payload=4711").await.text;
    assert!(found.contains(&format!("#{ada}")) && !found.contains("With all that match"));
    let all = page(&site, "/tasks/all?payload=4711&action=cancel").await;
    assert!(all.status >= 400 && all.text.contains("whenever they were put"), "{all:?}");
    // The same over HTTP, a page at a time.
    let listed = site.get("/v1/tasks?payload=example.org&limit=2").await.json();
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 2);
    let next = listed["next"].as_str().unwrap();
    let rest = site.get(&format!("/v1/tasks?payload=example.org&cursor={next}")).await.json();
    assert_eq!(rest["tasks"][0]["id"], ada.as_str());
    assert!(rest["next"].is_null());
}

#[tokio::test]
async fn a_contract_leads_the_form_and_its_payloads_are_found_as_shown() {
    let site = Site::with(&["mails"]).await;
    let contract = ContractChange {
        queue: QueueName::new("mails").unwrap(),
        text: "id: 10000\nname: mails\nfields:\n  - {name: user_id, type: \"int64\"}\n".to_owned(),
        replaces: None,
        breaking: false,
    };
    site.mill.store().register_contract(contract).await.unwrap();
    let form = page(&site, "/put?queue=mails").await.text;
    assert!(form.contains("&quot;user_id&quot;: 0"), "{form}");
    assert!(form.contains("By its contract: <code>user_id</code> int64"), "{form}");
    put(&site, "mails", &json!({ "payload": { "user_id": 4711 } })).await;
    let text = page(&site, "/tasks?payload=4711").await.text;
    assert_eq!(text.matches("<tr data-row=").count(), 1, "{text}");
}

#[tokio::test]
async fn a_first_visit_brings_little_over_the_wire() {
    let site = Site::with(&[]).await;
    for n in 0..50 {
        site.mill.declare_queue(&format!("queue-{n}")).await.unwrap();
    }
    let get = async |path: &str| {
        let asked = [("accept-encoding", "gzip, deflate, br"), ("connection", "close")];
        let mut stream = site.connect().await;
        stream.write_all(&request("GET", path, &asked, "")).await.unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        bytes
    };
    let first = get("/").await;
    let text = String::from_utf8(first.clone()).unwrap();
    let mut all = first.len();
    let mut files = 0;
    for tag in tags(&text) {
        let named = attributes(&tag).into_iter().find(|(_, value)| value.contains("assets/"));
        let Some((_, place)) = named else { continue };
        let bytes = get(&format!("/{}", place.trim_start_matches("./"))).await;
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200"), "{place}: {head}");
        assert!(head.contains("content-encoding: gzip"), "{place}: {head}");
        assert!(head.contains("vary: accept-encoding"), "{place}: {head}");
        all += bytes.len();
        files += 1;
    }
    assert!(files >= 7, "{text}");
    // Much less than was asked for, so that nobody has to weigh each line.
    assert!(all < 120_000, "{all} bytes in {files} files");
    // Who does not say that they unpack get them as they are.
    let plain = site.raw(&request("GET", "/assets/theme.js", &[], "")).await;
    assert!(plain.text.contains("localStorage"), "{plain:?}");
    assert!(!plain.head.contains("content-encoding"), "{}", plain.head);
}
