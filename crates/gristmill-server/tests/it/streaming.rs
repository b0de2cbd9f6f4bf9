//! Streams of NDJSON: an answer a line, while the stream still comes.

use tokio::io::{AsyncWriteExt, BufReader};

use crate::client::{Site, chunk, read, request};

const TASKS: &str = "/v1/queues/emails/tasks";
const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");

#[tokio::test]
async fn each_line_has_its_answer() {
    let site = Site::with(&["emails"]).await;
    let lines = "{\"payload\":1}\n\n{\"payload\":2,\"x\":1}\nnope\n{\"payload\":3,\"key\":\"k\"}\r\n{\"payload\":4,\"key\":\"k\"}";
    let answer = site.send("POST", TASKS, &[NDJSON], lines).await;
    assert_eq!(answer.status, 200);
    let outcomes: Vec<String> = answer
        .text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| {
            format!(
                "{} {}",
                line["outcome"].as_str().unwrap(),
                line["reason"].as_str().unwrap_or("-")
            )
        })
        .collect();
    assert_eq!(
        outcomes,
        ["enqueued -", "refused unknown_field", "refused not_json", "enqueued -", "duplicate -"]
    );
    let unknown = site.send("POST", "/v1/queues/none/tasks", &[NDJSON], lines).await;
    assert_eq!(unknown.problem().1, "unknown_queue");
}

#[tokio::test]
async fn a_line_is_answered_before_the_next_one_is_sent() {
    let site = Site::with(&["emails"]).await;
    let mut stream = BufReader::new(site.connect().await);
    let head = format!(
        "POST {TASKS} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    stream.get_mut().write_all(head.as_bytes()).await.unwrap();
    let send = |line: &str| format!("{:x}\r\n{line}\r\n", line.len()).into_bytes();
    stream.get_mut().write_all(&send("{\"payload\":1}\n")).await.unwrap();
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        tokio::io::AsyncBufReadExt::read_line(&mut stream, &mut head).await.unwrap();
    }
    for _ in 0..3 {
        let answer = chunk(&mut stream).await.unwrap();
        assert!(answer.starts_with(b"{\"outcome\":\"enqueued\""), "{answer:?}");
        stream.get_mut().write_all(&send("{\"payload\":2}\n")).await.unwrap();
    }
    assert!(chunk(&mut stream).await.is_some());
    stream.get_mut().write_all(b"0\r\n\r\n").await.unwrap();
    assert!(chunk(&mut stream).await.is_none());
}

#[tokio::test]
async fn ten_thousand_lines_are_put_in_flushes() {
    let site = Site::with(&["emails"]).await;
    let lines = "{\"payload\":{\"n\":1}}\n".repeat(10_000);
    // Written and read at once, as a client of a long stream must.
    let stream = site.connect().await.into_std().unwrap();
    let mut writer = tokio::net::TcpStream::from_std(stream.try_clone().unwrap()).unwrap();
    let mut reader = BufReader::new(tokio::net::TcpStream::from_std(stream).unwrap());
    let request = request("POST", TASKS, &[NDJSON], &lines);
    let (answer, written) = tokio::join!(read(&mut reader), writer.write_all(&request));
    written.unwrap();
    assert_eq!(answer.text.lines().count(), 10_000);
    assert_eq!(site.mill.inspect().queue("emails").await.unwrap().ready, 10_000);
    let puts = site.mill.verbs().put.calls();
    assert!(puts < 100, "{puts} flushes");
}

#[tokio::test]
async fn a_line_without_end_is_cut() {
    let site = Site::with(&["emails"]).await;
    let mut body = "{\"payload\":1}\n".to_owned();
    body += &"x".repeat(3 << 20);
    let answer = site.send("POST", TASKS, &[NDJSON], &body).await;
    let lines: Vec<&str> = answer.text.lines().collect();
    assert!(lines[0].contains("enqueued") && lines[1].contains("body_too_large"), "{lines:?}");
}
