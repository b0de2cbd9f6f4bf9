//! Hearing of what another process put, and finding what nobody told.

use std::time::Duration;

use gristmill_conformance::wake::{NEVER, is_heard};
use gristmill_files::{FilesStore, Options};

use crate::support::{Place, put, task};

/// Puts by one handle while another one waits, which looks so often by itself.
async fn heard(place: &Place, look: Duration, put_by: impl AsyncFnOnce(&FilesStore)) {
    let options = Options { look, ..place.options() };
    let worker = FilesStore::open(place.path(), options).expect("a store");
    let producer = place.open();
    is_heard(&worker, &*producer, put_by).await;
}

#[tokio::test]
async fn what_another_handle_puts_is_heard_of() {
    let put_one = async |producer: &FilesStore| {
        put(producer, "q", vec![task("1")]).await;
    };
    heard(&Place::new(), NEVER, put_one).await;
}

/// As when a process is killed between its commit and the word of it: there is
/// nothing to ring.
#[tokio::test]
async fn what_nobody_told_is_found_by_the_look() {
    let place = Place::new();
    let put_one = async |producer: &FilesStore| {
        let (bell, away) = (place.path().join("present"), place.path().join("away"));
        std::fs::rename(&bell, &away).unwrap();
        put(producer, "q", vec![task("1")]).await;
        std::fs::rename(&away, &bell).unwrap();
    };
    heard(&place, Options::default().look, put_one).await;
}
