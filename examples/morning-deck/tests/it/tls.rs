//! The web as it is: HTTPS, and hundreds of items at once.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use morning_deck::config::QueuePlace;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::desk::{BOTH, Desk, MINUTE, rss};

type Pages = Arc<Mutex<HashMap<String, String>>>;

/// A server with a certificate of an authority of its own.
struct TlsServer {
    url: String,
    pages: Pages,
}

impl TlsServer {
    fn start(folder: &Path) -> Self {
        certificates(folder);
        let certificate = CertificateDer::from_pem_file(folder.join("server.crt")).unwrap();
        let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).unwrap();
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(ring)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key);
        let config = Arc::new(config.unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let pages = Pages::default();
        let known = pages.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let connection = ServerConnection::new(config.clone()).unwrap();
                let (stream, pages) = (StreamOwned::new(connection, stream), known.clone());
                // Who believes in other authorities hangs up.
                std::thread::spawn(move || drop(answer(stream, &pages)));
            }
        });
        TlsServer { url, pages }
    }

    fn set(&self, path: &str, text: String) {
        self.pages.lock().unwrap().insert(path.to_owned(), text);
    }
}

fn answer(stream: impl Read + Write, pages: &Pages) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let page = first.split(' ').nth(1).and_then(|path| pages.lock().unwrap().get(path).cloned());
    let (status, text) = page.map_or((404, String::new()), |text| (200, text));
    let head = format!("HTTP/1.1 {status} -\r\nContent-Length: {}\r\n", text.len());
    let stream = reader.get_mut();
    stream.write_all(format!("{head}Connection: close\r\n\r\n{text}").as_bytes())?;
    stream.flush()
}

/// `ca.crt`, and `server.crt` and `server.key` for 127.0.0.1.
fn certificates(folder: &Path) {
    let openssl = |words: &str| {
        let made = Command::new("openssl").args(words.split(' ')).current_dir(folder).output();
        let made = made.expect("openssl is installed");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    let ec = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    let ext = "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n";
    std::fs::write(folder.join("ext"), ext).unwrap();
    openssl(&format!("req -x509 {ec} -days 2 -subj /CN=ca -keyout ca.key -out ca.crt"));
    openssl(&format!("req {ec} -subj /CN=server -keyout server.key -out server.csr"));
    openssl(
        "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile ext \
         -out server.crt",
    );
}

#[tokio::test]
async fn four_hundred_new_items_by_https_are_done_within_a_minute() {
    for place in BOTH {
        let folder = tempfile::tempdir().unwrap();
        let server = TlsServer::start(folder.path());
        let authorities = folder.path().join("ca.crt");
        let properties = format!("application.tls.authorities={}", authorities.display());
        let mut desk = Desk::with(place, &properties).await;
        server.set("/feed.xml", rss(&[]));
        let reader = desk.reader("ada@example.com", "UTC", 1_000).await;
        let source = desk.source_at(reader, &format!("{}/feed.xml", server.url)).await;
        desk.cycle().await;
        assert_eq!(desk.status("source", source), "IDLE");
        // The service of the tests scores by the number in the title.
        let story = |n| {
            server.set(&format!("/s/{n}"), format!("<p>The story of {n}."));
            format!(
                "<item><guid>s{n}</guid><title>Story {}</title><link>/s/{n}</link></item>",
                n % 100
            )
        };
        let items: String = (1..=400).map(story).collect();
        server.set("/feed.xml", format!("<rss><channel>{items}</channel></rss>"));
        // It is due, and it brings news; the next look finds all of them.
        desk.clock.advance(10_000 * MINUTE);
        desk.cycle().await;
        let began = Instant::now();
        desk.cycle().await;
        let statuses = "SELECT status || ' ' || count(*) FROM news_item GROUP BY status";
        assert_eq!(desk.texts(statuses), ["DONE 400"], "{place:?}");
        assert!(began.elapsed() < MINUTE, "{:?}", began.elapsed());
        let read = desk.texts("SELECT content FROM news_item WHERE guid = 's400'");
        assert_eq!(read, ["The story of 400."], "its page was read by https");
        assert_eq!(desk.credits(), 600);
    }
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let server = TlsServer::start(folder.path());
    server.set("/feed.xml", rss(&[]));
    let mut desk = Desk::new(QueuePlace::Database).await;
    let reader = desk.reader("ada@example.com", "UTC", 10).await;
    let source = desk.source_at(reader, &format!("{}/feed.xml", server.url)).await;
    desk.cycle().await;
    assert_eq!(desk.status("source", source), "ERROR");
    let why = desk.texts("SELECT error FROM source").remove(0);
    assert!(why.contains(&server.url) && why.contains("certificate"), "{why}");
}
