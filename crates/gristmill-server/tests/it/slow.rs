//! Clients that are slow, silent or many: cut in time, while others are served.
//!
//! The clock of these tests goes on by itself whenever nobody has anything to do, so
//! that a minute of silence takes no time.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Duration, Instant};

use crate::client::Site;

/// How long until the server closes the connection.
async fn closed_after(mut stream: TcpStream) -> Duration {
    let start = Instant::now();
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_closed() {
    let site = Site::with(&[]).await;
    let took = closed_after(site.connect().await).await;
    assert!(took <= Duration::from_secs(11), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_head_that_dribbles_is_cut() {
    let site = Site::with(&[]).await;
    let mut stream = site.connect().await;
    let start = Instant::now();
    for byte in b"GET /v1 HTTP/1.1\r\nhost: localhost\r\nx: ".iter().chain([b'y'].iter().cycle()) {
        if stream.write_all(&[*byte]).await.is_err() || start.elapsed() > Duration::from_secs(60) {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_dribbles_is_cut() {
    let site = Site::with(&["a"]).await;
    let mut stream = site.connect().await;
    let head = "POST /v1/queues/a/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let start = Instant::now();
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.starts_with("HTTP/1.1 408") && said.contains("too_slow"), "{said}");
    assert!(start.elapsed() < Duration::from_secs(120), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_lines_is_ended() {
    let site = Site::with(&["a"]).await;
    for begun in ["", "6\r\n{\"payl\r\n"] {
        let mut stream = site.connect().await;
        let head = format!(
            "POST /v1/queues/a/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n{begun}"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let start = Instant::now();
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said).await;
        assert!(String::from_utf8_lossy(&said).contains("too_slow"), "{said:?}");
        assert!(start.elapsed() < Duration::from_secs(180), "{:?}", start.elapsed());
    }
}

#[tokio::test]
async fn who_waits_for_a_request_makes_room_for_others() {
    let site = Site::with(&[]).await;
    let mut silent = Vec::new();
    for _ in 0..1_500 {
        silent.push(site.connect().await);
    }
    assert_eq!(site.get("/livez").await.status, 200);
    let open = site.get("/metrics").await.text;
    let open = open.lines().find_map(|line| line.strip_prefix("gristmill_http_connections "));
    assert!(open.unwrap().parse::<usize>().unwrap() <= 1_024, "{open:?}");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_not_waited_for() {
    let site = Site::with(&["a"]).await;
    let head = "POST /v1/queues/a/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1073741824\r\n\r\n";
    let answer = site.raw(head.as_bytes()).await;
    assert_eq!(answer.problem().1, "body_too_large");
}
