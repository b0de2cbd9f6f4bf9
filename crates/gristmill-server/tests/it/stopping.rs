//! Stopping: what is under way is answered, and nothing is taken for nobody.

use tokio::io::AsyncWriteExt;

use crate::client::{Site, request};

#[tokio::test]
async fn who_waits_for_work_is_answered_at_the_stop() {
    let mut site = Site::with(&["a"]).await;
    let address = site.address;
    let asked = request(
        "POST",
        "/v1/claims",
        &[("content-type", "application/json")],
        r#"{"queues":["a"],"wait":"60s"}"#,
    );
    let waiting = tokio::spawn(async move {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(&asked).await.unwrap();
        crate::client::read(&mut tokio::io::BufReader::new(stream)).await
    });
    while site.mill.verbs().wait.calls() == 0 && site.mill.verbs().claim.calls() == 0 {
        tokio::task::yield_now().await;
    }
    site.begin_stop();
    let answer = waiting.await.unwrap();
    assert_eq!((answer.status, answer.json()["tasks"].as_array().unwrap().len()), (200, 0));
    site.stop().await;
}

#[tokio::test]
async fn a_stop_does_not_wait_for_those_who_only_listen() {
    let site = Site::with(&["a"]).await;
    let mut listening = site.connect().await;
    listening.write_all(&request("GET", "/v1/events", &[], "")).await.unwrap();
    let _silent = site.connect().await;
    assert_eq!(site.get("/livez").await.status, 200);
    tokio::time::timeout(std::time::Duration::from_secs(4), site.stop()).await.expect("it stops");
}
