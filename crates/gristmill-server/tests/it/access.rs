//! Who is let in, and for how long.

use std::time::Duration;

use gristmill::Mill;
use gristmill_server::{NewToken, Options, Reach, Scope, TokenError, Tokens};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::client::{Answer, Site, chunk, read, request, token};

/// Asks until the service has heard of what was done to tokens.
async fn until(site: &Site, bearer: &str, status: u16) -> Answer {
    loop {
        let answer = site.by(bearer, "GET", "/v1", "").await;
        if answer.status == status {
            return answer;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn nobody_is_asked_until_there_is_a_token() {
    let site = Site::with(&["a"]).await;
    assert_eq!(site.get("/v1/queues").await.status, 200);
    let admin = site.token("admin", &[Scope::Admin], &[]).await;
    // Within a second, as revoking is.
    while site.get("/v1/queues").await.status == 200 {
        tokio::task::yield_now().await;
    }
    let asked = site.get("/v1/queues").await;
    assert_eq!(asked.problem(), (401, "unauthorized".to_owned(), String::new()));
    assert!(asked.head.contains("www-authenticate: bearer realm=\"gristmill\"\r\n"), "{asked:?}");
    for open in ["/livez", "/readyz", "/openapi.json", "/docs"] {
        assert_eq!(site.get(open).await.status, 200, "{open}");
    }
    assert_eq!(until(&site, &admin, 200).await.status, 200);
    assert!(Tokens::of(&site.mill).revoke("admin").await.unwrap());
    assert!(!Tokens::of(&site.mill).revoke("admin").await.unwrap());
    // There is none left, and only this machine is served.
    while site.get("/v1/queues").await.status != 200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn whoever_others_can_reach_lets_nobody_in_without_a_token() {
    let options = Options { strict: true, ..Options::default() };
    let site = Site::with_options(Mill::open("memory:").await.unwrap(), options).await;
    assert_eq!(site.get("/v1/queues").await.problem().0, 401);
    assert_eq!(site.get("/metrics").await.problem().0, 401);
    assert_eq!(site.get("/livez").await.status, 200);
}

#[tokio::test]
async fn what_is_no_token_is_refused() {
    let site = Site::with(&[]).await;
    let good = site.token("t", &[Scope::Read], &[]).await;
    let ask = async |said: &str| site.send("GET", "/v1", &[("authorization", said)], "").await;
    assert_eq!(ask(&format!("Bearer {good}")).await.status, 200);
    assert_eq!(ask(&format!("bearer   {good}")).await.status, 200, "the word's case is free");
    for said in [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        good.clone(),
        format!("Basic {good}"),
        format!("Bearer {}", good.to_uppercase()),
        format!("Bearer {}", good.get(1..).unwrap()),
        format!("Bearer {good}0"),
        format!("Bearer {good},{good}"),
    ] {
        let refused = ask(&said).await;
        assert!(matches!(refused.status, 401 | 429), "{said}: {refused:?}");
        assert!(!refused.text.contains(&good), "{refused:?}");
    }
    let bearer = format!("Bearer {good}");
    let twice = [("authorization", &*bearer), ("authorization", &*bearer)];
    assert!(matches!(site.send("GET", "/v1", &twice, "").await.status, 401 | 429));
    // Neither a query nor a cookie is one.
    assert_eq!(site.get(&format!("/v1?token={good}")).await.status, 401);
    let cookie = format!("gristmill={good}; token={good}");
    assert_eq!(site.send("GET", "/v1", &[("cookie", &cookie)], "").await.status, 401);
}

#[tokio::test]
async fn who_guesses_is_slowed_and_nobody_else() {
    let site = Site::with(&[]).await;
    let good = site.token("t", &[Scope::Read], &[]).await;
    let wrong = "gristmill_".to_owned() + &"0".repeat(64);
    let mut statuses = Vec::new();
    for _ in 0..15 {
        statuses.push(site.by(&wrong, "GET", "/v1", "").await.status);
    }
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 10, "{statuses:?}");
    let slowed = site.by(&wrong, "GET", "/v1", "").await;
    assert_eq!(slowed.problem().1, "too_many_failures");
    assert!(slowed.head.contains("retry-after: "), "{slowed:?}");
    assert_eq!(site.by(&good, "GET", "/v1", "").await.status, 200, "from the same address");
    let metrics = site.by(&good, "GET", "/metrics", "").await.text;
    assert!(metrics.contains("gristmill_http_tokens_refused_total 16"), "{metrics}");
}

#[tokio::test]
async fn a_revoked_token_loses_what_waits_under_it() {
    let site = Site::with(&["a"]).await;
    let root = site.token("root", &[Scope::Admin], &[]).await;
    let worker = site.token("worker", &[Scope::Work], &["a"]).await;
    let bearer = format!("Bearer {worker}");
    let headers = [("content-type", "application/json"), ("authorization", &*bearer)];
    let ask = json!({ "queues": ["a"], "wait": "60s", "worker": "w" }).to_string();
    let mut waits = BufReader::new(site.connect().await);
    waits.write_all(&request("POST", "/v1/claims", &headers, &ask)).await.unwrap();
    let reader = site.token("reader", &[Scope::Read], &[]).await;
    until(&site, &reader, 200).await;
    let bearer = format!("Bearer {reader}");
    let headers = [("authorization", &*bearer)];
    let mut listens = BufReader::new(site.connect().await);
    listens.write_all(&request("GET", "/v1/events", &headers, "")).await.unwrap();
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        listens.read_line(&mut line).await.unwrap();
    }
    assert!(chunk(&mut listens).await.is_some(), "it is heard");
    for name in ["worker", "reader"] {
        assert!(Tokens::of(&site.mill).revoke(name).await.unwrap());
    }
    until(&site, &worker, 401).await;
    let put = site.by(&root, "POST", "/v1/queues/a/tasks", r#"{"payload":1}"#).await;
    assert_eq!(put.status, 201);
    assert_eq!(read(&mut waits).await.problem().0, 401, "the claim got nothing");
    assert_eq!(chunk(&mut listens).await, None, "and the listener neither");
    // What was caught for it is there for others, at once.
    let ask = json!({ "queues": ["a"], "wait": "30s", "worker": "w" }).to_string();
    let claim = site.by(&root, "POST", "/v1/claims", &ask).await.json();
    assert_eq!(
        (&claim["tasks"][0]["attempt"], &claim["tasks"][0]["payload"]),
        (&json!(1), &json!(1))
    );
}

#[tokio::test]
async fn a_lease_is_of_its_queue_whatever_is_said() {
    let site = Site::with(&["a", "b"]).await;
    let root = site.token("root", &[Scope::Admin], &[]).await;
    let ours = site.token("ours", &[Scope::Work], &["a"]).await;
    let mut claims = Vec::new();
    for queue in ["a", "b"] {
        let path = format!("/v1/queues/{queue}/tasks");
        site.by(&root, "POST", &path, r#"{"payload":1}"#).await;
        let ask = json!({ "queues": [queue], "worker": "w" }).to_string();
        claims.push(site.by(&root, "POST", "/v1/claims", &ask).await.json());
    }
    let id = |n: usize| claims[n]["tasks"][0]["id"].as_str().unwrap();
    // A worker that got hold of another queue's lease.
    let said = json!([
        { "id": id(1), "token": token(&claims[1]), "outcome": "done" },
        { "id": id(1), "token": token(&claims[0]), "outcome": "done" },
        { "id": "999", "token": token(&claims[0]), "outcome": "done" },
        { "id": id(0), "token": token(&claims[1]), "outcome": "done" },
    ]);
    let answers = site.by(&ours, "POST", "/v1/settlements", &said.to_string()).await.json();
    for answer in answers.as_array().unwrap() {
        assert_eq!(answer["outcome"], "gone", "as if it were not there: {answers}");
    }
    // Its token does not give the claim again either.
    let again = json!({ "queues": ["a"], "worker": "w", "token": token(&claims[1]) }).to_string();
    assert_eq!(site.by(&ours, "POST", "/v1/claims", &again).await.problem().1, "token_in_use");
    // What is put along needs the scope for it.
    let follow = json!([{ "id": id(0), "token": token(&claims[0]), "outcome": "done",
        "follow_ups": [{ "queue": "a", "payload": 1 }] }]);
    let refused = site.by(&ours, "POST", "/v1/settlements", &follow.to_string()).await;
    assert_eq!(
        refused.problem(),
        (403, "forbidden".to_owned(), "[0].follow_ups[0].queue".to_owned())
    );
    let done = json!([{ "id": id(0), "token": token(&claims[0]), "outcome": "done" }]);
    let done = site.by(&ours, "POST", "/v1/settlements", &done.to_string()).await.json();
    assert_eq!(done[0]["outcome"], "recorded");
    assert_eq!(site.mill.inspect().queue("b").await.unwrap().processing, 1);
}

#[tokio::test]
async fn filters_reach_as_far_as_their_token() {
    let site = Site::with(&["a-1", "a-2", "b"]).await;
    let root = site.token("root", &[Scope::Admin], &[]).await;
    let some = site.token("some", &[Scope::Admin], &["a-*"]).await;
    let one = site.token("one", &[Scope::Admin], &["a-1"]).await;
    for queue in ["a-1", "a-2", "b"] {
        let path = format!("/v1/queues/{queue}/tasks");
        site.by(&root, "POST", &path, r#"{"payload":1}"#).await;
    }
    let everything = r#"{"filter":{}}"#;
    let vague = site.by(&some, "POST", "/v1/tasks/cancel", everything).await.problem();
    assert_eq!(vague, (422, "invalid".to_owned(), "filter.queue".to_owned()));
    let foreign = site.by(&some, "POST", "/v1/tasks/cancel", r#"{"filter":{"queue":"b"}}"#).await;
    assert_eq!(foreign.problem(), (403, "forbidden".to_owned(), "filter.queue".to_owned()));
    let begun = site.by(&one, "POST", "/v1/tasks/cancel", everything).await.json();
    assert_eq!((&begun["filter"]["queue"], &begun["by"]), (&json!("a-1"), &json!("one")));
    let listed = async |token: &str| {
        let page = site.by(token, "GET", "/v1/tasks?state=pending", "").await.json();
        page["tasks"].as_array().unwrap().iter().map(|t| t["queue"].clone()).collect::<Vec<_>>()
    };
    while listed(&one).await.len() == 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(listed(&some).await, [json!("a-2")]);
    assert_eq!(listed(&root).await, [json!("b"), json!("a-2")]);
    let near = site.by(&some, "GET", "/v1/queues/a-3", "").await;
    assert!(near.status == 404 && !near.text.contains("did you mean"), "{near:?}");
    let metrics = site.by(&one, "GET", "/metrics", "").await.text;
    assert!(metrics.contains("queue=\"a-1\"") && !metrics.contains("\"b\""), "{metrics}");
}

#[tokio::test]
async fn what_is_kept_of_a_token_does_not_let_anybody_in() {
    let site = Site::with(&[]).await;
    let good = site.token("t", &[Scope::Admin], &[]).await;
    let store = site.mill.store();
    let kept = store.document("token", "t").await.unwrap().unwrap();
    assert!(!kept.body.contains(good.strip_prefix("gristmill_").unwrap()), "{kept:?}");
    let body: serde_json::Value = serde_json::from_str(&kept.body).unwrap();
    let hash = body["sha256"].as_str().unwrap();
    let said = site.by(&format!("gristmill_{hash}"), "GET", "/v1", "").await;
    assert_eq!(said.status, 401, "the hash is no token");
    let shown = serde_json::to_string(&Tokens::of(&site.mill).list().await.unwrap()).unwrap();
    assert!(!shown.contains(hash) && !shown.contains(&good), "{shown}");
}

#[tokio::test]
async fn tokens_end_and_bad_ones_grant_nothing() {
    let site = Site::with(&[]).await;
    let tokens = Tokens::of(&site.mill);
    let new = |name: &str, lasts| NewToken {
        name: name.to_owned(),
        scopes: vec![Scope::Read],
        reach: Reach::all(),
        lasts,
        by: "ada".to_owned(),
    };
    let (short, _) = tokens.create(new("short", Some(Duration::from_secs(1)))).await.unwrap();
    // The clock runs for it; on a busy machine it may be over before it was ever shown.
    while site.by(short.reveal(), "GET", "/v1", "").await.status == 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(site.get("/v1").await.status, 401, "an expired one does not open the door");
    assert!(matches!(tokens.create(new("short", None)).await, Err(TokenError::Taken(_))));
    assert!(matches!(tokens.create(new("no name", None)).await, Err(TokenError::Name(_))));
    let never = Some(Duration::ZERO);
    assert!(matches!(tokens.create(new("never", never)).await, Err(TokenError::Lasts)));
    let nothing = NewToken { scopes: Vec::new(), ..new("nothing", None) };
    assert!(matches!(tokens.create(nothing).await, Err(TokenError::NoScope)));
    // What somebody else wrote there neither opens nor hides the good ones.
    let (good, _) = tokens.create(new("good", None)).await.unwrap();
    for (name, body) in
        [("bad", "{"), ("worse", r#"{"sha256":"","scopes":["admin"],"queues":[],"by":"x"}"#)]
    {
        let (expects, body) = (gristmill::port::Expects::Absent, Some(body.to_owned()));
        let change = gristmill::port::DocumentChange::new("token", name, expects, body);
        site.mill.store().save_document(change).await.unwrap();
    }
    until(&site, good.reveal(), 200).await;
    let states: Vec<_> =
        tokens.list().await.unwrap().iter().map(|one| one.state.as_str()).collect();
    assert_eq!(states, ["unreadable", "active", "expired", "unreadable"]);
}
