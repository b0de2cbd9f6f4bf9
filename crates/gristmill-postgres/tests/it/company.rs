//! Callers that put at the same time share a statement, and with it a commit:
//! without that each would wait for a flush of its own.

use gristmill_core::{SettingsPatch, Store};

use crate::support::{database_within, declare, request, stats, store, task};

/// Callers at once.
const CALLERS: usize = 64;

#[tokio::test]
async fn callers_share_a_statement() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    let puts: Vec<_> = (0..CALLERS)
        .map(|n| {
            let (store, request) = (store.clone(), request("q", vec![task(&n.to_string())]));
            tokio::spawn(async move { store.put(request).await.unwrap() })
        })
        .collect();
    for put in puts {
        assert_eq!(put.await.unwrap().enqueued(), 1, "each has its own answer");
    }
    assert_eq!(stats(&store, "q").await.ready, CALLERS as u64);
    // Every statement appends one row to the counts, and so few are not folded.
    let statements: usize =
        database.psql("SELECT count(put) FROM gristmill.delta").unwrap().trim().parse().unwrap();
    assert!((1..=CALLERS / 4).contains(&statements), "{statements} for {CALLERS} callers");
}
