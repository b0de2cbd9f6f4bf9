//! What is known when no answer comes: never more than is true.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gristmill_core::*;
use gristmill_remote::wire::{About, VERSION, Wire};
use gristmill_remote::{Options, Remote};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What the service does with a verb's request.
#[derive(Debug, Clone, Copy)]
enum Does {
    /// Reads it, and closes the connection.
    Dies,
    /// Reads it, and says nothing more.
    Hangs,
    /// Sends a part of an answer.
    Half,
    /// This status and body.
    Says(u16, &'static str),
}

/// A service that says what it is when asked, and then does this to every verb. Counts
/// verbs.
async fn service(port: u32, oldest: u32, does: Does) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://s3cret@{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(BufReader::new(stream), port, oldest, does, count.clone()));
        }
    });
    (url, asked)
}

async fn serve(
    mut stream: BufReader<TcpStream>,
    port: u32,
    oldest: u32,
    does: Does,
    asked: Arc<AtomicUsize>,
) {
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
                return;
            }
        }
        assert!(head.contains("authorization: Bearer s3cret\r\n"), "{head}");
        assert!(head.contains(&format!("gristmill-port: {VERSION}\r\n")), "{head}");
        let length = head
            .split("content-length: ")
            .nth(1)
            .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
        stream.read_exact(&mut vec![0; length]).await.unwrap();
        let (status, body) = if head.starts_with("GET ") {
            (200, about(port, oldest))
        } else {
            asked.fetch_add(1, Ordering::SeqCst);
            match does {
                Does::Dies => return,
                Does::Hangs => std::future::pending().await,
                Does::Half => {
                    let part = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"ans";
                    let _ = stream.write_all(part.as_bytes()).await;
                    return;
                }
                Does::Says(status, body) => (status, body.to_owned()),
            }
        };
        let answer = format!(
            "HTTP/1.1 {status} X\r\nlocation: http://127.0.0.1:1/\r\nretry-after: 0\r\n\
             gristmill-mark: one.1\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

fn about(port: u32, oldest: u32) -> String {
    let store = memory::MemoryStore::new(memory::MemoryOptions::default());
    let about = About {
        port,
        oldest,
        version: "9.9.9".to_owned(),
        capabilities: store.capabilities(),
        limits: store.limits().clone(),
        body_bytes: 8 << 20,
        now: Timestamp::EPOCH,
    };
    about.write().to_string()
}

async fn open(url: &str) -> Result<Remote> {
    let quick = Duration::from_millis(300);
    let options = Options { deadline: quick, heartbeat: quick, ..Options::default() };
    Remote::open(url.parse().unwrap(), options).await
}

fn put() -> PutRequest {
    let queue = QueueName::new("q").unwrap();
    PutRequest { queue, tasks: vec![NewTask::new(Payload::json("1"))], atomic: false }
}

#[tokio::test]
async fn a_write_that_was_sent_is_unknown_and_is_sent_once() {
    for does in [Does::Dies, Does::Hangs, Does::Half, Does::Says(502, "<html>")] {
        let (url, asked) = service(VERSION, VERSION, does).await;
        let store = open(&url).await.unwrap();
        let answer = store.put(put()).await;
        assert!(matches!(answer, Err(StoreError::Unknown(_))), "{does:?}: {answer:?}");
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{does:?}: it was repeated");
        assert!(!format!("{answer:?} {store:?}").contains("s3cret"), "{store:?}");
    }
}

#[tokio::test]
async fn what_is_harmless_twice_is_asked_again() {
    let (url, asked) = service(VERSION, VERSION, Does::Dies).await;
    let store = open(&url).await.unwrap();
    let looked = store.stats().await;
    assert!(matches!(looked, Err(StoreError::Unavailable(_))), "{looked:?}");
    assert_eq!(asked.swap(0, Ordering::SeqCst), 3);
    // A heartbeat changes something: that it did not is not known.
    let extension = Extension::new(Token::from_bytes([7; 16]), Duration::from_secs(9));
    let extended = store.extend(vec![extension]).await;
    assert!(matches!(extended, Err(StoreError::Unknown(_))), "{extended:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn what_never_left_is_unavailable() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let opened = open(&format!("http://s3cret@{nobody}")).await.map(drop);
    assert!(matches!(opened, Err(StoreError::Unavailable(_))), "{opened:?}");
    // One that was there when it was opened.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let first = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        drop(listener);
        let asked = Arc::default();
        // Closed after the one answer.
        let serving = serve(BufReader::new(stream), VERSION, VERSION, Does::Dies, asked);
        tokio::time::timeout(Duration::from_millis(200), serving).await.unwrap_err();
    });
    let store = open(&format!("http://s3cret@{address}")).await.unwrap();
    first.await.unwrap();
    let answer = store.put(put()).await;
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
}

#[tokio::test]
async fn a_service_without_room_is_asked_again_and_refusals_are_not() {
    let full = r#"{"code":"overloaded","detail":"64 wait already"}"#;
    let (url, asked) = service(VERSION, VERSION, Does::Says(503, full)).await;
    let answer = open(&url).await.unwrap().put(put()).await;
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 3, "nothing was done, so it may be repeated");
    for (status, body) in [
        (403, r#"{"code":"forbidden","detail":"no","advice":"x"}"#),
        (302, ""),
        (404, r#"{"code":"unknown_route","detail":"nothing there"}"#),
        (503, r#"{"code":"stopping","detail":"x"}"#),
    ] {
        let (url, asked) = service(VERSION, VERSION, Does::Says(status, body)).await;
        let error = open(&url).await.unwrap().put(put()).await.unwrap_err();
        assert!(error.wrote_nothing(), "{error}");
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{status}");
    }
}

#[tokio::test]
async fn two_of_different_times_say_which_to_update() {
    for (port, oldest, said) in [
        (VERSION - 1, VERSION - 1, "update the service first"),
        (VERSION + 9, VERSION + 1, "update this program"),
    ] {
        let (url, _) = service(port, oldest, Does::Dies).await;
        let error = open(&url).await.unwrap_err().to_string();
        assert!(error.contains(said) && error.contains("9.9.9"), "{error}");
    }
    // A newer one that still understands this program.
    let (url, _) = service(VERSION + 9, VERSION, Does::Dies).await;
    open(&url).await.unwrap();
}
