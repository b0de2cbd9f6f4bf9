//! The one command of the README, and what it leaves behind.

use std::process::Command;

use gristmill_pgserver::Server;

#[test]
fn the_demo_runs_to_its_end() {
    let server = Server::shared().expect("PostgreSQL");
    let database = server.database("empty", |_| Ok(())).expect("a database");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let url = database.url();
    runtime.block_on(async { gristmill::Mill::open(&url).await?.close().await }).unwrap();
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/demo.sh");
    let output = Command::new(demo).env("DATABASE_URL", &url).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("3 failed tasks sent back"), "{said}");
    let left = "SELECT string_agg(error, '; ' ORDER BY id) FROM gristmill.tasks";
    assert_eq!(
        database.psql(left).unwrap(),
        "no ingredient is called 'saffron'; no ingredient is called 'a little love'"
    );
    let matched = "SELECT count(*) FROM recipe_line WHERE ingredient IS NOT NULL";
    assert_eq!(database.psql(matched).unwrap(), "11");
}
