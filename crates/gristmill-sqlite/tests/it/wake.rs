//! Hearing of what another process put, and finding what nobody told.

use std::pin::{Pin, pin};
use std::time::Duration;

use gristmill_core::{SettingsPatch, Store};
use gristmill_sqlite::{Options, SqliteStore};
use tokio::time::timeout;

use crate::support::{Place, claim, declare, name, put, request, task};

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3_600);
/// What comes at all comes within this time, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Lets somebody begin to wait.
async fn begin(mut waiting: Pin<&mut impl Future>) {
    tokio::select! {
        biased;
        _ = &mut waiting => {}
        () = std::future::ready(()) => {}
    }
}

/// Puts by one handle while another one waits, and wants the wait to end.
async fn heard(place: &Place, look: Duration, put_by: impl AsyncFnOnce(&SqliteStore)) {
    let options = Options { look, ..place.options() };
    let worker = SqliteStore::open(place.path(), options).expect("a store");
    let producer = place.open();
    for queue in ["q", "other"] {
        declare(&producer, queue, SettingsPatch::default()).await;
    }
    // Somebody waits all the time, for beginning to is a reason to look.
    let other = [name("other")];
    let mut waiting = pin!(worker.wait(&other, worker.mark(), NEVER));
    begin(waiting.as_mut()).await;
    // That look is over when what was asked after it is.
    assert!(claim(&worker, "q", 1).await.tasks.is_empty());
    let mark = worker.mark();
    put_by(&producer).await;
    let woken = timeout(PATIENCE, worker.wait(&[name("q")], mark, NEVER)).await;
    woken.expect("it was not told").unwrap();
    assert_eq!(claim(&worker, "q", 9).await.tasks.len(), 1);
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
    // Made before and kept: a connection that ends is heard of too.
    drop(place.open());
    let mut application = place.application();
    let put_one = async |producer: &SqliteStore| {
        let transaction = application.transaction().unwrap();
        let (_, guard) = producer.put_in(&transaction, &request("q", vec![task("1")])).unwrap();
        transaction.commit().unwrap();
        guard.committed();
    };
    heard(&place, NEVER, put_one).await;
}

/// As when a process is killed between its commit and the word of it.
#[tokio::test]
async fn what_nobody_told_is_found_by_the_look() {
    let place = Place::new();
    drop(place.open());
    let mut application = place.application();
    let put_one = async |producer: &SqliteStore| {
        let transaction = application.transaction().unwrap();
        let (_, guard) = producer.put_in(&transaction, &request("q", vec![task("1")])).unwrap();
        transaction.commit().unwrap();
        std::mem::forget(guard);
    };
    heard(&place, Options::default().look, put_one).await;
}
