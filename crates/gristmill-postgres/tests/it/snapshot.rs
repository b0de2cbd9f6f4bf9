//! A transaction that keeps its snapshot: what it holds back from the vacuum
//! does not slow claims down, and what is committed late is found.

use std::time::{Duration, Instant};

use gristmill_core::SettingsPatch;

use crate::support::{
    application, claim, database_within, declare, done, put, request, store, task,
};

fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() * 99 / 100]
}

/// Rounds of a hundred tasks put and claimed in tens, over a backlog, so that
/// every claim finds enough.
async fn churn(store: &gristmill_postgres::PostgresStore, rounds: usize) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..rounds {
        put(store, "q", (0..100).map(|n| task(&n.to_string())).collect()).await;
        for _ in 0..10 {
            let start = Instant::now();
            let taken = claim(store, "q", 10).await;
            times.push(start.elapsed());
            assert_eq!(taken.tasks.len(), 10);
            done(store, &taken).await;
        }
    }
    times
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_stay_quick_while_a_snapshot_is_held() {
    // Long form: a hundred thousand tasks.
    let rounds = if std::env::var_os("GRISTMILL_LONG").is_some() { 1_000 } else { 80 };
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", (0..500).map(|n| task(&n.to_string())).collect()).await;
    let before = p99(churn(&store, rounds / 4).await);

    let mut late = application(&database.url()).await;
    let putting = late.transaction().await.unwrap();
    let (_, guard) = store.put_in(&putting, &request("q", vec![task("late")])).await.unwrap();
    let holder = application(&database.url()).await;
    holder.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.unwrap();
    let times = churn(&store, rounds).await;
    let after = p99(times[times.len() / 2..].to_vec());
    println!("claims of ten, p99: {before:?} before, {after:?} with a held snapshot");
    // On a machine that others use, a few milliseconds are noise.
    assert!(after <= before * 3 + Duration::from_millis(25), "{before:?}, then {after:?}");

    putting.commit().await.unwrap();
    drop(guard);
    let mut found = 0;
    loop {
        let taken = claim(&store, "q", 100).await;
        if taken.tasks.is_empty() {
            break;
        }
        found += taken.tasks.iter().filter(|task| task.payload.bytes == "late").count();
        done(&store, &taken).await;
    }
    assert_eq!(found, 1, "what was committed late is found");
    holder.batch_execute("COMMIT").await.unwrap();
}
