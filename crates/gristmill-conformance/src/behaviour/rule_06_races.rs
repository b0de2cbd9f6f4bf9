//! Rule 6 under concurrency: each place holds one task also when puts race,
//! alone and in bulk, in one process and in two.

use std::collections::BTreeMap;
use std::sync::Arc;

use gristmill_core::{OnDuplicate, Outcome, SettingsPatch, StandingPlace, Unique};
use tokio::sync::Barrier;

use crate::fixture::Fixture;
use crate::shape::{Shape, task};

const RACERS: usize = 64;

/// Lets many put the same key at once, and asserts that one was enqueued and
/// that all others learnt its id.
async fn race(f: &mut Fixture, change: impl Fn(&mut SettingsPatch), bulk: bool) {
    let q = f.queue_with("q", change).await;
    let handles = f.handles().await;
    for round in 0..5 {
        let key = format!("k{round}");
        let start = Arc::new(Barrier::new(RACERS));
        let mut racing = Vec::new();
        for n in 0..RACERS {
            let (handle, q, start) = (handles[n % handles.len()].clone(), q.clone(), start.clone());
            let mut tasks = vec![task(&n.to_string()).keyed(&key)];
            if bulk {
                // The contested key in the middle, with neighbours of its own.
                tasks.insert(0, task("a"));
                tasks.push(task("b").keyed(&format!("own {round} {n}")));
            }
            racing.push(tokio::spawn(async move {
                start.wait().await;
                handle.put_all(&q, tasks).await
            }));
        }
        let mut answers = Vec::new();
        for racer in racing {
            let mut report = racer.await.expect("a put");
            if bulk {
                assert!(report[0].is_enqueued() && report[2].is_enqueued(), "{report:?}");
            }
            answers.push(report.remove(usize::from(bulk)));
        }
        let winners = answers.iter().filter(|answer| answer.is_enqueued()).count();
        assert_eq!(winners, 1, "one of {RACERS} was enqueued: {answers:?}");
        let id = answers[0].id();
        assert!(answers.iter().all(|answer| answer.id() == id), "all learn its id");
        let standing = f.places(&q, &key).await;
        assert_eq!(standing.len(), 1, "{standing:?}");
        assert_eq!((Some(standing[0].0), standing[0].1), (id, StandingPlace::Waiting));
    }
}

pub(super) async fn rule_06_puts_of_one_key_that_race_enqueue_one(f: &mut Fixture) {
    race(f, |_| {}, false).await;
}

pub(super) async fn rule_06_bulk_puts_of_one_key_that_race_enqueue_one(f: &mut Fixture) {
    race(f, |_| {}, true).await;
}

pub(super) async fn rule_06_racing_puts_under_unique_active_enqueue_one(f: &mut Fixture) {
    race(f, |s| s.unique = Some(Unique::Active), false).await;
}

pub(super) async fn rule_06_racing_puts_that_replace_enqueue_one(f: &mut Fixture) {
    race(f, |s| s.on_duplicate = Some(OnDuplicate::Replace), false).await;
}

pub(super) async fn rule_06_two_tasks_of_a_key_never_run_side_by_side(f: &mut Fixture) {
    let q = f.queue("q").await;
    let handles = f.handles().await;
    // Workers that claim, put another event of the same key, and settle.
    for n in 0..8 {
        f.enqueue(&q, task("x").keyed(&format!("k{n}"))).await;
    }
    let running: Arc<std::sync::Mutex<BTreeMap<String, usize>>> = Arc::default();
    let mut workers = Vec::new();
    for n in 0..8 {
        let (handle, q, running) = (handles[n % handles.len()].clone(), q.clone(), running.clone());
        workers.push(tokio::spawn(async move {
            for round in 0..25 {
                for held in handle.claim_held(&q, 3).await {
                    let key = held.task.key.clone().expect("a key");
                    {
                        let mut running = running.lock().expect("a lock");
                        let n = running.entry(key.clone()).or_default();
                        *n += 1;
                        assert_eq!(*n, 1, "{key} runs twice at once");
                    }
                    if round < 20 {
                        let _ = handle.put(&q, task("y").keyed(&key)).await;
                    }
                    // Taken off before the end is told: afterwards another may
                    // have it.
                    running.lock().expect("a lock").insert(key, 0);
                    handle.end(&held, Outcome::Done).await;
                }
            }
        }));
    }
    for worker in workers {
        worker.await.expect("a worker");
    }
}
