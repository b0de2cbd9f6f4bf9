//! How much of the store's own rate a worker keeps, and what idle processors
//! cost.

use std::time::{Duration, Instant};

use gristmill::port::{ClaimRequest, Outcome, Settlement, Token, WorkerId};
use gristmill::worker::Worker;
use gristmill::{Mill, QueueName};

use crate::Mail;

async fn filled(folder: &tempfile::TempDir, name: &str, tasks: usize) -> Mill {
    let path = folder.path().join(name);
    let mill = Mill::open(&format!("sqlite://{}", path.display())).await.unwrap();
    mill.declare::<Mail>().await.unwrap();
    let letter = |n: usize| Mail::to(format!("{n:0>80}@example.org"));
    mill.put_all((0..tasks).map(letter)).run().await.unwrap();
    mill
}

/// Tasks a second with nothing but claims and settlements of a thousand.
async fn raw(mill: &Mill) -> f64 {
    let (store, worker) = (mill.store(), WorkerId::random().unwrap());
    let queue = QueueName::new("mails").unwrap();
    let (start, mut done) = (Instant::now(), 0);
    loop {
        let token = Token::random().unwrap();
        let (queue, worker) = (queue.clone(), worker.clone());
        let request = ClaimRequest { queue, max: 1_000, lease: None, worker, source: None, token };
        let claim = store.claim(request).await.unwrap();
        if claim.tasks.is_empty() {
            return f64::from(done) / start.elapsed().as_secs_f64();
        }
        done += i32::try_from(claim.tasks.len()).unwrap();
        let ended = claim.tasks.iter().map(|t| Settlement::new(t.id, token, Outcome::Done));
        store.settle(ended.collect()).await.unwrap();
    }
}

async fn worked(mill: &Mill, tasks: usize) -> f64 {
    let worker = Worker::new(mill).handle(|_: Mail| async { Ok::<(), String>(()) }).drain(true);
    let start = Instant::now();
    let report = worker.run(std::future::pending()).await.unwrap();
    assert_eq!(report.done, tasks as u64);
    let calls = mill.verbs();
    println!("claims {} settles {}", calls.claim.calls(), calls.settle.calls());
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let tasks = tasks as f64;
    tasks / start.elapsed().as_secs_f64()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: a measurement, in release mode"]
async fn a_worker_keeps_most_of_the_rate_of_its_store() {
    const TASKS: usize = 100_000;
    let folder = tempfile::tempdir().unwrap();
    let mut ratios = Vec::new();
    for round in 0..5 {
        let mill = filled(&folder, &format!("raw-{round}.db"), TASKS).await;
        let raw = raw(&mill).await;
        mill.close().await.unwrap();
        let mill = filled(&folder, &format!("worker-{round}.db"), TASKS).await;
        let worked = worked(&mill, TASKS).await;
        mill.close().await.unwrap();
        println!("raw {raw:.0}/s, worker {worked:.0}/s: {:.2}", worked / raw);
        ratios.push(worked / raw);
    }
    ratios.sort_by(f64::total_cmp);
    assert!(ratios[2] >= 0.8, "{ratios:?}");
}

/// From a put's call to its handler's start, on an idle worker: the middle and
/// the slowest of a hundred.
async fn put_to_start(mill: &Mill, puts: u32) -> (Duration, Duration) {
    let (tell, mut started) = tokio::sync::mpsc::unbounded_channel();
    let worker = Worker::new(mill)
        .handle(move |_: Mail| {
            let _ = tell.send(Instant::now());
            async { Ok::<(), String>(()) }
        })
        .start()
        .await
        .unwrap();
    let mut waits = Vec::new();
    for n in 0..puts {
        crate::until("it waits", async || worker.stats().idle == 1).await;
        let put = Instant::now();
        mill.put(Mail::to(n)).await.unwrap();
        waits.push(started.recv().await.unwrap() - put);
    }
    worker.stop().await.unwrap();
    waits.sort();
    (waits[waits.len() / 2], waits[waits.len() * 99 / 100])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: a measurement, in release mode"]
async fn a_put_is_started_at_once() {
    for (mill, _folder) in crate::mills().await {
        let (middle, slow) = put_to_start(&mill, 1_000).await;
        println!("put to start: p50 {middle:?}, p99 {slow:?}");
        let limit = if mill.sqlite().is_some() { 5_000 } else { 100 };
        assert!(middle < Duration::from_micros(limit), "{middle:?}");
    }
}

/// Processor time of this process so far.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    // A tick is a hundredth of a second on every Linux.
    Duration::from_millis(ticks * 10)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: a measurement, to be run alone"]
async fn a_thousand_idle_processors_cost_next_to_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mill = filled(&folder, "idle.db", 0).await;
    let worker = Worker::new(&mill)
        .handle(|_: Mail| async { Ok::<(), String>(()) })
        .processors(1_000)
        .start()
        .await
        .unwrap();
    crate::until("all wait", async || worker.stats().idle == 1_000).await;
    assert_eq!(worker.stats().processors, 1_000);
    let (before, start) = (cpu(), Instant::now());
    tokio::time::sleep(Duration::from_secs(10)).await;
    let share = (cpu() - before).as_secs_f64() / start.elapsed().as_secs_f64();
    println!("1,000 idle processors: {:.2} % of a core", share * 100.0);
    assert!(share < 0.01, "{share}");
    worker.stop().await.unwrap();
}
