//! What the folder may be: missing, foreign, newer, damaged, or changed by
//! hand; and what lies in it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gristmill_core::{
    NewTask, Outcome, Payload, PutAnswer, SettingsPatch, State, Store, StoreError, TaskId,
};
use gristmill_files::{FilesStore, Options};

use crate::support::{
    Place, claim, copy_folder, declare, done, put, settlements, sound, stats, task, used,
};

fn refused(place: &Place) -> StoreError {
    FilesStore::open(place.path(), place.options()).expect_err("refused")
}

/// Every task's file in one of the folders.
fn files(place: &Place, state: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for shard in std::fs::read_dir(place.path().join(state)).unwrap() {
        for file in std::fs::read_dir(shard.unwrap().path()).unwrap() {
            found.push(file.unwrap().path());
        }
    }
    found.sort();
    found
}

fn set_aside(place: &Place) -> usize {
    std::fs::read_dir(place.path().join("corrupt")).unwrap().count()
}

#[tokio::test]
async fn a_task_can_be_read_with_cat() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "emails", SettingsPatch::default()).await;
    let payload = Payload::json(r#"{"to":"reader@example.com"}"#);
    let full = NewTask {
        payload,
        key: Some("user/7\nx".to_owned()),
        source: Some("shop".to_owned()),
        ..NewTask::default()
    };
    put(&store, "emails", vec![full.clone()]).await;
    let found = files(&place, "pending");
    assert!(found[0].ends_with("pending/00/000000000001-emails"), "{found:?}");
    let text = std::fs::read_to_string(&found[0]).unwrap();
    let (lines, payload) = text.split_once("\n\n").unwrap();
    assert_eq!(payload, r#"{"to":"reader@example.com"}"#);
    for line in ["gristmill task 1", "id: 1", "queue: emails", r"key: user/7\nx", "source: shop"] {
        assert!(lines.lines().any(|known| known == line), "{line}: {lines}");
    }
    let taken = claim(&store, "emails", 1).await;
    assert_eq!(taken.tasks[0].key, full.key);
    assert_eq!((files(&place, "pending").len(), files(&place, "processing").len()), (0, 1));
    store.settle(settlements(&taken, &Outcome::Fail("no such host".to_owned()))).await.unwrap();
    let failed = std::fs::read_to_string(&files(&place, "failed")[0]).unwrap();
    assert!(failed.contains("\nerror: no such host\n"), "{failed}");
    sound(&store).await;
}

#[tokio::test]
async fn nobody_else_may_look_into_it() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1")]).await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.path()), 0o700);
    for folder in ["pending", "pending/00", "intent", "tmp", "corrupt"] {
        assert_eq!(mode(&place.path().join(folder)), 0o700, "{folder}");
    }
    for file in ["pending/00/000000000001-q", "intent/00000001.log", "state", "lock"] {
        assert_eq!(mode(&place.path().join(file)), 0o600, "{file}");
    }
}

#[test]
fn an_error_keeps_the_operating_systems_with_its_kind() {
    use std::error::Error;
    use std::io;
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("letter.txt");
    std::fs::write(&file, "a letter").unwrap();
    let error = FilesStore::open(file.join("spool"), Options::default()).expect_err("no folder");
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    assert_eq!(cause.map(io::Error::kind), Some(io::ErrorKind::NotADirectory), "{error:?}");
    assert!(error.to_string().contains("letter.txt/spool"), "{error}");
    let said = cause.map(ToString::to_string).unwrap_or_default();
    assert!(!error.to_string().contains(&said) && error.whole().contains(&said), "{error}");
}

#[test]
fn a_missing_folder_is_made_only_when_asked_for() {
    let place = Place::new();
    let options = Options { create: false, ..place.options() };
    let error = FilesStore::open(place.path(), options).expect_err("refused");
    assert!(matches!(&error, StoreError::NotAStore(said) if said.contains("spool")), "{error}");
    assert!(!place.path().exists());
}

#[test]
fn a_folder_of_somebody_else_is_refused_and_left_alone() {
    let place = Place::new();
    std::fs::create_dir(place.path()).unwrap();
    std::fs::write(place.path().join("letter.txt"), "dear").unwrap();
    let error = refused(&place);
    assert!(matches!(&error, StoreError::NotAStore(said) if said.contains("letter.txt")));
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    let place = Place::new();
    std::fs::write(place.path(), "a file").unwrap();
    assert!(matches!(refused(&place), StoreError::NotAStore(_)));
}

#[tokio::test]
async fn a_newer_folder_is_refused() {
    let place = Place::new();
    place.open().close().await.unwrap();
    std::fs::write(place.path().join("gristmill-spool"), "gristmill spool 99\n").unwrap();
    assert!(matches!(refused(&place), StoreError::NewerSchema { found: 99, known: 1 }));
}

#[tokio::test]
async fn a_folder_whose_making_was_interrupted_becomes_a_spool() {
    let place = Place::new();
    place.open().close().await.unwrap();
    std::fs::remove_file(place.path().join("gristmill-spool")).unwrap();
    std::fs::remove_dir(place.path().join("corrupt")).unwrap();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    assert!(put(&store, "q", vec![task("1")]).await[0].is_enqueued());
    sound(&store).await;
}

#[tokio::test]
async fn torn_truncated_and_foreign_files_are_set_aside_and_shown() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", (0..6).map(|_| task("\"a payload\"")).collect()).await;
    store.close().await.unwrap();
    let found = files(&place, "pending");
    let cut = std::fs::read(&found[0]).unwrap();
    std::fs::write(&found[0], &cut[..cut.len() - 3]).unwrap();
    std::fs::write(&found[1], "").unwrap();
    let lied = std::fs::read_to_string(&found[2]).unwrap().replace("priority: 0", "priority: 9");
    std::fs::write(&found[2], lied).unwrap();
    std::fs::rename(&found[3], found[3].with_file_name("000000000077-q")).unwrap();
    std::fs::write(place.path().join("pending/notes.txt"), "foreign").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", found[0].with_file_name("000000000099-q")).unwrap();
    let store = place.open();
    assert_eq!(stats(&store, "q").await.ready, 2);
    assert_eq!(set_aside(&place), 6);
    assert_eq!(store.set_aside().await.unwrap().len(), 6);
    let findings = store.check().await.unwrap();
    assert_eq!(findings.len(), 6, "{findings:?}");
    assert!(findings.iter().all(|finding| finding.to_string().contains("corrupt/")));
    assert_eq!(claim(&store, "q", 10).await.tasks.len(), 2);
}

#[tokio::test]
async fn a_damaged_payload_never_runs_and_its_neighbours_do() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", (0..3).map(|_| task("\"a payload\"")).collect()).await;
    let path = &files(&place, "pending")[1];
    let flipped = std::fs::read_to_string(path).unwrap().replace("\"a payload\"", "\"a payl0ad\"");
    std::fs::write(path, flipped).unwrap();
    std::fs::remove_file(&files(&place, "pending")[2]).unwrap();
    let taken = claim(&store, "q", 10).await;
    assert_eq!(taken.tasks.iter().map(|task| task.id).collect::<Vec<_>>(), [TaskId(1)]);
    assert_eq!(set_aside(&place), 1);
    let counted = stats(&store, "q").await;
    assert_eq!((counted.processing, counted.counters.discarded), (1, 2));
    done(&store, &taken).await;
    assert_eq!(store.check().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_person_may_move_files_while_nobody_has_it_open() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", (0..3).map(|_| task("1")).collect()).await;
    let taken = claim(&store, "q", 1).await;
    store.settle(settlements(&taken, &Outcome::Fail("no".to_owned()))).await.unwrap();
    store.close().await.unwrap();
    // Again, please; and this one not at all.
    let failed = &files(&place, "failed")[0];
    std::fs::rename(failed, place.path().join("pending/00").join(failed.file_name().unwrap()))
        .unwrap();
    std::fs::remove_file(&files(&place, "pending")[1]).unwrap();
    let store = place.open();
    let counted = stats(&store, "q").await;
    assert_eq!((counted.ready, counted.failed), (2, 0));
    let again = store.get(TaskId(1)).await.unwrap().unwrap();
    assert_eq!((again.state, again.failed_at), (State::Pending, None));
    assert_eq!(claim(&store, "q", 10).await.tasks.len(), 2);
    sound(&store).await;
}

#[tokio::test]
async fn a_damaged_state_never_looks_empty() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1")]).await;
    store.close().await.unwrap();
    let path = place.path().join("state");
    let text = std::fs::read_to_string(&path).unwrap().replace("\"q\"", "\"p\"");
    std::fs::write(&path, text).unwrap();
    assert!(matches!(refused(&place), StoreError::Corrupt(_)));
}

/// What a killed process may leave at the end of the intent.
#[tokio::test]
async fn half_a_frame_is_cut_off() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1")]).await;
    let path = place.path().join("intent/00000001.log");
    let mut torn = std::fs::read(&path).unwrap();
    let end = used(&torn);
    torn.copy_within(..40, end);
    std::fs::write(&path, torn).unwrap();
    let other = place.open();
    assert_eq!(stats(&other, "q").await.ready, 1);
    assert!(put(&store, "q", vec![task("2")]).await[0].is_enqueued());
    assert_eq!(stats(&other, "q").await.ready, 2);
    sound(&other).await;
}

/// A copy of the folder in which a byte of the frame of one of three puts is
/// another one, and their files never reached the disk.
async fn flipped(which: usize) -> Place {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    let path = place.path().join("intent/00000001.log");
    let mut ends = Vec::new();
    for payload in ["\"one\"", "\"two\"", "\"three\""] {
        put(&store, "q", vec![task(payload)]).await;
        ends.push(used(&std::fs::read(&path).unwrap()));
    }
    let copy = Place::new();
    copy_folder(&place.path(), &copy.path());
    for file in files(&copy, "pending") {
        std::fs::remove_file(file).unwrap();
    }
    let path = copy.path().join("intent/00000001.log");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[ends[which] - 30] ^= 4;
    std::fs::write(&path, bytes).unwrap();
    copy
}

#[tokio::test]
async fn whole_frames_behind_a_damaged_one_are_replayed() {
    for which in [0, 1] {
        let place = flipped(which).await;
        let store = place.open();
        let taken = claim(&store, "q", 10).await;
        let ids: Vec<i64> = taken.tasks.iter().map(|task| task.id.0).collect();
        assert_eq!(ids, [[2, 3], [1, 3]][which]);
        assert_eq!(set_aside(&place), 1);
        // Once is enough: the damage is not met again.
        drop(store);
        assert_eq!(set_aside(&place), 1);
        assert_eq!(stats(&place.open(), "q").await.processing, 2);
    }
}

#[tokio::test]
async fn a_whole_frame_that_is_wrong_is_shown_although_it_is_the_last() {
    let place = flipped(2).await;
    let store = place.open();
    assert_eq!(claim(&store, "q", 10).await.tasks.len(), 2);
    let findings = store.check().await.unwrap();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].to_string().contains("corrupt/intent-00000001"), "{findings:?}");
}

/// A process that was killed after it decided and before it did.
#[tokio::test]
async fn what_was_decided_is_rolled_forward() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("1"), task("2"), task("3")]).await;
    let taken = claim(&store, "q", 1).await;
    done(&store, &taken).await;
    // The files as they could have been left by a power cut: undone, torn,
    // and one that was gone is there again.
    let found = files(&place, "pending");
    std::fs::write(&found[0], "").unwrap();
    std::fs::remove_file(&found[1]).unwrap();
    std::fs::create_dir_all(place.path().join("processing/00")).unwrap();
    std::fs::write(place.path().join("processing/00/000000000001-q"), "torn").unwrap();
    // Nobody has it open, as far as anyone can tell: another folder.
    let copy = Place::new();
    copy_folder(&place.path(), &copy.path());
    let again = copy.open();
    assert_eq!(stats(&again, "q").await.ready, 2);
    assert_eq!(set_aside(&copy), 0);
    assert_eq!(claim(&again, "q", 10).await.tasks.len(), 2);
    sound(&again).await;
}

#[tokio::test]
async fn after_the_close_calls_answer_closed() {
    let place = Place::new();
    let store = place.open();
    store.close().await.unwrap();
    store.close().await.unwrap();
    assert_eq!(store.sweep().await, Err(StoreError::Closed));
    assert_eq!(store.stats().await, Err(StoreError::Closed));
}

/// Callers' ids outlive their tasks: a checkpoint writes the new ones and not
/// all of them again.
#[tokio::test]
async fn a_checkpoint_writes_only_new_ids() {
    let place = Place::new();
    let with_id = |id: String| NewTask { id: Some(id), ..task("1") };
    let size = |name: &str| std::fs::metadata(place.path().join(name)).unwrap().len();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", (0..1_000).map(|n| with_id(format!("id {n}"))).collect()).await;
    store.close().await.unwrap();
    assert!(size("state") < 10_000, "{} bytes", size("state"));
    // More checkpoints than files are kept.
    for n in 1_000..1_040 {
        let store = place.open();
        assert!(put(&store, "q", vec![with_id(format!("id {n}"))]).await[0].is_enqueued());
        store.close().await.unwrap();
    }
    let ids: Vec<_> = std::fs::read_dir(place.path().join("ids")).unwrap().collect();
    assert!(ids.len() <= 32, "{} files", ids.len());
    let store = place.open();
    let again = put(&store, "q", (0..1_040).map(|n| with_id(format!("id {n}"))).collect()).await;
    assert!(again.iter().all(|answer| matches!(answer, PutAnswer::Duplicate { .. })));
    // And they go when their time is over.
    store.close().await.unwrap();
    place.clock.advance(std::time::Duration::from_secs(24 * 3600));
    let store = place.open();
    put(&store, "q", vec![task("1")]).await;
    store.close().await.unwrap();
    assert_eq!(std::fs::read_dir(place.path().join("ids")).unwrap().count(), 0);
}

/// What handlers returned lies in the state file, which is read as a whole when the spool is
/// opened: whoever looks the spool over hears of its damage before.
#[tokio::test]
async fn a_damaged_result_is_found_while_the_spool_is_open() {
    let place = Place::new();
    let store = place.open();
    let kept = Some(Some(std::time::Duration::from_secs(3600)));
    declare(&store, "q", SettingsPatch { keep_result: kept, ..SettingsPatch::default() }).await;
    put(&store, "q", vec![task("a")]).await;
    let mut ends = settlements(&claim(&store, "q", 1).await, &Outcome::Done);
    ends[0].result = Some(Payload::json("[\"the result\"]"));
    store.settle(ends).await.unwrap();
    store.close().await.unwrap();
    let store = place.open();
    sound(&store).await;
    let state = place.path().join("state");
    let text = std::fs::read_to_string(&state).unwrap();
    assert!(text.contains("the result"), "{text}");
    std::fs::write(&state, text.replace("the result", "the resul!")).unwrap();
    let findings = store.check().await.unwrap();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].to_string().contains("does not fit its checksum"), "{findings:?}");
    std::fs::write(&state, text).unwrap();
    sound(&store).await;
}
