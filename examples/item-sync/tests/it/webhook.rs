//! A server for notices that answers when the test says so: as long as it
//! does not, the task is processing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use crate::shop::PATIENCE;

/// The server.
pub(crate) struct Webhook {
    pub(crate) url: String,
    posts: Receiver<Post>,
}

/// A notice that waits for its answer.
pub(crate) struct Post {
    pub(crate) item: i64,
    pub(crate) task: i64,
    stream: TcpStream,
}

impl Webhook {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/new-item", listener.local_addr().expect("an address"));
        let (sender, posts) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // The test is over when nobody listens any more.
                if sender.send(Post::read(stream)).is_err() {
                    return;
                }
            }
        });
        Webhook { url, posts }
    }

    /// An address where nobody listens.
    pub(crate) fn nobody() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}/", listener.local_addr().expect("an address"))
    }

    /// The next notice.
    pub(crate) fn next(&self) -> Post {
        self.posts.recv_timeout(PATIENCE).expect("a notice")
    }

    /// Whether a notice waits.
    pub(crate) fn try_next(&self) -> Option<Post> {
        self.posts.try_recv().ok()
    }
}

impl Post {
    fn read(stream: TcpStream) -> Self {
        let mut reader = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).expect("a line") > 2 {
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        let number = |name: &str| body[name].as_i64().expect(name);
        assert!(body["name"].is_string() && body["price_cents"].is_u64(), "{body}");
        Post { item: number("item"), task: number("task"), stream: reader.into_inner() }
    }

    /// Answers; the program may be dead by now.
    pub(crate) fn answer(mut self, status: u16) {
        let _ = write!(self.stream, "HTTP/1.1 {status} As Asked\r\nContent-Length: 0\r\n\r\n");
    }
}
