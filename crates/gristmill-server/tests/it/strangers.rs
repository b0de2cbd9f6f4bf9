//! Who is not answered: other names, pages of other sites, other methods, rubbish.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::Site;

#[tokio::test]
async fn other_names_and_pages_of_other_sites_are_refused() {
    let site = Site::with(&["a"]).await;
    let json = ("content-type", "application/json");
    let put = |headers: Vec<(&'static str, &'static str)>| {
        let site = &site;
        async move {
            let all: Vec<_> = headers.into_iter().chain([json]).collect();
            site.send("POST", "/v1/queues/a/tasks", &all, r#"{"payload":1}"#).await.problem()
        }
    };
    assert_eq!(put(vec![("host", "evil.example:4747")]).await.1, "wrong_host");
    assert_eq!(put(vec![("origin", "http://evil.example")]).await.1, "wrong_origin");
    assert_eq!(put(vec![("origin", "null")]).await.1, "wrong_origin");
    assert_eq!(put(vec![("sec-fetch-site", "cross-site")]).await.1, "wrong_origin");
    // What a form can send without asking first.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let sent = site.send("POST", "/v1/queues/a/tasks", &[("content-type", kind)], "{}").await;
        assert_eq!(sent.problem(), (415, "unsupported_media_type".to_owned(), String::new()));
    }
    assert_eq!(site.mill.inspect().queue("a").await.unwrap().total(), 0);
}

#[tokio::test]
async fn every_answer_is_marked() {
    let site = Site::with(&[]).await;
    for path in ["/v1", "/nothing", "/docs", "/v1/tasks?x=1", "/metrics"] {
        let head = site.get(path).await.head;
        for mark in
            ["x-content-type-options: nosniff", "frame-ancestors 'none'", "cache-control: no-store"]
        {
            assert!(head.contains(mark), "{path}: {head}");
        }
    }
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let site = Site::with(&[]).await;
    assert_eq!(site.get("/elsewhere").await.problem().1, "unknown_route");
    assert_eq!(site.get("/v1/").await.problem().1, "unknown_route");
    let wrong = site.send("DELETE", "/v1/queues/a", &[], "").await;
    assert_eq!(wrong.problem().1, "method_not_allowed");
    assert!(wrong.head.contains("allow: get, put, patch"), "{}", wrong.head);
}

#[tokio::test]
async fn rubbish_ends_its_connection_and_nothing_else() {
    let site = Site::with(&[]).await;
    let long = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(200_000));
    let many: String = (0..500).map(|n| format!("x{n}: 1\r\n")).collect();
    let many = format!("GET /v1 HTTP/1.1\r\nhost: localhost\r\n{many}\r\n");
    for rubbish in [
        &b"\0\x01\x02\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        long.as_bytes(),
        many.as_bytes(),
    ] {
        let mut stream = site.connect().await;
        // It may be closed while it is still being sent.
        let _ = stream.write_all(rubbish).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 2"), "{:?}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(site.get("/livez").await.status, 200);
}
