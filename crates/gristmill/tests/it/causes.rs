//! What an error was caused by: the driver's own error is at the end of the chain, and
//! whoever tells the chain tells nothing twice.

use std::error::Error as _;

use gristmill::sqlite::rusqlite;
use gristmill::{Error, Mill};

/// As `anyhow` writes an error with `{:#}`.
fn chain(error: &dyn std::error::Error) -> Vec<String> {
    let mut told = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        told.push(error.to_string());
        cause = error.source();
    }
    told
}

#[tokio::test]
async fn the_drivers_error_is_below_the_librarys() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("letter.db");
    std::fs::write(&file, "this is a letter, and no database\n".repeat(100)).unwrap();
    let error = Mill::open(&format!("sqlite://{}", file.display())).await.expect_err("no store");
    let cause = error.source().and_then(|cause| cause.downcast_ref::<rusqlite::Error>());
    let code = cause.and_then(rusqlite::Error::sqlite_error_code);
    assert_eq!(code, Some(rusqlite::ErrorCode::NotADatabase), "{error:?}");
    let told = chain(&error);
    for (nth, below) in told.iter().enumerate().skip(1) {
        assert!(!told[..nth].iter().any(|above| above.contains(below)), "twice: {told:?}");
    }
    assert_eq!(error.whole(), told.join(": "));
    assert!(told[0].contains("letter.db is not an SQLite database"), "{told:?}");
}

#[tokio::test]
async fn what_serde_says_of_a_payload_is_below_what_we_say() {
    use gristmill::{Payload, TaskPayload};
    let payload = Payload::json(b"[1, 2".to_vec());
    let error: Error = Vec::<u32>::from_payload(&payload).expect_err("half a list");
    let cause = error.source().and_then(|cause| cause.downcast_ref::<serde_json::Error>());
    assert!(cause.is_some_and(serde_json::Error::is_eof), "{error:?}");
    let told = chain(&error);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(!told[0].contains(&told[1]), "{told:?}");
}
