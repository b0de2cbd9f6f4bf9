//! Blocked tasks that nobody freed: one sweep finds every one, however many
//! others are rightly blocked.

use gristmill_core::{SettingsPatch, Store};

use crate::support::{Place, claim, declare, keyed, put, sound};

#[tokio::test]
async fn a_sweep_looks_at_every_blocked_task() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    let keys = || (0..3_000).map(|n| keyed(&format!("k{n}"))).collect::<Vec<_>>();
    for chunk in keys().chunks(1_000) {
        put(&store, "q", chunk.to_vec()).await;
        assert_eq!(claim(&store, "q", 1_000).await.tasks.len(), 1_000);
    }
    for chunk in keys().chunks(1_000) {
        put(&store, "q", chunk.to_vec()).await;
    }
    assert_eq!(store.sweep().await.unwrap().unblocked, 0);
    // As somebody's own statement might leave it: their places are free, and
    // nothing has told.
    let freed = "UPDATE gristmill_task SET key = key || '!' WHERE place = 1 AND key IN (?1, ?2)";
    place.application().execute(freed, ["k1500", "k2999"]).unwrap();
    assert_eq!(store.sweep().await.unwrap().unblocked, 2);
    assert_eq!(claim(&store, "q", 10).await.tasks.len(), 2);
    sound(&store).await;
}
