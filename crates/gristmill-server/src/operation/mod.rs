//! Operations: what operators do to all tasks that match, kept in the store until it is
//! done, so that neither a closed connection nor a killed service ends it halfway.
//!
//! ```text
//!   POST /v1/tasks/retry {"filter"} ──► a document of kind `operation`
//!                                         │  one service at a time (a role) takes it up,
//!                                         ▼  step by step, and writes down how far it is
//!                                       runner ──► Store::operate
//!                                         │  done, stopped or failed
//!                                         ▼
//!                                       a document of kind `operation-ended`, kept a week
//! ```
//!
//! It acts on what stood so when it began, by the store's clock. Each write of its
//! progress names the version it was made from, so a service that lost its role and does
//! not know it yet cannot write over who took its place; what both may have done in
//! between is done once, for a task that was moved matches no more.

mod record;
mod runner;
mod shaped;

use std::sync::Arc;

use gristmill::port::{
    Action, Clock, Document, DocumentAnswer, DocumentChange, DocumentList, Expects, SystemClock,
    TaskFilter, Token,
};
use gristmill::{Mill, Store, StoreError};
use tokio::sync::Notify;

pub use record::{OperationState, OperationView};
pub(crate) use runner::{KEPT, give_up, run};

use record::Record;

/// The kind of those that are not over, and of those that are.
const OPEN: &str = "operation";
const ENDED: &str = "operation-ended";

/// Most operations that are not over at once: one that comes on top of so many waits for
/// an operator to look.
pub(crate) const OPEN_MAX: usize = 100;
/// Most operations in one answer.
pub(crate) const LISTED: usize = 1_000;
/// How often a change is tried that somebody else's change came before.
const TRIES: usize = 20;

/// The operations of a store.
#[derive(Debug, Clone)]
pub struct Operations {
    store: Arc<dyn Store>,
    /// Somebody began one here: whoever runs them need not wait for its next look.
    begun: Arc<Notify>,
}

/// Why one was not begun.
#[derive(Debug)]
pub(crate) enum NotBegun {
    /// There are as many as there may be.
    TooMany,
    /// The store could not answer.
    Store(StoreError),
}

impl From<StoreError> for NotBegun {
    fn from(error: StoreError) -> Self {
        NotBegun::Store(error)
    }
}

impl Operations {
    /// Those of this mill's store.
    #[must_use]
    pub fn of(mill: &Mill) -> Self {
        Operations { store: mill.store(), begun: Arc::default() }
    }

    /// Writes down that this is to be done.
    pub(crate) async fn begin(
        &self,
        action: Action,
        filter: &TaskFilter,
        shape: Option<String>,
        by: String,
        note: Option<String>,
    ) -> Result<OperationView, NotBegun> {
        if self.read(OPEN).await?.len() >= OPEN_MAX {
            return Err(NotBegun::TooMany);
        }
        let record = Record::new(action, filter, shape, by, note);
        let body = Some(record.text()?);
        let change = DocumentChange::new(OPEN, &name()?, Expects::Absent, body);
        match self.store.save_document(change).await? {
            DocumentAnswer::Saved(document) => {
                self.begun.notify_one();
                Ok(record.view(&document))
            }
            // The name is random.
            _ => Err(StoreError::unavailable("an operation's name was taken".to_owned()).into()),
        }
    }

    /// One operation.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn get(&self, id: &str) -> Result<Option<OperationView>, StoreError> {
        // In this order: one that ends meanwhile stands in both for a moment, never in none.
        for kind in [OPEN, ENDED] {
            if let Some(document) = self.store.document(kind, id).await?
                && !(kind == OPEN && self.store.document(ENDED, id).await?.is_some())
            {
                return Ok(Some(Record::read(&document)?.view(&document)));
            }
        }
        Ok(None)
    }

    /// All operations, the newest first.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn list(&self) -> Result<Vec<OperationView>, StoreError> {
        let (mut found, ended) = (self.read(OPEN).await?, self.read(ENDED).await?);
        found.retain(|(open, _)| !ended.iter().any(|(over, _)| over.name == open.name));
        found.extend(ended);
        found.sort_by(|(a, _), (b, _)| b.name.cmp(&a.name));
        found.truncate(LISTED);
        Ok(found.iter().map(|(document, record)| record.view(document)).collect())
    }

    /// Has an operation end after the step it is at. Returns it; none when there is none.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn stop(&self, id: &str, by: &str) -> Result<Option<OperationView>, StoreError> {
        for _ in 0..TRIES {
            let Some(document) = self.store.document(OPEN, id).await? else {
                return self.get(id).await;
            };
            let mut record = Record::read(&document)?;
            if record.stopped_by.is_some() {
                return Ok(Some(record.view(&document)));
            }
            record.stopped_by = Some(by.to_owned());
            if let Some(saved) = self.save(&document, &record).await? {
                return Ok(Some(record.view(&saved)));
            }
        }
        Err(StoreError::unavailable("the operation kept changing: try again".to_owned()))
    }

    /// Writes a record over the document it was read from; nothing when somebody else
    /// changed that.
    async fn save(&self, from: &Document, record: &Record) -> Result<Option<Document>, StoreError> {
        let (expects, body) = (Expects::Version(from.version), Some(record.text()?));
        let change = DocumentChange::new(&from.kind, &from.name, expects, body);
        match self.store.save_document(change).await? {
            DocumentAnswer::Saved(document) => Ok(Some(document)),
            _ => Ok(None),
        }
    }

    /// Removes a document, unless somebody else changed it.
    async fn remove(&self, document: &Document) -> Result<(), StoreError> {
        let expects = Expects::Version(document.version);
        let change = DocumentChange::new(&document.kind, &document.name, expects, None);
        self.store.save_document(change).await.map(drop)
    }

    /// The operations of a kind, the oldest first. One that cannot be read is passed
    /// over: it is somebody newer's.
    async fn read(&self, kind: &str) -> Result<Vec<(Document, Record)>, StoreError> {
        let list = DocumentList { kind: kind.to_owned(), after: None, limit: LISTED };
        let found = self.store.documents(list).await?;
        Ok(found.into_iter().filter_map(|d| Record::read(&d).ok().map(|r| (d, r))).collect())
    }
}

/// A name that nobody guesses, in the order of time.
fn name() -> Result<String, StoreError> {
    let micros = u64::try_from(SystemClock::default().now().as_micros()).unwrap_or_default();
    let random = Token::random()?.to_string();
    Ok(format!("{micros:014x}{}", random.get(..12).unwrap_or_default()))
}
