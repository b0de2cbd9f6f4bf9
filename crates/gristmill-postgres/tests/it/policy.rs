//! What is decided in Rust and in SQL is decided alike.

use std::time::Duration;

use gristmill_core::policy::backoff::{spread, wait};
use gristmill_core::{Backoff, Limits, TaskId};

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
