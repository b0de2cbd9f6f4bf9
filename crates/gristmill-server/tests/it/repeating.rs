//! What is repeated because its answer was lost, over a store that survives: a put by
//! its id, a claim by its token, a settlement as it was.

use gristmill::Mill;
use serde_json::json;

use crate::client::Site;

#[tokio::test]
async fn puts_claims_and_settlements_are_repeated_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("store.db").display());
    let site = Site::over(Mill::open(&url).await.unwrap()).await;
    site.send("PUT", "/v1/queues/a", &[], "").await;
    let put = json!({ "payload": 1, "id": "mine" }).to_string();
    let first = site.post("/v1/queues/a/tasks", &put).await.json();
    let ask = json!({ "queues": ["a"], "worker": "w", "token": "a".repeat(32) }).to_string();
    let claim = site.post("/v1/claims", &ask).await.text;
    site.stop().await.close().await.unwrap();
    let site = Site::over(Mill::open(&url).await.unwrap()).await;
    assert_eq!(site.post("/v1/claims", &ask).await.text, claim);
    let again = site.post("/v1/queues/a/tasks", &put).await;
    assert_eq!((again.status, &again.json()["outcome"]), (200, &json!("duplicate")));
    assert_eq!(again.json()["id"], first["id"]);
    let done = json!([{ "id": first["id"], "token": "a".repeat(32), "outcome": "done" }]);
    let settled = site.post("/v1/settlements", &done.to_string()).await.json();
    site.stop().await.close().await.unwrap();
    let site = Site::over(Mill::open(&url).await.unwrap()).await;
    let again = site.post("/v1/settlements", &done.to_string()).await.json();
    assert_eq!(
        (&settled[0]["outcome"], &again[0]["outcome"]),
        (&json!("recorded"), &json!("gone"))
    );
    site.stop().await.close().await.unwrap();
}
