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
