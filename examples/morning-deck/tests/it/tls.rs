//! The web as it is: HTTPS, and hundreds of items at once.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use gristmill::sqlite::rusqlite::Transaction;
use morning_deck::config::QueuePlace;
use morning_deck::fetch::Kind;
use morning_deck::search::Search;
use morning_deck::source;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::desk::{BOTH, Desk, MINUTE, rss};

type Pages = Arc<Mutex<HashMap<String, String>>>;

/// A server with a certificate of an authority of its own.
struct TlsServer {
    url: String,
    pages: Pages,
    /// What was posted where, and with which key.
    posted: Arc<Mutex<Vec<(String, String, String)>>>,
}

impl TlsServer {
    fn start(folder: &Path) -> Self {
        let config = certified(folder);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let (pages, posted) = (Pages::default(), Arc::default());
        let server = TlsServer { url, pages, posted };
        let (pages, posted) = (server.pages.clone(), server.posted.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let connection = ServerConnection::new(config.clone()).unwrap();
                let stream = StreamOwned::new(connection, stream);
                let (pages, posted) = (pages.clone(), posted.clone());
                // Who believes in other authorities hangs up.
                std::thread::spawn(move || drop(answer(stream, &pages, &posted)));
            }
        });
        server
    }

    fn set(&self, path: &str, text: String) {
        self.pages.lock().unwrap().insert(path.to_owned(), text);
    }
}

fn answer(
    stream: impl Read + Write,
    pages: &Pages,
    posted: &Mutex<Vec<(String, String, String)>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let (mut line, mut length, mut key) = (String::new(), 0, String::new());
    while reader.read_line(&mut line)? > 2 {
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().unwrap();
            }
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                value.clone_into(&mut key);
            }
            _ => {}
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    if let Some(path) = first.strip_prefix("POST ").and_then(|rest| rest.split(' ').next()) {
        let body = String::from_utf8(body).unwrap();
        posted.lock().unwrap().push((path.to_owned(), key, body));
    }
    let page = first.split(' ').nth(1).and_then(|path| pages.lock().unwrap().get(path).cloned());
    let (status, text) = page.map_or((404, String::new()), |text| (200, text));
    let head = format!("HTTP/1.1 {status} -\r\nContent-Length: {}\r\n", text.len());
    let stream = reader.get_mut();
    stream.write_all(format!("{head}Connection: close\r\n\r\n{text}").as_bytes())?;
    stream.flush()
}

/// What a server says who it is with: a certificate for 127.0.0.1 of the authority in
/// the folder's `ca.crt`.
pub(crate) fn certified(folder: &Path) -> Arc<ServerConfig> {
    certificates(folder);
    let certificate = CertificateDer::from_pem_file(folder.join("server.crt")).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).unwrap();
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key);
    Arc::new(config.unwrap())
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

/// A listing as Reddit has it, with what it says of a post besides.
const LISTING: &str = r#"{"kind": "Listing", "data": {"after": "t3_1", "dist": 1, "modhash": "",
    "children": [{"kind": "t3", "data": {"subreddit": "rust", "title": "Queues &amp; you",
    "name": "t3_1", "selftext": "Text.", "score": 12, "permalink": "/r/rust/1", "is_self": true,
    "url": "https://www.reddit.com/r/rust/1", "stickied": false, "media": null}}]}}"#;

#[tokio::test]
async fn reddit_pages_and_the_search_server_are_spoken_to_by_https() {
    let folder = tempfile::tempdir().unwrap();
    let server = TlsServer::start(folder.path());
    let properties =
        format!("application.tls.authorities={}\n", folder.path().join("ca.crt").display());
    let mut desk = Desk::with(QueuePlace::Database, &properties).await;
    let reader = desk.reader("ada@example.com", "UTC", 10).await;
    let index = Search {
        url: server.url.clone(),
        client: desk.app.deck.services.web.clone(),
        key: Some("a key".to_owned()),
    };
    server.set("/r/rust/new.json", LISTING.to_owned());
    server.set("/news", "<article><a href=/n/1>A headline</a><p>Teaser.".to_owned());
    server.set("/indexes/news_items/documents", String::new());
    for (kind, path) in [(Kind::Reddit, "/r/rust/new.json"), (Kind::Web, "/news")] {
        let url = format!("{}{path}", server.url);
        let add = move |db: &Transaction<'_>, now| source::add(db, reader, (kind, &url), 60, now);
        desk.app.deck.transact(add).await.unwrap();
    }
    desk.cycle().await;
    assert_eq!(desk.statuses("source"), ["IDLE", "IDLE"]);
    let titles = desk.texts("SELECT title FROM news_item ORDER BY source_id");
    assert_eq!(titles, ["Queues & you", "A headline"]);
    let urls = desk.texts("SELECT url FROM news_item ORDER BY source_id");
    assert_eq!(urls[1], format!("{}/n/1", server.url));
    // The index gets what was enriched, with the key.
    desk.execute("UPDATE news_item SET score = 7, done_at = 1 WHERE source_id = 1");
    index.send(&desk.app.deck).await.unwrap();
    let posted = server.posted.lock().unwrap().clone();
    let [(path, key, body)] = posted.as_slice() else { panic!("{posted:?}") };
    assert_eq!((path.as_str(), key.as_str()), ("/indexes/news_items/documents", "Bearer a key"));
    assert!(body.contains("Queues & you"), "{body}");
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
