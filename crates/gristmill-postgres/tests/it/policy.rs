//! What is decided in Rust and in SQL is decided alike.

use std::time::Duration;

use gristmill_core::policy::backoff::{spread, wait};
use gristmill_core::policy::rate::Bucket;
use gristmill_core::{Backoff, Limits, Rate, Settings, TaskId, Timestamp};

use crate::support::{application, database_within};

#[tokio::test]
async fn backoff_is_the_same_in_rust_and_in_sql() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    let ids = [1, 2, 3, 1_000_003, i64::from(u32::MAX), i64::MAX / 3, i64::MAX];
    for (at, id) in ids.into_iter().enumerate() {
        for claims in [1u32, 2, 7, 1_000_000, 2_000_000_000] {
            for (returns, base, cap, jitter) in [
                (0u32, 2_000_000u64, 3_600_000_000u64, true),
                (3, 2_000_000, 3_600_000_000, true),
                (11, 1, 31_622_400_000_000, true),
                (62, 999_999, 31_622_400_000_000, true),
                (63, 0, 5_000_001, true),
                (900, 7, 123_456_789, false),
                (at as u32, 333_333, 777_777_777, false),
            ] {
                let backoff = Backoff {
                    base: Duration::from_micros(base),
                    cap: Duration::from_micros(cap),
                    jitter,
                };
                let ours = wait(&backoff, returns, spread(TaskId(id), claims));
                let row = client
                    .query_one(
                        "SELECT gristmill.backoff($1, $2, $3, $4, gristmill.spread($5, $6))",
                        &[
                            &(base as i64),
                            &(cap as i64),
                            &jitter,
                            &(returns as i32),
                            &id,
                            &(claims as i32),
                        ],
                    )
                    .await
                    .unwrap();
                let theirs: i64 = row.get(0);
                assert_eq!(
                    i64::try_from(ours.as_micros()).unwrap(),
                    theirs,
                    "task {id}, claim {claims}, {returns} returns, {backoff:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_rate_is_the_same_in_rust_and_in_sql() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    let now = Timestamp::from_micros(1_800_000_000_000_000);
    for (tasks, per, burst) in [
        (1u32, 1u64, 1u32),
        (7, 1_000_000, 1),
        (100, 60_000_000, 5),
        (3, 31_622_400_000_000, 2),
        (1_000_000, 1_000_000, 999_999),
        (13, 17_000_001, 29),
    ] {
        let mut settings = Settings::default();
        settings.rate = Some(Rate::new(tasks, Duration::from_micros(per)));
        settings.burst = Some(burst);
        let bucket = Bucket::of(&settings).unwrap();
        for ahead in [None, Some(0i64), Some(1), Some(142_857), Some(999_999), Some(90_000_000_000)]
        {
            let full_at = ahead.map(|ahead| now.as_micros() + ahead);
            let row = client
                .query_one(
                    "SELECT gristmill.tokens(r.tasks, r.per, r.burst, r.full_at, r.now),
                            gristmill.token_wait(r.tasks, r.per, r.burst, r.full_at, r.now),
                            gristmill.missing(r.tasks, r.per, r.burst, r.full_at, r.now)
                                + gristmill.token_time(r.tasks, r.per, 3)
                       FROM (SELECT $1::integer AS tasks, $2::bigint AS per, $3::integer AS burst,
                                    timestamptz 'epoch' + $4 * interval '1 microsecond' AS full_at,
                                    timestamptz 'epoch' + $5 * interval '1 microsecond' AS now) r",
                    &[
                        &(tasks as i32),
                        &(per as i64),
                        &(burst as i32),
                        &full_at.map(|at| at as f64),
                        &(now.as_micros() as f64),
                    ],
                )
                .await
                .unwrap();
            let full_at = full_at.map(Timestamp::from_micros);
            let theirs: (i32, i64, i64) = (row.get(0), row.get(1), row.get(2));
            let micros = |span: Duration| i64::try_from(span.as_micros()).unwrap();
            let ours = (
                i32::try_from(bucket.tokens(full_at, now)).unwrap(),
                micros(bucket.wait(full_at, now)),
                micros(bucket.take(full_at, 3, now).since(now)),
            );
            assert_eq!(ours, theirs, "{settings:?}, full at {full_at:?}");
        }
    }
}

#[tokio::test]
async fn errors_are_cut_alike_in_rust_and_in_sql() {
    let database = database_within().await;
    let client = application(&database.url()).await;
    let limits = Limits::default();
    for text in [
        String::new(),
        "x".repeat(4096),
        "x".repeat(4097),
        format!("a{}", "é".repeat(5_000)),
        format!("ab{}z", "€".repeat(3_000)),
        format!("{}yz", "😀".repeat(20_000)),
    ] {
        let row = client.query_one("SELECT gristmill.cut($1)", &[&text]).await.unwrap();
        let theirs: String = row.get(0);
        assert_eq!(theirs, limits.cut_error(&text));
        assert!(theirs.len() <= limits.error_bytes);
    }
}
