//! Who is not answered: other names, pages of other sites, other methods, rubbish.

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::client::{Site, request};

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

/// The head of an answer, in small letters: some have no end.
async fn head(site: &Site, method: &str, path: &str) -> String {
    let mut stream = BufReader::new(site.connect().await);
    let json = [("content-type", "application/json")];
    stream.write_all(&request(method, path, &json, "{}")).await.unwrap();
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).await.unwrap() > 0, "{method} {path}: {head}");
    }
    head.to_ascii_lowercase()
}

/// Whatever the answer: of each route of the document, of pages, and of what is not there.
#[tokio::test]
async fn every_answer_is_marked() {
    let site = Site::with(&["x"]).await;
    let document = site.get("/openapi.json").await.json();
    let pages = ["/", "/tasks", "/failed", "/nothing", "/v1/nothing", "/v1/tasks?x=1"];
    let mut asked: Vec<(String, String)> =
        pages.iter().map(|path| ("GET".to_owned(), (*path).to_owned())).collect();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let parts = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
        let path = parts.collect::<Vec<_>>().join("/");
        asked.extend(methods.as_object().unwrap().keys().map(|m| (m.to_uppercase(), path.clone())));
        // One that it does not have.
        asked.push(("TRACE".to_owned(), path));
    }
    assert!(asked.len() > 150, "{}", asked.len());
    for (method, path) in asked {
        let head = head(&site, &method, &path).await;
        for mark in ["x-content-type-options: nosniff", "frame-ancestors 'none'", "cache-control: "]
        {
            assert!(head.contains(mark), "{method} {path}: {head}");
        }
        assert!(!path.starts_with("/v1") || head.contains("no-store"), "{method} {path}: {head}");
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
