//! Remote producers and workers: the library's own, over a service.

use std::sync::Arc;
use std::time::Duration;

use gristmill::prelude::*;
use gristmill_server::Scope;
use tokio::sync::mpsc;

use super::remote;
use crate::client::Site;

#[derive(serde::Serialize, serde::Deserialize)]
struct Mail(u32);

impl TaskType for Mail {
    const QUEUE: &'static str = "mails";
}

/// Longer than a wait that nobody ended.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remote_worker_with_a_workers_token_is_woken() {
    let site = Site::with(&["mails", "other"]).await;
    let works = site.token("works", &[Scope::Work], &["mails"]).await;
    let puts = site.token("puts", &[Scope::Put], &["mails"]).await;
    let worker_side = Mill::over_remote(Arc::new(remote(site.address, Some(&works)).await));
    let producer = Mill::over_remote(Arc::new(remote(site.address, Some(&puts)).await));
    let (ran, mut runs) = mpsc::unbounded_channel();
    let worker = Worker::new(&worker_side).handle(move |Mail(n): Mail| {
        let ran = ran.clone();
        async move {
            ran.send(n).unwrap();
            Ok::<(), String>(())
        }
    });
    let running = worker.start().await.unwrap();
    for n in 0..5 {
        producer.put(Mail(n)).await.unwrap();
        let seen = tokio::time::timeout(PATIENCE, runs.recv()).await.expect("it was not woken");
        assert_eq!(seen, Some(n));
    }
    running.stop().await.unwrap();
    let stats = site.mill.inspect().stats().await.unwrap();
    assert_eq!((stats[0].total(), stats[0].counters.done), (0, 5));
    assert_eq!(stats[0].counters.released, 0, "nothing was claimed in vain");
    // It was reported, and said good-bye.
    assert!(site.mill.inspect().workers().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_is_a_store_like_any_other() {
    let site = Site::with(&[]).await;
    let mill = Mill::open(&format!("http://{}", site.address)).await.unwrap();
    mill.declare::<Mail>().await.unwrap();
    let id = mill.put(Mail(7)).delay(Duration::from_secs(60)).await.unwrap().id();
    let task = site.mill.store().get(id).await.unwrap().unwrap();
    assert_eq!(&*task.payload.bytes, b"7");
    let ours = mill.time().await.unwrap();
    assert!(ours <= site.mill.time().await.unwrap());
    // What is wanted is waited for, over the service as well.
    let bulk = mill.put_all((0..2_500).map(Mail)).run().await.unwrap();
    assert_eq!(bulk.enqueued, 2_500);
    assert!(mill.remote().is_some());
}
