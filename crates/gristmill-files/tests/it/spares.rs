//! Files of tasks that are gone: written over by tasks that come, and by nobody else.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use gristmill_core::SettingsPatch;
use gristmill_files::FilesStore;

use crate::support::{Place, claim, declare, done, put, sound, task};

/// The task's file that waits, as there is one.
fn waiting(place: &Place) -> PathBuf {
    let mut found = Vec::new();
    for shard in std::fs::read_dir(place.path().join("pending")).unwrap() {
        let files = std::fs::read_dir(shard.unwrap().path()).unwrap();
        found.extend(files.map(|file| file.unwrap().path()));
    }
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn aside(place: &Place) -> usize {
    std::fs::read_dir(place.path().join("tmp")).unwrap().count()
}

async fn finish(store: &FilesStore) {
    let claimed = claim(store, "q", 1).await;
    assert_eq!(claimed.tasks.len(), 1);
    done(store, &claimed).await;
}

#[tokio::test]
async fn a_finished_task_leaves_its_file_to_the_next() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    let long = format!("\"{}\"", "long".repeat(900));
    put(&store, "q", vec![task(&long)]).await;
    let inode = std::fs::metadata(waiting(&place)).unwrap().ino();
    finish(&store).await;
    assert_eq!(aside(&place), 1);
    put(&store, "q", vec![task("2")]).await;
    assert_eq!(std::fs::metadata(waiting(&place)).unwrap().ino(), inode);
    sound(&store).await;
    let claimed = claim(&store, "q", 1).await;
    assert_eq!(claimed.tasks[0].payload.bytes, "2", "nothing of the longer one is left");
    done(&store, &claimed).await;
    drop(store);
    assert_eq!(aside(&place), 0, "nothing is kept for nobody");
}

/// A copy of the folder that is made of links stays what it was.
#[tokio::test]
async fn a_file_with_another_name_is_not_written_over() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1")]).await;
    let copy = place.path().with_extension("copy");
    std::fs::hard_link(waiting(&place), &copy).unwrap();
    let before = std::fs::read(&copy).unwrap();
    finish(&store).await;
    assert_eq!(aside(&place), 0);
    put(&store, "q", vec![task("2")]).await;
    assert_eq!(std::fs::read(&copy).unwrap(), before);
}

/// What a killed process had kept goes when the folder is next opened.
#[tokio::test]
async fn spare_files_of_a_killed_process_go() {
    let place = Place::new();
    drop(place.open());
    std::fs::write(place.path().join("tmp/spare-of-a-killed-process"), "1").unwrap();
    drop(place.open());
    assert_eq!(aside(&place), 0);
}
