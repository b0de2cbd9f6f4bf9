//! Who did what: the actions of operators, one small document each, kept for a time.
//!
//! Written after the action, by whoever carried it out: a process that is killed between
//! the two leaves an action that is not in the log, never a line about what did not happen.

use std::sync::Arc;
use std::time::Duration;

use gristmill::port::{Clock, Document, DocumentChange, DocumentList, Expects, SystemClock, Token};
use gristmill::{Mill, Store, StoreError};
use serde::{Deserialize, Serialize};

/// The kind of their documents.
pub(crate) const LOG: &str = "audit";
/// How long they are kept unless said otherwise, and how many at most.
pub(crate) const KEPT: Duration = Duration::from_secs(90 * 24 * 3600);
const KEPT_MAX: usize = 20_000;
/// Most of one answer, and of one step of forgetting.
pub(crate) const LISTED: usize = 1_000;
/// Most bytes of one text in it.
const TEXT: usize = 1_024;

/// What somebody did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deed {
    /// What: `tasks.retry`, `queues.pause`, `token.create`.
    pub action: String,
    /// By what way: `http`, `dashboard`, `cli`.
    pub via: String,
    /// The name of the token that was shown, where one was.
    pub actor: Option<String>,
    /// Who they say they are.
    pub by: Option<String>,
    /// What was acted on: a queue, a schedule, an operation, a token.
    pub target: Option<String>,
    /// The queue it is about, where it is about one.
    pub queue: Option<String>,
    /// How many tasks were moved, where that is known when it is written.
    pub moved: Option<u64>,
    /// Why.
    pub note: Option<String>,
}

/// One line of the log.
#[derive(Debug, Clone, Serialize)]
pub struct AuditLine {
    /// Where it stands: what comes behind it is older.
    pub id: String,
    /// When it was written, by the store's clock.
    pub at: String,
    /// What was done.
    #[serde(flatten)]
    pub deed: Deed,
}

/// The log of a store.
#[derive(Debug, Clone)]
pub struct Audit(Arc<dyn Store>);

impl Audit {
    /// That of this mill's store.
    #[must_use]
    pub fn of(mill: &Mill) -> Self {
        Audit(mill.store())
    }

    /// Writes a line.
    ///
    /// # Errors
    /// When the store cannot keep it.
    pub async fn write(&self, mut deed: Deed) -> Result<(), StoreError> {
        for text in [&mut deed.by, &mut deed.target, &mut deed.note].into_iter().flatten() {
            let end =
                text.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|n| *n <= TEXT);
            text.truncate(end.last().unwrap_or(0));
        }
        let body = serde_json::to_string(&deed)
            .map_err(|error| StoreError::corrupt(format!("a line of the audit log: {error}")))?;
        let change = DocumentChange::new(LOG, &name()?, Expects::Absent, Some(body));
        self.0.save_document(change).await.map(drop)
    }

    /// The same, where the action is done already: that it is not in the log is said.
    pub async fn tell(&self, deed: Deed) {
        let action = deed.action.clone();
        if let Err(error) = self.write(deed).await {
            tracing::error!(
                target: "gristmill::server", error = %error.whole(), action,
                "an operator's action is done and is not in the audit log"
            );
        }
    }

    /// Lines, the newest first, behind one that was seen.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn list(
        &self,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<AuditLine>, StoreError> {
        let list = DocumentList { kind: LOG.to_owned(), after, limit: limit.min(LISTED) };
        Ok(self.0.documents(list).await?.iter().map(line).collect())
    }

    /// Forgets what is older than this, and the oldest of too many.
    pub(crate) async fn forget(&self, kept: Duration) -> Result<u64, StoreError> {
        let (mut after, mut seen, mut forgotten) = (None, 0, 0);
        let mut newest = None;
        loop {
            let list = DocumentList { kind: LOG.to_owned(), after, limit: LISTED };
            let page = self.0.documents(list).await?;
            let last = page.last().map(|document| document.name.clone());
            // By both clocks, the store's and ours: one alone may be years ahead.
            let known = page.iter().map(|document| document.created_at).chain(newest).max();
            newest = known;
            let now = known.map(|known| known.min(SystemClock::default().now()));
            for document in &page {
                seen += 1;
                let is_old = now.is_some_and(|now| document.created_at < now.before(kept));
                if is_old || seen > KEPT_MAX {
                    self.remove(document).await?;
                    forgotten += 1;
                }
            }
            match last {
                Some(last) if page.len() == LISTED => after = Some(last),
                _ => return Ok(forgotten),
            }
        }
    }

    async fn remove(&self, document: &Document) -> Result<(), StoreError> {
        let expects = Expects::Version(document.version);
        let change = DocumentChange::new(LOG, &document.name, expects, None);
        self.0.save_document(change).await.map(drop)
    }
}

/// A line as it is read. One that cannot be is shown as such: it is somebody's, and a gap
/// in a log is worse than a riddle.
fn line(document: &Document) -> AuditLine {
    let unreadable = || Deed { action: "unreadable".to_owned(), ..Deed::default() };
    AuditLine {
        id: document.name.clone(),
        at: document.created_at.to_string(),
        deed: serde_json::from_str(&document.body).unwrap_or_else(|_| unreadable()),
    }
}

/// A name that nobody has, and that stands before those of earlier lines.
fn name() -> Result<String, StoreError> {
    let micros = u64::try_from(SystemClock::default().now().as_micros()).unwrap_or_default();
    let random = Token::random()?.to_string();
    Ok(format!("{:016x}{}", u64::MAX - micros, random.get(..12).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn old_lines_are_forgotten_and_young_ones_are_not() {
        let audit = Audit::of(&Mill::open("memory:").await.expect("a store"));
        for n in 0..3 {
            let deed = Deed { action: n.to_string(), ..Deed::default() };
            audit.write(deed).await.expect("written");
        }
        let lines = async || audit.list(None, 10).await.expect("read");
        assert_eq!(audit.forget(KEPT).await.expect("forgotten"), 0);
        let newest = lines().await.first().map(|line| line.deed.action.clone());
        assert_eq!((lines().await.len(), newest.as_deref()), (3, Some("2")));
        // Whatever the clock says, the newest line stays.
        audit.forget(Duration::ZERO).await.expect("forgotten");
        let left = lines().await;
        assert!(left.iter().any(|line| line.deed.action == "2"), "{left:?}");
        assert!(left.len() < 3, "{left:?}");
    }
}
