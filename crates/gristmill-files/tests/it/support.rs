//! Short ways to open a store on a clock of the test's own, and to use it.

use std::path::PathBuf;
use std::sync::Arc;

use gristmill_core::{
    Claim, ClaimRequest, Declaration, ManualClock, NewTask, Outcome, Payload, PutAnswer,
    PutRequest, QueueName, QueueStats, SettingsPatch, SettleAnswer, Settlement, Store, Token,
    WorkerId,
};
use gristmill_files::{FilesStore, Options};
use tempfile::TempDir;

/// A folder with a spool in it.
pub(crate) struct Place {
    folder: TempDir,
    pub(crate) clock: Arc<ManualClock>,
}

impl Place {
    pub(crate) fn new() -> Self {
        Place {
            folder: tempfile::tempdir().expect("a folder"),
            clock: Arc::new(ManualClock::default()),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("spool")
    }

    pub(crate) fn options(&self) -> Options {
        Options { clock: self.clock.clone(), ..Options::default() }
    }

    pub(crate) fn open(&self) -> Arc<FilesStore> {
        Arc::new(FilesStore::open(self.path(), self.options()).expect("a store"))
    }
}

pub(crate) fn name(text: &str) -> QueueName {
    QueueName::new(text).expect("a name")
}

pub(crate) async fn declare(store: &FilesStore, queue: &str, settings: SettingsPatch) {
    let declaration = Declaration { settings, ..Declaration::new(name(queue)) };
    store.declare_queue(declaration).await.expect("declared");
}

pub(crate) fn task(text: &str) -> NewTask {
    NewTask::new(Payload::json(text.to_owned()))
}

pub(crate) fn keyed(key: &str) -> NewTask {
    NewTask { key: Some(key.to_owned()), ..task("1") }
}

pub(crate) fn request(queue: &str, tasks: Vec<NewTask>) -> PutRequest {
    PutRequest { queue: name(queue), tasks, atomic: false }
}

pub(crate) async fn put(store: &FilesStore, queue: &str, tasks: Vec<NewTask>) -> Vec<PutAnswer> {
    store.put(request(queue, tasks)).await.expect("put").answers
}

pub(crate) async fn claim(store: &FilesStore, queue: &str, max: usize) -> Claim {
    let request = ClaimRequest {
        queue: name(queue),
        max,
        lease: None,
        worker: WorkerId::new("w").expect("a name"),
        source: None,
        token: Token::random().expect("random"),
    };
    store.claim(request).await.expect("claimed")
}

pub(crate) fn settlements(claim: &Claim, outcome: &Outcome) -> Vec<Settlement> {
    let each = claim.tasks.iter();
    each.map(|task| Settlement::new(task.id, claim.token, outcome.clone())).collect()
}

pub(crate) async fn done(store: &FilesStore, claim: &Claim) -> Vec<SettleAnswer> {
    store.settle(settlements(claim, &Outcome::Done)).await.expect("settled")
}

pub(crate) async fn stats(store: &FilesStore, queue: &str) -> QueueStats {
    let all = store.stats().await.expect("stats");
    all.into_iter().find(|stats| stats.queue.as_str() == queue).expect("the queue")
}

/// Asserts that the spool is sound and its parts agree.
pub(crate) async fn sound(store: &FilesStore) {
    assert_eq!(store.check().await.expect("checked"), []);
}
