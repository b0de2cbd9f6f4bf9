//! What is repeated because its answer was lost: a put by its id over a store that
//! survives.

use gristmill::Mill;
use serde_json::json;

use crate::client::Site;

#[tokio::test]
async fn a_put_is_repeated_by_its_id_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("store.db").display());
    let site = Site::over(Mill::open(&url).await.unwrap()).await;
    site.send("PUT", "/v1/queues/a", &[], "").await;
    let put = json!({ "payload": 1, "id": "mine" }).to_string();
    let first = site.post("/v1/queues/a/tasks", &put).await.json();
    site.stop().await.close().await.unwrap();
    let site = Site::over(Mill::open(&url).await.unwrap()).await;
    let again = site.post("/v1/queues/a/tasks", &put).await;
    assert_eq!((again.status, &again.json()["outcome"]), (200, &json!("duplicate")));
    assert_eq!(again.json()["id"], first["id"]);
    site.stop().await.close().await.unwrap();
}
