//! Logging in with a token, as a browser does it, and what that is good for.

use gristmill::Mill;
use gristmill_server::{Options, Scope, Tokens};
use serde_json::json;
use tokio::io::{AsyncWriteExt, BufReader};

use super::{FORM, fail, from, page, place, put, sound, submit};
use crate::client::{Answer, Site, chunk, request};

/// A page as somebody with this cookie sees it.
async fn seen(site: &Site, cookie: &str, path: &str) -> Answer {
    let headers = [("accept", "text/html"), ("cookie", cookie)];
    let answer = site.raw(&request("GET", path, &headers, "")).await;
    if answer.status != 303 {
        sound(path, &answer);
    }
    answer
}

/// Sends a form with this cookie.
async fn sent(site: &Site, cookie: &str, path: &str, fields: &str) -> Answer {
    let headers = [FORM[0], FORM[1], FORM[2], ("cookie", cookie)];
    site.raw(&request("POST", path, &headers, fields)).await
}

/// Logs in. Returns what a browser says from then on.
async fn log_in(site: &Site, token: &str) -> String {
    let answer = submit(site, "/login", &format!("token={token}")).await;
    assert_eq!(place(&answer), "./");
    cookie(&answer).split(';').next().unwrap().to_owned()
}

fn cookie(answer: &Answer) -> &str {
    let said = answer.head.split("set-cookie: ").nth(1);
    said.unwrap_or_else(|| panic!("no cookie: {answer:?}")).split("\r\n").next().unwrap()
}

/// A service that asks for tokens from its first moment.
async fn site() -> Site {
    let mill = Mill::open("memory:").await.unwrap();
    mill.declare_queue("emails").await.unwrap();
    Site::with_options(mill, Options { strict: true, ..Options::default() }).await
}

#[tokio::test]
async fn a_browser_logs_in_and_out() {
    let site = site().await;
    let boss = site.token("boss", &[Scope::Admin], &[]).await;
    // It is led to the form, from wherever it is, and back again.
    for path in ["/", "/tasks?queue=emails", "/queues/emails"] {
        let led = page(&site, path).await;
        let form = page(&site, &from(path, place(&led))).await;
        assert_eq!(form.status, 200, "{path}: {form:?}");
        assert!(form.text.contains("action=\"./login\""), "{}", form.text);
        let (_, to) = place(&led).split_once("login?to=").unwrap_or_default();
        let back = submit(&site, "/login", &format!("token={boss}&to={to}")).await;
        assert_eq!(from("/login", place(&back)), path, "{led:?}");
    }
    // What is no page is told in its own way.
    let part = [("accept", "text/html"), ("hx-request", "true")];
    let part = site.raw(&request("GET", "/tasks", &part, "")).await;
    assert!(part.status == 401 && part.text.contains("login"), "{part:?}");
    let cookie = log_in(&site, &boss).await;
    assert!(!cookie.contains(boss.strip_prefix("gristmill_").unwrap()), "{cookie}");
    let shown = seen(&site, &cookie, "/queues/emails").await;
    assert!(shown.status == 200 && shown.text.contains("Log out boss"), "{shown:?}");
    assert_eq!(place(&seen(&site, &cookie, "/login?to=tasks").await), "./tasks");
    // Another service's cookie beside it is not in the way.
    let two = format!("gristmill_session=x; other=1; {cookie}");
    assert_eq!(seen(&site, &two, "/").await.status, 200);
    assert_eq!(sent(&site, &cookie, "/queues/emails/act", "action=pause").await.status, 303);
    assert!(site.mill.inspect().queue("emails").await.unwrap().paused);
    let other = log_in(&site, &boss).await;
    let left = sent(&site, &cookie, "/logout", "").await;
    assert_eq!(place(&left), "./login");
    assert!(left.head.contains("set-cookie: gristmill_session=; max-age=0;"), "{left:?}");
    assert_eq!(seen(&site, &cookie, "/").await.status, 303, "the secret is worth nothing now");
    assert_eq!(seen(&site, &other, "/").await.status, 200, "the other browser stays");
}

#[tokio::test]
async fn nobody_logs_in_where_nobody_is_asked() {
    let site = Site::with(&[]).await;
    assert_eq!(place(&page(&site, "/login?to=tasks").await), "./tasks");
    assert!(!page(&site, "/").await.text.contains("Log out"));
    let answer = submit(&site, "/login", "token=x").await;
    assert!(place(&answer) == "./" && !answer.head.contains("set-cookie"), "{answer:?}");
}

#[tokio::test]
async fn a_cookie_of_a_session_stays_with_its_browser() {
    let site = site().await;
    let token = site.token("t", &[Scope::Read], &[]).await;
    let answer = submit(&site, "/login", &format!("token={token}")).await;
    let attributes: Vec<&str> = cookie(&answer).split("; ").skip(1).collect();
    assert_eq!(attributes, ["max-age=43200", "httponly", "samesite=strict"]);
    // `/v1` and what else programs ask take none, so no form of anybody could use it.
    let session = cookie(&answer).split(';').next().unwrap();
    for (method, path) in [
        ("GET", "/v1"),
        ("GET", "/v1/tasks"),
        ("GET", "/v1/events"),
        ("GET", "/metrics"),
        ("POST", "/v1/queues/emails/tasks"),
    ] {
        let headers = [("cookie", session), ("content-type", "application/json")];
        let body = if method == "POST" { r#"{"payload":1}"# } else { "" };
        assert_eq!(site.send(method, path, &headers, body).await.status, 401, "{path}");
    }
}

#[tokio::test]
async fn wrong_tokens_are_told_and_slowed() {
    let site = site().await;
    let good = site.token("good", &[Scope::Read], &[]).await;
    let some = site.token("some", &[Scope::Admin], &["emails"]).await;
    let puts = site.token("puts", &[Scope::Put], &[]).await;
    let wrong = "gristmill_".to_owned() + &"0".repeat(64);
    let refused = submit(&site, "/login", &format!("token={wrong}&to=tasks")).await;
    sound("/login", &refused);
    assert!(refused.status == 401 && !refused.head.contains("set-cookie"), "{refused:?}");
    assert!(refused.text.contains("name=\"to\" value=\"tasks\""), "{}", refused.text);
    assert!(!refused.text.contains(&wrong), "{}", refused.text);
    // Good ones that pages would refuse anyway.
    for token in [&some, &puts] {
        let refused = submit(&site, "/login", &format!("token={token}")).await;
        assert!(refused.status == 403 && !refused.head.contains("set-cookie"), "{refused:?}");
    }
    // A form of another site is refused before anything is looked at.
    for headers in [
        vec![FORM[0]],
        vec![FORM[0], ("origin", "http://evil.example")],
        vec![FORM[0], ("sec-fetch-site", "cross-site")],
    ] {
        let fields = format!("token={good}");
        for path in ["/login", "/logout"] {
            let refused = site.raw(&request("POST", path, &headers, &fields)).await;
            assert_eq!(refused.status, 403, "{path} {headers:?}");
        }
    }
    let large = submit(&site, "/login", &format!("token={}", "a".repeat(20_000))).await;
    assert_eq!(large.status, 413);
    let mut statuses = Vec::new();
    for _ in 0..15 {
        statuses.push(submit(&site, "/login", &format!("token={wrong}")).await.status);
    }
    // Counted with those that are shown as a bearer's; one more may come each second.
    assert!(statuses.iter().filter(|status| **status == 401).count() < 15, "{statuses:?}");
    let slowed = submit(&site, "/login", "token=x").await;
    assert!(slowed.status == 429 && slowed.head.contains("retry-after: "), "{slowed:?}");
    assert_eq!(site.by(&wrong, "GET", "/v1", "").await.status, 429);
    log_in(&site, &good).await;
    // A cookie that is over is nobody's guess.
    let stale = format!("gristmill_session={wrong}");
    assert_eq!(seen(&site, &stale, "/").await.status, 303);
}

#[tokio::test]
async fn a_revoked_token_ends_its_sessions() {
    let site = site().await;
    let gone = site.token("gone", &[Scope::Admin], &[]).await;
    let stays = site.token("stays", &[Scope::Read], &[]).await;
    let (gone, stays) = (log_in(&site, &gone).await, log_in(&site, &stays).await);
    let headers = [("cookie", gone.as_str())];
    let mut listens = BufReader::new(site.connect().await);
    listens.write_all(&request("GET", "/live/events", &headers, "")).await.unwrap();
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        tokio::io::AsyncBufReadExt::read_line(&mut listens, &mut line).await.unwrap();
    }
    assert!(chunk(&mut listens).await.is_some(), "it is heard");
    assert!(Tokens::of(&site.mill).revoke("gone").await.unwrap());
    while seen(&site, &gone, "/").await.status == 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(seen(&site, &gone, "/").await.status, 303);
    assert_eq!(sent(&site, &gone, "/queues/emails/act", "action=pause").await.status, 401);
    // Another one of the same name is another one.
    let fresh = site.token("gone", &[Scope::Admin], &[]).await;
    while site.by(&fresh, "POST", "/v1/queues/emails/tasks", r#"{"payload":1}"#).await.status != 201
    {
        tokio::task::yield_now().await;
    }
    assert_eq!(chunk(&mut listens).await, None, "who listened hears no more");
    assert_eq!(seen(&site, &stays, "/queues/emails").await.status, 200);
    assert_eq!(seen(&site, &gone, "/").await.status, 303);
    let minutes = site.raw(&request("GET", "/live/minutes", &[("cookie", &stays)], "")).await;
    assert!(minutes.status == 200 && minutes.json()["minutes"].is_array(), "{minutes:?}");
}

#[tokio::test]
async fn who_may_only_read_finds_nothing_to_act_with() {
    let site = Site::with(&["emails"]).await;
    put(&site, "emails", &json!({ "payload": 1 })).await;
    fail(&site, "emails", "no").await;
    let reader = site.token("reader", &[Scope::Read], &[]).await;
    let boss = site.token("boss", &[Scope::Admin], &[]).await;
    while page(&site, "/").await.status == 200 {
        tokio::task::yield_now().await;
    }
    let (reader, boss) = (log_in(&site, &reader).await, log_in(&site, &boss).await);
    let paths = ["/", "/tasks", "/tasks/1", "/failed", "/queues/emails", "/schedules", "/put"];
    for path in paths {
        let shown = seen(&site, &reader, path).await.text;
        let forms = shown.matches("method=\"post\"").count();
        assert_eq!(forms, 1, "{path}: to log out, and no other: {shown}");
        assert!(shown.contains("read only"), "{path}: {shown}");
    }
    assert!(seen(&site, &boss, "/tasks/1").await.text.contains("name=\"action\""));
    for (path, fields) in [
        ("/tasks/1/act", "action=retry"),
        ("/queues/emails/act", "action=pause"),
        ("/put", "queue=emails&payload=1"),
    ] {
        let refused = sent(&site, &reader, path, fields).await;
        assert!(refused.status == 403 && refused.text.contains("read_only"), "{path}: {refused:?}");
    }
    assert_eq!(site.mill.inspect().queue("emails").await.unwrap().failed, 1);
    assert_eq!(sent(&site, &boss, "/tasks/1/act", "action=retry&note=x").await.status, 303);
    let task = site.mill.inspect().task("1".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(task.note.unwrap().by, "boss");
}

#[tokio::test]
async fn the_login_leads_nowhere_else() {
    let site = site().await;
    let token = site.token("t", &[Scope::Read], &[]).await;
    let cookie = log_in(&site, &token).await;
    for to in [
        "//evil.example",
        "%2F%2Fevil.example",
        "https://evil.example",
        "%5C%5Cevil.example",
        "javascript:alert(1)",
        "..%2F..%2Fx",
        "tasks%2F%252e%252e",
        "tasks%0d%0aset-cookie:%20a=b",
        "login",
    ] {
        let answer = submit(&site, "/login", &format!("token={token}&to={to}")).await;
        assert_eq!(place(&answer), "./", "{to}");
        let form = page(&site, &format!("/login?to={to}")).await;
        assert!(!form.text.contains("name=\"to\""), "{to}: {}", form.text);
        assert_eq!(place(&seen(&site, &cookie, &format!("/login?to={to}")).await), "./", "{to}");
    }
}
