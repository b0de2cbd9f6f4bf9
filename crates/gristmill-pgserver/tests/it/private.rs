//! A server of one's own, stopped and killed.

use gristmill_pgserver::Server;

#[test]
fn a_private_server_loses_nothing_committed_when_it_is_stopped_at_once_or_killed() {
    let server = Server::private_with(&[("jit", "off")]).unwrap();
    assert_eq!(server.psql("postgres", "SHOW jit").unwrap(), "off");
    let database = server.database("kept", |_| Ok(())).unwrap();
    database.psql("CREATE TABLE kept (id int); INSERT INTO kept VALUES (1)").unwrap();

    server.restart_immediately().unwrap();
    database.psql("INSERT INTO kept VALUES (2)").unwrap();

    server.kill().unwrap();
    server.start().unwrap();
    database.psql("INSERT INTO kept VALUES (3)").unwrap();

    server.stop().unwrap();
    assert!(database.psql("SELECT 1").is_err());
    server.start().unwrap();
    assert_eq!(database.psql("SELECT count(*) FROM kept").unwrap(), "3");
}

#[test]
fn a_private_server_is_not_the_shared_one_and_leaves_nothing() {
    let private = Server::private().unwrap();
    let shared = Server::shared().unwrap();
    assert_ne!(private.url(), shared.url());
    let data = private.psql("postgres", "SHOW data_directory").unwrap();
    assert!(std::path::Path::new(&data).is_dir());
    drop(private);
    assert!(!std::path::Path::new(&data).exists());
}

#[test]
fn a_standby_follows_and_takes_over() {
    let primary = Server::primary().unwrap();
    let (one, two) = (primary.standby("one").unwrap(), primary.standby("two").unwrap());
    primary.set("synchronous_standby_names", "FIRST 2 (one, two)").unwrap();
    primary.psql("postgres", "CREATE TABLE kept (id int)").unwrap();
    let count = "SELECT count(*) FROM pg_class WHERE relname = 'kept'";
    let replayed = |server: &gristmill_pgserver::PrivateServer| {
        while server.psql("postgres", count).unwrap() != "1" {}
    };
    replayed(&one);
    replayed(&two);
    assert!(one.psql("postgres", "INSERT INTO kept VALUES (1)").is_err());
    primary.demote().unwrap();
    while primary.psql("postgres", "INSERT INTO kept VALUES (1)").is_ok() {}
    one.promote().unwrap();
    // It would wait for standbys of its own.
    one.set("synchronous_standby_names", "").unwrap();
    one.psql("postgres", "INSERT INTO kept VALUES (1)").unwrap();
}

#[test]
fn a_frozen_server_is_silent_and_a_thawed_one_answers() {
    use std::io::Read as _;
    let server = Server::private().unwrap();
    server.freeze().unwrap();
    let mut line = std::net::TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    line.set_read_timeout(Some(std::time::Duration::from_millis(300))).unwrap();
    assert!(line.read(&mut [0]).is_err(), "nobody is there to answer");
    server.thaw().unwrap();
    assert_eq!(server.psql("postgres", "SELECT 7").unwrap(), "7");
    // A frozen one ends with its value, too.
    server.freeze().unwrap();
}
