//! Encrypted connections: libpq's words, and what is said when the server is
//! not to be trusted. The certificates are made anew by `openssl`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gristmill_core::{Store, StoreError};
use gristmill_pgserver::{PrivateServer, Server};
use gristmill_postgres::{Options, PostgresStore};

use crate::support::database_within;

/// A folder with certificates in it.
struct Certificates(tempfile::TempDir);

impl Certificates {
    fn new() -> Self {
        Certificates(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn openssl(&self, words: &str) {
        let mut command = Command::new("openssl");
        let made = command.args(words.split(' ')).current_dir(self.0.path()).output();
        let made = made.expect("openssl is installed");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    /// `name.crt` and `name.key`, signed by itself.
    fn own_authority(&self, name: &str) {
        self.openssl(&format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
             -subj /CN={name} -addext subjectAltName=DNS:localhost -keyout {name}.key \
             -out {name}.crt"
        ));
    }

    /// `name.crt` and `name.key` for the host `localhost`, signed by `authority`.
    fn signed_by(&self, name: &str, authority: &str) {
        fs::write(self.path("ext"), "subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n")
            .unwrap();
        self.openssl(&format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN={name} \
             -keyout {name}.key -out {name}.csr"
        ));
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA {authority}.crt -CAkey {authority}.key \
             -CAcreateserial -days 2 -extfile ext -out {name}.crt"
        ));
    }

    fn server(&self, name: &str) -> PrivateServer {
        let (certificate, key) =
            (self.text(&format!("{name}.crt")), self.text(&format!("{name}.key")));
        Server::private_with_tls(&certificate, &key).expect("PostgreSQL runs")
    }
}

/// The server's URL over TCP, by the host's name, with what the test says.
fn named(server: &Server, words: &str) -> String {
    format!("{}?{words}", server.tcp_url_of("postgres").replace("127.0.0.1", "localhost"))
}

fn root(path: &Path) -> String {
    format!("sslrootcert={}", path.display())
}

async fn open(url: &str) -> Result<PostgresStore, StoreError> {
    PostgresStore::open(url, Options::default()).await
}

/// Opens a store, works with it, and says of its connections, the listening
/// one included, which are encrypted.
async fn encrypted(server: &Server, url: &str) -> Vec<bool> {
    let store = open(url).await.unwrap_or_else(|e| panic!("{url}: {e}"));
    store.stats().await.unwrap();
    // Who is about to wait for work listens.
    store.mark();
    let heard = async {
        while !store.hears_wake_ups() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), heard).await.expect("it listens");
    let told = server
        .psql(
            "postgres",
            "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
              WHERE application_name = 'gristmill'",
        )
        .unwrap();
    store.close().await.unwrap();
    let gone = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'gristmill'";
    let gone = async {
        while server.psql("postgres", gone).unwrap() != "0" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("its connections end");
    told.lines().map(|line| line == "t").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mode_does_what_libpq_says() {
    let made = Certificates::new();
    made.own_authority("authority");
    made.own_authority("stranger");
    made.signed_by("server", "authority");
    let server = made.server("server");
    let ours = root(&made.path("authority.crt"));
    let by_address = |words: &str| format!("{}?{words}", server.tcp_url_of("postgres"));

    for (url, is_encrypted) in [
        (named(&server, "sslmode=disable"), false),
        (named(&server, ""), true),
        (named(&server, "sslmode=prefer"), true),
        (named(&server, "sslmode=require"), true),
        (named(&server, &format!("sslmode=require&{ours}")), true),
        (named(&server, &format!("sslmode=verify-full&{ours}")), true),
        (by_address(&format!("sslmode=verify-ca&{ours}")), true),
        // PostgreSQL does not encrypt a socket of its own machine.
        (format!("{}?sslmode=verify-full", server.url_of("postgres")), false),
    ] {
        let connections = encrypted(&server, &url).await;
        assert!(connections.len() >= 2, "{url}: {connections:?}");
        assert!(connections.iter().all(|one| *one == is_encrypted), "{url}: {connections:?}");
    }

    let theirs = root(&made.path("stranger.crt"));
    for (url, said) in [
        (named(&server, "sslmode=verify-full"), "sslrootcert="),
        (named(&server, &format!("sslmode=verify-full&{theirs}")), "sslrootcert="),
        (named(&server, &format!("sslmode=verify-ca&{theirs}")), "sslrootcert="),
        (named(&server, &format!("sslmode=require&{theirs}")), "sslrootcert="),
        (by_address(&format!("sslmode=verify-full&{ours}")), "another host"),
        (named(&server, "sslmode=verify-full&sslrootcert=no-such-file"), "no-such-file"),
        (
            named(&server, &format!("sslmode=verify-full&{}", root(&made.path("ext")))),
            "no certificate",
        ),
    ] {
        let refused = open(&url).await.map(drop).expect_err(&url);
        assert!(matches!(refused, StoreError::Invalid(_)), "{refused:?}");
        assert!(refused.to_string().contains(said), "{url}: {refused}");
        assert!(!refused.is_retryable());
    }
}

/// As PostgreSQL's manual makes a certificate for a try: it is its own
/// authority.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_its_own_authority_can_be_trusted() {
    let made = Certificates::new();
    made.own_authority("server");
    made.own_authority("stranger");
    let server = made.server("server");
    let url = named(&server, &format!("sslmode=verify-full&{}", root(&made.path("server.crt"))));
    assert!(encrypted(&server, &url).await.iter().all(|one| *one));
    let theirs = root(&made.path("stranger.crt"));
    let refused = open(&named(&server, &format!("sslmode=verify-full&{theirs}"))).await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
}

#[tokio::test]
async fn a_server_that_does_not_encrypt_is_told() {
    let database = database_within().await;
    for mode in ["require", "verify-full"] {
        let refused = open(&format!("{}?sslmode={mode}", database.tcp_url())).await;
        let refused = refused.map(drop).expect_err("it cannot");
        assert!(matches!(refused, StoreError::Invalid(_)), "{refused:?}");
        assert!(refused.to_string().contains("the server does not encrypt"), "{refused}");
    }
    let plain = open(&format!("{}?sslmode=prefer", database.tcp_url())).await.unwrap();
    plain.close().await.unwrap();
}
