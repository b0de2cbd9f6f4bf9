//! A server that takes no writes: what only reads works there, and what would have
//! to write says so.

use gristmill_core::{SettingsPatch, Store};
use gristmill_pgserver::{PrivateServer, Server};

use crate::support::{declare, put, request, store, task};

/// A server that follows another one, as far as anybody can tell from its answers.
fn made_a_standby(server: &PrivateServer) {
    server.psql("postgres", "COPY (SELECT 1) TO PROGRAM 'touch standby.signal'").unwrap();
    server.stop().unwrap();
    server.start().unwrap();
}

#[tokio::test]
async fn doctor_looks_at_a_standby() {
    let server = tokio::task::spawn_blocking(|| {
        Server::private_with(&[("wal_level", "replica")]).expect("a server")
    });
    let server = server.await.unwrap();
    let url = server.url();
    let primary = store(&url).await;
    declare(&primary, "q", SettingsPatch::default()).await;
    put(&primary, "q", vec![task("1")]).await;
    primary.close().await.unwrap();
    let server = tokio::task::spawn_blocking(move || {
        made_a_standby(&server);
        server
    });
    let server = server.await.unwrap();
    let standby = store(&url).await;
    let found = standby.diagnose().await.expect("it only looks");
    let codes: Vec<_> = found.iter().map(|one| (one.code, one.grave)).collect();
    assert!(codes.contains(&("read_only", false)), "{found:?}");
    let told = found.iter().find(|one| one.code == "read_only").unwrap();
    assert!(told.remedy.contains("primary"), "{told:?}");
    assert!(codes.iter().all(|(_, grave)| !grave), "{found:?}");
    assert_eq!(standby.stats().await.unwrap()[0].total(), 1);
    assert!(standby.put(request("q", vec![task("2")])).await.is_err());
    drop(standby);
    drop(server);
}
