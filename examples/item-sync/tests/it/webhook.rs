//! A server for notices that answers when the test says so: as long as it
//! does not, the task is processing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

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
    stream: Box<dyn Talks>,
}

/// A connection, in the clear or by TLS.
trait Talks: Read + Write + Send {}
impl<T: Read + Write + Send> Talks for T {}

impl Webhook {
    pub(crate) fn start() -> Self {
        Webhook::listen("http", |stream| Box::new(stream))
    }

    /// By HTTPS, with a certificate of the authority `ca.crt`, both made anew in this
    /// folder.
    pub(crate) fn start_tls(folder: &Path) -> Self {
        certificates(folder);
        let certificate = CertificateDer::from_pem_file(folder.join("server.crt"));
        let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).expect("a key");
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(ring)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.expect("a certificate")], key);
        let config = Arc::new(config.expect("a configuration"));
        Webhook::listen("https", move |stream| {
            let connection = ServerConnection::new(config.clone()).expect("a connection");
            Box::new(StreamOwned::new(connection, stream))
        })
    }

    fn listen(
        scheme: &str,
        talk: impl Fn(std::net::TcpStream) -> Box<dyn Talks> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("{scheme}://{}/new-item", listener.local_addr().expect("an address"));
        let (sender, posts) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // The test is over when nobody listens any more.
                let Some(post) = Post::read(talk(stream)) else { continue };
                if sender.send(post).is_err() {
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
    /// None where the other side went away, as who trusts no such certificate does.
    fn read(stream: Box<dyn Talks>) -> Option<Self> {
        let mut reader = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).ok()? > 2 {
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        let number = |name: &str| body[name].as_i64().expect(name);
        assert!(body["name"].is_string() && body["price_cents"].is_u64(), "{body}");
        Some(Post { item: number("item"), task: number("task"), stream: reader.into_inner() })
    }

    /// Answers; the program may be dead by now.
    pub(crate) fn answer(mut self, status: u16) {
        let answer =
            format!("HTTP/1.1 {status} As Asked\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let _ = self.stream.write_all(answer.as_bytes()).and_then(|()| self.stream.flush());
    }
}

/// `ca.crt`, and `server.crt` and `server.key` for 127.0.0.1.
fn certificates(folder: &Path) {
    let openssl = |words: &str| {
        let made = Command::new("openssl").args(words.split(' ')).current_dir(folder).output();
        let made = made.expect("openssl is installed");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    let ec = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    std::fs::write(folder.join("ext"), "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
        .expect("written");
    openssl(&format!("req -x509 {ec} -days 2 -subj /CN=ca -keyout ca.key -out ca.crt"));
    openssl(&format!("req {ec} -subj /CN=server -keyout server.key -out server.csr"));
    openssl(
        "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile ext \
         -out server.crt",
    );
}
