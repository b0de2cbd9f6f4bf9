//! Encrypted connections, and certificates that are replaced while it serves.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use gristmill_server::{Encryption, Scope, TlsError};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::client::Site;

/// A folder with certificates in it.
struct Certificates(TempDir);

impl Certificates {
    fn new() -> Self {
        let all = Certificates(tempfile::tempdir().unwrap());
        all.make("a");
        all
    }

    /// A certificate and its key of this name.
    fn make(&self, name: &str) {
        self.make_one(name, "FALSE");
    }

    /// The same, of an authority or not.
    fn make_one(&self, name: &str, authority: &str) {
        let words = format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj \
             /CN={name} -addext subjectAltName=DNS:localhost -addext \
             basicConstraints=CA:{authority} -keyout {name}.key -out {name}.crt"
        );
        let made =
            Command::new("openssl").args(words.split(' ')).current_dir(self.0.path()).output();
        let made = made.unwrap_or_else(|error| panic!("openssl is not installed: {error}"));
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    /// Puts this one's files in place, as a program that renews does.
    fn put(&self, name: &str) {
        for kind in ["crt", "key"] {
            std::fs::copy(self.path(&format!("{name}.{kind}")), self.path("new")).unwrap();
            std::fs::rename(self.path("new"), self.path(&format!("used.{kind}"))).unwrap();
        }
    }

    fn encryption(&self) -> Result<Encryption, TlsError> {
        Encryption::read(self.path("used.crt"), self.path("used.key"))
    }
}

fn certificate(file: &Path) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(file).unwrap()
}

/// Connects as who trusts this certificate.
async fn connect(site: &Site, trusted: &Path) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate(trusted)).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, site.connect().await).await
}

async fn ask(mut stream: TlsStream<TcpStream>, head: &str) -> String {
    let request = format!("GET /v1 HTTP/1.1\r\nconnection: close\r\n{head}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap().to_ascii_lowercase()
}

#[tokio::test]
async fn only_what_is_encrypted_is_served() {
    let all = Certificates::new();
    all.put("a");
    let site = Site::encrypted(Arc::new(all.encryption().unwrap())).await;
    let stream = connect(&site, &all.path("a.crt")).await.unwrap();
    let answer = ask(stream, "host: localhost\r\norigin: https://localhost\r\n").await;
    assert!(answer.starts_with("http/1.1 200"), "{answer}");
    assert!(!answer.contains("strict-transport-security"), "of this machine's own name: {answer}");
    let stream = connect(&site, &all.path("a.crt")).await.unwrap();
    let downgraded = ask(stream, "host: localhost\r\norigin: http://localhost\r\n").await;
    assert!(downgraded.contains("wrong_origin"), "{downgraded}");
    let stream = connect(&site, &all.path("a.crt")).await.unwrap();
    let named = ask(stream, "host: queues.internal\r\n").await;
    assert!(named.contains("strict-transport-security: max-age="), "{named}");
    let mut plain = site.connect().await;
    plain.write_all(b"GET /v1 HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut said = Vec::new();
    let _ = plain.read_to_end(&mut said).await;
    assert!(!said.starts_with(b"HTTP"), "{said:?}");
}

#[tokio::test]
async fn a_session_that_began_encrypted_stays_so() {
    let all = Certificates::new();
    all.put("a");
    let site = Site::encrypted(Arc::new(all.encryption().unwrap())).await;
    let token = site.token("t", &[Scope::Read], &[]).await;
    let mut stream = connect(&site, &all.path("a.crt")).await.unwrap();
    let form = format!("token={token}");
    // Also where the browser says nothing of it.
    let request = format!(
        "POST /login HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nsec-fetch-site: same-origin\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
        form.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.contains("; HttpOnly; SameSite=Strict; Secure\r\n"), "{answer}");
}

#[tokio::test]
async fn a_renewed_certificate_is_taken_and_a_bad_one_is_not() {
    let all = Certificates::new();
    all.put("a");
    let used = Arc::new(all.encryption().unwrap());
    let site = Site::encrypted(used.clone()).await;
    while used.readings() < 1 {
        tokio::task::yield_now().await;
    }
    let old = connect(&site, &all.path("a.crt")).await.unwrap();
    all.make("b");
    // Half of a renewal: a certificate with another one's key.
    std::fs::copy(all.path("b.crt"), all.path("new")).unwrap();
    std::fs::rename(all.path("new"), all.path("used.crt")).unwrap();
    assert!(matches!(all.encryption(), Err(TlsError::Together { .. })));
    while used.readings() < 2 {
        tokio::task::yield_now().await;
    }
    assert!(connect(&site, &all.path("a.crt")).await.is_ok(), "the one before is still used");
    all.put("b");
    while connect(&site, &all.path("b.crt")).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert!(connect(&site, &all.path("a.crt")).await.is_err());
    let answer = ask(old, "host: localhost\r\n").await;
    assert!(answer.starts_with("http/1.1 200"), "what stood goes on: {answer}");
}

#[test]
fn what_cannot_be_used_says_why() {
    let all = Certificates::new();
    all.put("a");
    for (file, text, part) in [
        ("used.crt", "", "no certificate in"),
        ("used.crt", "nonsense", "no certificate in"),
        ("used.key", "nonsense", "cannot be read"),
    ] {
        let kept = std::fs::read(all.path(file)).unwrap();
        std::fs::write(all.path(file), text).unwrap();
        let error = all.encryption().unwrap_err().to_string();
        assert!(error.contains(part) && error.contains(file), "{error}");
        std::fs::write(all.path(file), kept).unwrap();
    }
    std::fs::remove_file(all.path("used.key")).unwrap();
    assert!(matches!(all.encryption(), Err(TlsError::Key { .. })));
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_to_a_handshake_is_cut() {
    let all = Certificates::new();
    all.put("a");
    let site = Site::encrypted(Arc::new(all.encryption().unwrap())).await;
    let mut silent = site.connect().await;
    let began = tokio::time::Instant::now();
    let _ = silent.read_to_end(&mut Vec::new()).await;
    assert!(began.elapsed() <= Duration::from_secs(11), "{:?}", began.elapsed());
}

/// The first message of a client that knows nothing newer than this version.
fn hello(version: u8) -> Vec<u8> {
    let mut body = vec![3, version];
    body.extend([7; 32]);
    // No session, two suites of those times, no compression, no extensions.
    body.extend([0, 0, 4, 0xc0, 0x13, 0x00, 0x2f, 1, 0]);
    let mut said = vec![0x16, 3, 1, 0, u8::try_from(body.len() + 4).unwrap()];
    said.extend([1, 0, 0, u8::try_from(body.len()).unwrap()]);
    said.extend(body);
    said
}

#[tokio::test]
async fn versions_that_are_broken_are_refused() {
    let all = Certificates::new();
    all.put("a");
    let site = Site::encrypted(Arc::new(all.encryption().unwrap())).await;
    // SSL 3, TLS 1.0 and TLS 1.1.
    for version in 0..=2 {
        let mut stream = site.connect().await;
        stream.write_all(&hello(version)).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        // A fatal alert: there is no agreeing, or this version is not spoken. No hello.
        assert_eq!(answer.len(), 7, "3.{version}: {answer:?}");
        assert_eq!((answer[0], answer[5]), (0x15, 2), "3.{version}: {answer:?}");
        assert!(matches!(answer[6], 40 | 70), "3.{version}: {answer:?}");
    }
}

#[tokio::test]
async fn a_service_that_is_encrypted_is_a_store() {
    let all = Certificates::new();
    all.make("b");
    all.put("a");
    let site = Site::encrypted(Arc::new(all.encryption().unwrap())).await;
    let open = async |ca: &str| {
        let ca = all.path(ca);
        let url = format!("https://localhost:{}?ca={}", site.address.port(), ca.display());
        gristmill::Mill::open(&url).await
    };
    let mill = open("a.crt").await.unwrap();
    mill.declare_queue("q").await.unwrap();
    assert_eq!(site.mill.inspect().stats().await.unwrap().len(), 1);
    for (ca, why) in
        [("b.crt", "certificate"), ("a.key", "no certificate"), ("none", "cannot be read")]
    {
        let error = open(ca).await.map(drop).unwrap_err().to_string();
        assert!(error.contains(why), "{ca}: {error}");
    }
    let plain = format!("http://{}", site.address);
    assert!(gristmill::Mill::open(&plain).await.is_err());
    // What openssl makes unless it is told otherwise: it is said what is wrong with it.
    all.make_one("c", "TRUE");
    all.put("c");
    let site = Site::encrypted(Arc::new(all.encryption().unwrap())).await;
    let url =
        format!("https://localhost:{}?ca={}", site.address.port(), all.path("c.crt").display());
    let error = gristmill::Mill::open(&url).await.map(drop).unwrap_err().to_string();
    assert!(error.contains("CA:FALSE"), "{error}");
}
