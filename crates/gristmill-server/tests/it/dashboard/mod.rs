//! The dashboard as a browser without scripts sees it.

mod acting;
mod browser;
mod login;
mod looking;
mod million;
mod strangers;
mod vendored;

use gristmill::Mill;
use gristmill_server::Options;
use serde_json::{Value, json};

use crate::client::{Answer, Site, request, token};

/// What a browser sends with a form of a page that was served here.
const FORM: [(&str, &str); 3] = [
    ("content-type", "application/x-www-form-urlencoded"),
    ("origin", "http://localhost"),
    ("sec-fetch-site", "same-origin"),
];

/// A page. Whatever it is, nothing in it could be a script or come from elsewhere.
async fn page(site: &Site, path: &str) -> Answer {
    let answer = site.raw(&request("GET", path, &[("accept", "text/html")], "")).await;
    if answer.status != 303 {
        sound(path, &answer);
    }
    answer
}

/// What is true of every page.
fn sound(path: &str, answer: &Answer) {
    assert!(answer.head.contains("content-type: text/html; charset=utf-8"), "{path}: {answer:?}");
    let policy =
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';";
    assert!(answer.head.contains(policy), "{path}: {}", answer.head);
    assert!(!answer.head.contains("unsafe-inline"), "{path}");
    let text = &answer.text;
    for tag in tags(text) {
        let lower = tag.to_ascii_lowercase();
        assert!(!lower.starts_with("style"), "{path}: a written-in style: <{tag}>");
        if lower.starts_with("script") {
            assert!(lower.contains(" src="), "{path}: a written-in script: <{tag}>");
        }
        for (name, value) in attributes(&tag) {
            assert!(!name.starts_with("on") && name != "style", "{path}: <{tag}>");
            if ["href", "src", "action", "formaction", "hx-get"].contains(&name.as_str()) {
                let elsewhere = value.contains("//") || value.starts_with('/');
                let odd = value.to_ascii_lowercase().contains("script:");
                assert!(!elsewhere && !odd, "{path}: {name}={value} is not relative");
            }
        }
    }
}

/// The insides of all tags, as a browser finds them in text without comments.
fn tags(text: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            continue;
        }
        // A quoted value may hold what ends a tag elsewhere.
        let (mut quoted, mut end) = (false, rest.len());
        for (at, c) in rest.char_indices() {
            match c {
                '"' => quoted = !quoted,
                '>' if !quoted => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        found.push(rest[..end].to_owned());
        rest = &rest[end..];
    }
    found
}

/// The attributes of a tag.
fn attributes(tag: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = tag.split_once(' ').map_or("", |(_, rest)| rest);
    while !rest.trim().is_empty() {
        rest = rest.trim_start();
        let end = rest.find([' ', '=']).unwrap_or(rest.len());
        let name = rest[..end].to_ascii_lowercase();
        rest = &rest[end..];
        let mut value = String::new();
        if let Some(quoted) = rest.strip_prefix("=\"") {
            let end = quoted.find('"').unwrap();
            value = quoted[..end].to_owned();
            rest = &quoted[end + 1..];
        }
        found.push((name, value));
    }
    found
}

/// Sends a form as a browser does.
async fn submit(site: &Site, path: &str, fields: &str) -> Answer {
    site.raw(&request("POST", path, &FORM, fields)).await
}

/// Where an answer leads.
fn place(answer: &Answer) -> &str {
    assert_eq!(answer.status, 303, "{answer:?}");
    answer.head.split("location: ").nth(1).unwrap().split("\r\n").next().unwrap()
}

/// Where that is, seen from what was asked, as a browser reckons.
fn from(asked: &str, place: &str) -> String {
    let mut parts: Vec<&str> = asked.split('/').collect();
    parts.pop();
    let mut place = place;
    while let Some(rest) = place.strip_prefix("../") {
        parts.pop();
        place = rest;
    }
    format!("{}/{}", parts.join("/"), place.trim_start_matches("./"))
}

/// Sends a form and reads the page that follows it.
async fn follow(site: &Site, path: &str, fields: &str) -> Answer {
    let answer = submit(site, path, fields).await;
    page(site, &from(path, place(&answer))).await
}

/// Puts a task with these fields. Returns its id.
async fn put(site: &Site, queue: &str, task: &Value) -> String {
    let answer = site.post(&format!("/v1/queues/{queue}/tasks"), &task.to_string()).await.json();
    answer["id"].as_str().unwrap().to_owned()
}

/// Has as many tasks of a queue as wait fail for good, with this error.
async fn fail(site: &Site, queue: &str, error: &str) {
    let ask = json!({ "queues": [queue], "max": 100, "worker": "worker-1" }).to_string();
    let claim = site.post("/v1/claims", &ask).await.json();
    let ended = |task: &Value| json!({ "id": task["id"], "token": token(&claim), "outcome": "fail", "error": error });
    let ended: Vec<Value> = claim["tasks"].as_array().unwrap().iter().map(ended).collect();
    assert!(!ended.is_empty());
    site.post("/v1/settlements", &json!(ended).to_string()).await;
}

/// A service whose pages only show.
async fn read_only(queues: &[&str]) -> Site {
    let mill = Mill::open("memory:").await.unwrap();
    for queue in queues {
        mill.declare_queue(queue).await.unwrap();
    }
    Site::with_options(mill, Options { read_only: true, ..Options::default() }).await
}

#[test]
fn tags_and_their_attributes_are_found() {
    let text = r#"<p class="a > b" hidden>x &lt;i&gt; <img src=""></p>"#;
    assert_eq!(tags(text), [r#"p class="a > b" hidden"#, r#"img src="""#]);
    assert_eq!(attributes(&tags(text)[0])[1], ("hidden".to_owned(), String::new()));
    assert_eq!(from("/p/tasks/17/act", "../../tasks?did=x"), "/p/tasks?did=x");
    assert_eq!(from("/tasks/act", "../tasks"), "/tasks");
}
