//! The intent's segments: room before there are frames, what a power cut leaves in
//! it, and checkpoints that end halfway.

use std::path::Path;

use gristmill_core::{NewTask, PutAnswer, SettingsPatch, Store};
use gristmill_files::{FilesStore, Options};

use crate::support::{Place, claim, copy_folder, declare, done, put, sound, task, used};

fn first(place: &Path) -> std::path::PathBuf {
    place.join("intent/00000001.log")
}

/// Syncing a file that becomes longer waits for the file system's own journal, and
/// so for whatever else is written there.
#[tokio::test]
async fn a_put_does_not_make_the_segment_longer() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    let length = || std::fs::metadata(first(&place.path())).unwrap().len();
    let before = length();
    for _ in 0..50 {
        put(&store, "q", vec![task("1")]).await;
    }
    assert_eq!(length(), before);
    assert!(used(&std::fs::read(first(&place.path())).unwrap()) as u64 <= before);
}

/// What a power cut may leave of a frame whose sync had not come back: its end
/// without its middle. Nobody was told of it, so it is nothing to be shown.
#[tokio::test]
async fn a_frame_that_was_never_synced_is_no_damage() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1")]).await;
    let copy = Place::new();
    copy_folder(&place.path(), &copy.path());
    put(&store, "q", vec![task("2")]).await;
    let before = used(&std::fs::read(first(&copy.path())).unwrap());
    let mut left = std::fs::read(first(&place.path())).unwrap();
    left[before + 40..before + 80].fill(0);
    std::fs::write(first(&copy.path()), left).unwrap();
    let again = copy.open();
    sound(&again).await;
    assert_eq!(claim(&again, "q", 10).await.tasks.len(), 1);
    assert!(put(&again, "q", vec![task("3")]).await[0].is_enqueued());
    drop(again);
    let again = copy.open();
    sound(&again).await;
    assert_eq!(std::fs::read_dir(copy.path().join("corrupt")).unwrap().count(), 0);
}

/// A checkpoint that is under way when the store is closed was to write the
/// callers' ids: whoever makes the next one writes them instead.
#[tokio::test]
async fn a_checkpoint_under_way_at_the_end_loses_no_ids() {
    let with_id = |n: usize| NewTask { id: Some(format!("id {n}")), ..task("1") };
    for turns in 1..8 {
        let place = Place::new();
        let options = Options { intent_bytes: 20_000, ..place.options() };
        let store = FilesStore::open(place.path(), options).unwrap();
        declare(&store, "q", SettingsPatch::default()).await;
        for turn in 0..turns {
            put(&store, "q", (turn * 100..(turn + 1) * 100).map(with_id).collect()).await;
            // A task that stands knows its id itself.
            done(&store, &claim(&store, "q", 100).await).await;
            // Something is in the new segment, so that it is not the end.
            declare(&store, &format!("q{turn}"), SettingsPatch::default()).await;
        }
        store.close().await.unwrap();
        let store = place.open();
        let again = put(&store, "q", (0..turns * 100).map(with_id).collect()).await;
        let forgotten = again.iter().filter(|a| !matches!(a, PutAnswer::Duplicate { .. })).count();
        assert_eq!(forgotten, 0, "after {turns} turns");
    }
}
