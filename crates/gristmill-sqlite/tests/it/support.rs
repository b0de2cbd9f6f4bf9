//! Short ways to open a store on a clock of the test's own, and to use it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{
    Claim, ClaimRequest, Declaration, ManualClock, NewTask, Outcome, Payload, PutAnswer,
    PutRequest, QueueName, QueueStats, SettingsPatch, SettleAnswer, Settlement, Store, Token,
    WorkerId,
};
use gristmill_sqlite::rusqlite::Connection;
use gristmill_sqlite::{Options, SqliteStore};
use tempfile::TempDir;

/// A folder with a store's file in it.
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
        self.folder.path().join("queue.db")
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn options(&self) -> Options {
        Options { clock: self.clock.clone(), ..Options::default() }
    }

    pub(crate) fn open(&self) -> Arc<SqliteStore> {
        Arc::new(SqliteStore::open(self.path(), self.options()).expect("a store"))
    }

    /// The application's own connection to the same file.
    pub(crate) fn application(&self) -> Connection {
        connection(&self.path())
    }
}

pub(crate) fn connection(path: &Path) -> Connection {
    let conn = Connection::open(path).expect("a connection");
    conn.busy_timeout(Duration::from_secs(10)).expect("set");
    conn
}

pub(crate) fn name(text: &str) -> QueueName {
    QueueName::new(text).expect("a name")
}

pub(crate) async fn declare(store: &SqliteStore, queue: &str, settings: SettingsPatch) {
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

pub(crate) async fn put(store: &SqliteStore, queue: &str, tasks: Vec<NewTask>) -> Vec<PutAnswer> {
    store.put(request(queue, tasks)).await.expect("put").answers
}

pub(crate) async fn claim(store: &SqliteStore, queue: &str, max: usize) -> Claim {
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

pub(crate) async fn done(store: &SqliteStore, claim: &Claim) -> Vec<SettleAnswer> {
    store.settle(settlements(claim, &Outcome::Done)).await.expect("settled")
}

pub(crate) async fn stats(store: &SqliteStore, queue: &str) -> QueueStats {
    let all = store.stats().await.expect("stats");
    all.into_iter().find(|stats| stats.queue.as_str() == queue).expect("the queue")
}

/// Asserts that the file is sound and its parts agree.
pub(crate) async fn sound(store: &SqliteStore) {
    assert_eq!(store.check().await.expect("checked"), []);
}
