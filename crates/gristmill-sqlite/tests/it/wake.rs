//! Hearing of what another process put, and finding what nobody told.

use std::time::Duration;

use gristmill_conformance::wake::{NEVER, is_heard};
use gristmill_sqlite::{Options, SqliteStore, WakeGuard};

use crate::support::{Place, put, request, task};

/// Puts by one handle while another one waits, which looks so often by itself.
async fn heard(place: &Place, look: Duration, put_by: impl AsyncFnOnce(&SqliteStore)) {
    let options = Options { look, ..place.options() };
    let worker = SqliteStore::open(place.path(), options).expect("a store");
    let producer = place.open();
    is_heard(&worker, &*producer, put_by).await;
}

/// Puts in an application's own transaction, and does so with the guard.
async fn commits(place: &Place, look: Duration, then: fn(WakeGuard)) {
    // Made before and kept: a connection that ends is heard of too.
    drop(place.open());
    let mut application = place.application();
    let put_one = async |producer: &SqliteStore| {
        let transaction = application.transaction().unwrap();
        let (_, guard) = producer.put_in(&transaction, &request("q", vec![task("1")])).unwrap();
        transaction.commit().unwrap();
        then(guard);
    };
    heard(place, look, put_one).await;
}

#[tokio::test]
async fn what_another_handle_puts_is_heard_of() {
    let put_one = async |producer: &SqliteStore| {
        put(producer, "q", vec![task("1")]).await;
    };
    heard(&Place::new(), NEVER, put_one).await;
}

/// A put in the application's own transaction is told of when its guard says so.
#[tokio::test]
async fn what_an_application_commits_is_heard_of() {
    let place = Place::new();
    commits(&place, NEVER, WakeGuard::committed).await;
}

/// As when a process is killed between its commit and the word of it.
#[tokio::test]
async fn what_nobody_told_is_found_by_the_look() {
    let place = Place::new();
    commits(&place, Options::default().look, std::mem::forget).await;
}
