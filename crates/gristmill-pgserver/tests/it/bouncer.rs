//! The pooler in front of a server.

use std::process::Command;

use gristmill_pgserver::Server;

#[test]
fn pgbouncer_serves_each_database_in_transaction_mode() {
    let server = Server::shared().unwrap();
    let database = server.database("pooled", |_| Ok(())).unwrap();
    let url = database.pgbouncer_url().unwrap();
    assert_eq!(url, database.pgbouncer_url().unwrap());
    let ask = |url: &str, sql: &str| {
        let output = Command::new(server.program("psql"))
            .args(["-X", "-At", "-d", url, "-c", sql])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    assert_eq!(ask(&url, "SELECT current_database()"), database.name());
    let console = url.replace(database.name(), "pgbouncer");
    let pools = ask(&console, "SHOW POOLS");
    let ours = pools.lines().find(|line| line.starts_with(database.name())).unwrap();
    assert!(ours.ends_with("|transaction"), "{ours}");
}
