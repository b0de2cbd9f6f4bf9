//! Small records that the system keeps beside tasks: who leads, who works and how they are
//! shared out, operations under way, and whatever else is read and changed as a whole by its
//! name. A change says what it was made from, so of two that change one at once the second
//! hears of the first. How old a record is, only the store's clock says, in the step in
//! which it is changed.

use std::time::Duration;

use crate::policy::reclaim_guard;
use crate::{Result, StoreError, Timestamp};

/// Longest kind, in bytes.
pub const KIND_BYTES: usize = 64;
/// Longest name, in bytes.
pub const NAME_BYTES: usize = 256;
/// Longest body, in bytes.
pub const BODY_BYTES: usize = 1 << 20;
/// Most documents of one answer.
pub const PAGE: usize = 1_000;

/// A record as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// What it is a record of; names are unique within it.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// 1 when it is new, one more with each change. A name that is given again after
    /// its document was removed begins anew.
    pub version: u64,
    /// What it says.
    pub body: String,
    /// When it was made, by the store's clock.
    pub created_at: Timestamp,
    /// When it was last changed, by the store's clock.
    pub changed_at: Timestamp,
    /// After how long without a change it is forgotten; never, where nothing is said.
    pub keep: Option<Duration>,
    /// When this was read, by the store's clock.
    pub read_at: Timestamp,
}

impl Document {
    /// For how long it stood unchanged when it was read.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.read_at.since(self.changed_at)
    }

    /// Whether a clock that was ahead wrote it.
    #[must_use]
    pub fn is_ahead(&self) -> bool {
        self.changed_at > self.read_at
    }

    /// Whether it is past its keeping time.
    #[must_use]
    pub fn is_forgotten(&self, now: Timestamp) -> bool {
        self.keep.is_some_and(|keep| now.since(self.changed_at) > keep)
    }
}

/// What a record must be for a change of it to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expects {
    /// There is none yet.
    Absent,
    /// It has this version.
    Version(u64),
    /// It has this version and stood unchanged for so long, by the store's clock in the
    /// step of the change. After a jump of the clock the store waits a while before it
    /// says so of one that somebody may be about to renew.
    Aged {
        /// The version.
        version: u64,
        /// For how long.
        least: Duration,
    },
    /// Whatever it is; a removal expects that there is one.
    Anything,
}

impl From<Option<&Document>> for Expects {
    fn from(read: Option<&Document>) -> Self {
        read.map_or(Expects::Absent, |document| Expects::Version(document.version))
    }
}

/// A record that must be as it was read for another one to be changed, in one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The version it was read with.
    pub version: u64,
}

/// A record that is to be made, changed or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentChange {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What it was made from.
    pub expects: Expects,
    /// What else must stand.
    pub beside: Option<Beside>,
    /// What it says from now on; nothing removes it.
    pub body: Option<String>,
    /// It is forgotten by a sweep when it stands unchanged for longer.
    pub keep: Option<Duration>,
    /// Whether it must survive a power cut.
    pub durable: bool,
}

impl DocumentChange {
    /// A durable change of what is kept until it is removed; without a body, its removal.
    #[must_use]
    pub fn new(kind: &str, name: &str, expects: Expects, body: Option<String>) -> Self {
        let (kind, name) = (kind.to_owned(), name.to_owned());
        let (beside, keep, durable) = (None, None, true);
        DocumentChange { kind, name, expects, beside, body, keep, durable }
    }

    /// Refuses what no store keeps.
    ///
    /// # Errors
    /// In one sentence.
    pub fn check(&self) -> Result<()> {
        let body = self.body.as_deref().unwrap_or_default();
        let nul = [&self.kind, &self.name].into_iter().any(|text| text.contains('\0'));
        let why = if self.kind.is_empty() || self.kind.len() > KIND_BYTES {
            format!("a document's kind has from 1 to {KIND_BYTES} bytes")
        } else if self.name.is_empty() || self.name.len() > NAME_BYTES {
            format!("a document's name has from 1 to {NAME_BYTES} bytes")
        } else if body.len() > BODY_BYTES {
            format!("a document has at most {BODY_BYTES} bytes")
        } else if nul || body.contains('\0') {
            "a document has no NUL".to_owned()
        } else {
            return Ok(());
        };
        Err(StoreError::invalid(why))
    }

    /// What stands afterwards, in a store that has `standing` now, and `beside` as the
    /// version of what must stand beside it. `spared` says how long who renews so often is
    /// waited for because of a jump of the clock.
    #[must_use]
    pub fn apply(
        self,
        standing: Option<&Document>,
        beside: Option<u64>,
        now: Timestamp,
        spared: impl FnOnce(Duration) -> Option<Duration>,
    ) -> DocumentAnswer {
        let current = standing.map(|document| document.version);
        let as_expected = match self.expects {
            Expects::Absent => current.is_none(),
            Expects::Version(version) | Expects::Aged { version, .. } => current == Some(version),
            Expects::Anything => self.body.is_some() || current.is_some(),
        };
        let stands_beside = self.beside.as_ref().is_none_or(|one| beside == Some(one.version));
        // What is not there and shall not be there is as it should be.
        if !as_expected || !stands_beside {
            return DocumentAnswer::Changed { current };
        }
        if let (Expects::Aged { least, .. }, Some(standing)) = (self.expects, standing) {
            let left = least.saturating_sub(now.since(standing.changed_at));
            let left = Some(left).filter(|left| !left.is_zero());
            if let Some(left) = left.or_else(|| spared(reclaim_guard::spared(least))) {
                return DocumentAnswer::Young { left };
            }
        }
        let Some(body) = self.body else { return DocumentAnswer::Removed };
        DocumentAnswer::Saved(Document {
            kind: self.kind,
            name: self.name,
            version: current.unwrap_or(0) + 1,
            body,
            // It was not made after it was changed, whatever the clock said then.
            created_at: standing.map_or(now, |document| document.created_at.min(now)),
            changed_at: now,
            keep: self.keep,
            read_at: now,
        })
    }
}

/// What the store says to a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentAnswer {
    /// It stands like this now.
    Saved(Document),
    /// It is gone.
    Removed,
    /// Somebody was faster, here or at what must stand beside it, or there is none: nothing
    /// was changed.
    Changed {
        /// The version that stands.
        current: Option<u64>,
    },
    /// It has not stood unchanged for long enough: nothing was changed.
    Young {
        /// How long it takes until it has.
        left: Duration,
    },
}

/// Which documents to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentList {
    /// Of this kind.
    pub kind: String,
    /// Behind this name.
    pub after: Option<String>,
    /// At most this many, and never more than [`PAGE`].
    pub limit: usize,
}

impl DocumentList {
    /// At most this many.
    #[must_use]
    pub fn page(&self) -> usize {
        self.limit.clamp(1, PAGE)
    }
}
