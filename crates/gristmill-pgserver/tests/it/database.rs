//! Databases of the shared server.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use gristmill_pgserver::{Error, Server};

fn filled(url: &str, server: &Server) -> Result<(), Error> {
    let name = url.rsplit('/').next().unwrap();
    server.psql(name, "CREATE TABLE thing (id int); INSERT INTO thing VALUES (1)").map(drop)
}

#[test]
fn a_database_is_a_copy_of_its_template_and_apart_from_others() {
    let server = Server::shared().unwrap();
    let one = server.database("copy", |url| filled(url, &server)).unwrap();
    let two = server.database("copy", |_| panic!("prepared already")).unwrap();
    one.psql("INSERT INTO thing VALUES (2)").unwrap();
    assert_eq!(one.psql("SELECT count(*) FROM thing").unwrap(), "2");
    assert_eq!(two.psql("SELECT count(*) FROM thing").unwrap(), "1");
}

#[test]
fn a_database_goes_with_its_value_even_when_someone_is_connected() {
    let server = Server::shared().unwrap();
    let database = server.database("dropped", |_| Ok(())).unwrap();
    let name = database.name().to_owned();
    let mut left = std::process::Command::new(server.program("psql"))
        .args(["-X", "-d", &database.url(), "-c", "SELECT pg_sleep(600)"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let asleep = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND wait_event = 'PgSleep'"
    );
    while server.psql("postgres", &asleep).unwrap() != "1" {}
    drop(database);
    let standing = format!("SELECT count(*) FROM pg_database WHERE datname = '{name}'");
    assert_eq!(server.psql("postgres", &standing).unwrap(), "0");
    assert!(!left.wait().unwrap().success());
}

#[test]
fn a_template_is_prepared_once_by_many_and_again_after_a_failure() {
    let server = Server::shared().unwrap();
    // The server may be one that an earlier run used.
    let name = format!("failing{}", std::process::id());
    let refused = server.database(&name, |_| Err(Error::new("no migrations today")));
    assert_eq!(refused.unwrap_err().to_string(), "no migrations today");
    let panicked = server.database(&name, |_| panic!("on purpose"));
    assert!(panicked.unwrap_err().to_string().contains("panicked"));

    let prepared = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let prepare = |url: &str| {
                    prepared.fetch_add(1, Ordering::Relaxed);
                    filled(url, &server)
                };
                let database = server.database(&name, prepare).unwrap();
                assert_eq!(database.psql("SELECT count(*) FROM thing").unwrap(), "1");
            });
        }
    });
    assert_eq!(prepared.load(Ordering::Relaxed), 1);
}

#[test]
fn what_the_server_promises_is_durable() {
    let server = Server::shared().unwrap();
    for setting in ["fsync", "full_page_writes", "synchronous_commit"] {
        assert_eq!(server.psql("postgres", &format!("SHOW {setting}")).unwrap(), "on", "{setting}");
    }
}

#[test]
fn a_wrong_statement_is_an_error_with_its_words() {
    let server = Server::shared().unwrap();
    let error = server.psql("postgres", "SELECT nonsense").unwrap_err().to_string();
    assert!(error.contains("column \"nonsense\" does not exist"), "{error}");
}

/// The port is open to everyone on the machine, so it asks for the password.
#[test]
fn the_port_takes_the_password_and_nobody_without() {
    let server = Server::shared().unwrap();
    let ask = |url: &str| {
        std::process::Command::new(server.program("psql"))
            .args(["-X", "-w", "-At", "-d", url, "-c", "SELECT 7"])
            .output()
            .unwrap()
    };
    let url = server.tcp_url_of("postgres");
    assert_eq!(String::from_utf8_lossy(&ask(&url).stdout).trim(), "7");
    let (head, tail) = url.split_once('@').unwrap();
    let user = head.rsplit_once(':').unwrap().0;
    assert!(!ask(&format!("{user}@{tail}")).status.success());
}
