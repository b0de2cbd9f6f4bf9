//! A service over a store of its own, and a client that says exactly what a test wants.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use gristmill::Mill;
use gristmill_server::{Encryption, NewToken, Options, Port, Reach, Scope, Server, Tokens};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::documented;

pub(crate) struct Site {
    pub(crate) mill: Mill,
    pub(crate) address: SocketAddr,
    /// What it says of itself, once it was asked.
    document: OnceLock<Value>,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
}

/// What a request came to.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// What a client may act on: the status, the code and the field at fault.
    pub(crate) fn problem(&self) -> (u16, String, String) {
        assert!(self.head.contains("application/problem+json"), "{self:?}");
        let said = self.json();
        for field in ["type", "title", "detail", "advice"] {
            assert!(said[field].as_str().is_some_and(|text| !text.is_empty()), "{said}");
        }
        assert_eq!(said["status"], self.status, "{said}");
        let text = |name: &str| said[name].as_str().unwrap_or_default().to_owned();
        (self.status, text("code"), text("field"))
    }
}

impl Site {
    /// A service over a memory store with these queues.
    pub(crate) async fn with(queues: &[&str]) -> Self {
        let site = Self::over(Mill::open("memory:").await.unwrap()).await;
        for queue in queues {
            site.mill.declare_queue(queue).await.unwrap();
        }
        site
    }

    pub(crate) async fn over(mill: Mill) -> Self {
        Self::with_options(mill, Options::default()).await
    }

    /// A service over an empty store that serves nothing that is not encrypted.
    pub(crate) async fn encrypted(encryption: Arc<Encryption>) -> Self {
        let mill = Mill::open("memory:").await.unwrap();
        Self::made(mill, Options::default(), |server| server.encrypted(encryption)).await
    }

    pub(crate) async fn with_options(mill: Mill, options: Options) -> Self {
        Self::made(mill, options, |server| server).await
    }

    async fn made(mill: Mill, options: Options, change: impl FnOnce(Server) -> Server) -> Self {
        let port = Port::take("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = port.address();
        let server = change(Server::new(port, &mill, options));
        let (stop, stops) = oneshot::channel();
        let running = tokio::spawn(server.run(async move {
            let _ = stops.await;
        }));
        Site { mill, address, document: OnceLock::new(), stop: Some(stop), running }
    }

    /// Asks it to stop, and returns when it has.
    pub(crate) async fn stop(mut self) -> Mill {
        drop(self.stop.take());
        self.running.await.unwrap();
        self.mill
    }

    /// Asks it to stop, and does not wait.
    pub(crate) fn begin_stop(&mut self) {
        drop(self.stop.take());
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// A token with these scopes, for these queues.
    pub(crate) async fn token(&self, name: &str, scopes: &[Scope], queues: &[&str]) -> String {
        let new = NewToken {
            name: name.to_owned(),
            scopes: scopes.to_vec(),
            reach: Reach::of(queues).unwrap(),
            lasts: None,
            by: "ada".to_owned(),
        };
        Tokens::of(&self.mill).create(new).await.unwrap().0.reveal().to_owned()
    }

    /// The same as `send`, by whoever has this token.
    pub(crate) async fn by(&self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {token}");
        let json = ("content-type", "application/json");
        self.send(method, path, &[json, ("authorization", &bearer)], body).await
    }

    /// Sends what is given, byte for byte, and reads one answer.
    pub(crate) async fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect().await;
        stream.write_all(request).await.unwrap();
        read(&mut BufReader::new(stream)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, &[("content-type", "application/json")], body).await
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let answer = self.raw(&request(method, path, headers, body)).await;
        let document = match self.document.get() {
            Some(document) => document,
            None => {
                let asked = self.raw(&request("GET", "/openapi.json", &[], "")).await;
                self.document.get_or_init(|| asked.json())
            }
        };
        documented::check(document, method, path, &answer);
        answer
    }
}

/// A request with what every request has.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        text += "host: localhost\r\n";
    }
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() || method != "GET" {
        text += &format!("content-length: {}\r\n", body.len());
    }
    format!("{text}\r\n{body}").into_bytes()
}

/// Reads one answer: its head, and its body by its length or in chunks.
pub(crate) async fn read(stream: &mut BufReader<TcpStream>) -> Answer {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let read = stream.read_line(&mut head).await.unwrap();
        assert!(read > 0, "the connection was closed: {head:?}");
    }
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let head = head.to_ascii_lowercase();
    let length = head
        .split("content-length:")
        .nth(1)
        .map(|rest| rest.split("\r\n").next().unwrap().trim().parse::<usize>().unwrap());
    let mut body = Vec::new();
    if let Some(length) = length {
        body.resize(length, 0);
        stream.read_exact(&mut body).await.unwrap();
    } else if head.contains("transfer-encoding: chunked") {
        while let Some(chunk) = chunk(stream).await {
            body.extend(chunk);
        }
    }
    Answer { status, head, text: String::from_utf8(body).unwrap() }
}

/// The next chunk of an answer; nothing at its proper end.
pub(crate) async fn chunk(stream: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut size = String::new();
    stream.read_line(&mut size).await.unwrap();
    let size = usize::from_str_radix(size.trim(), 16).unwrap_or_else(|_| panic!("cut: {size:?}"));
    let mut bytes = vec![0; size + 2];
    stream.read_exact(&mut bytes).await.unwrap();
    bytes.truncate(size);
    (size > 0).then_some(bytes)
}

/// The token of a claim's answer.
pub(crate) fn token(claim: &Value) -> &str {
    claim["token"].as_str().unwrap()
}
