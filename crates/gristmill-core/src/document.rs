//! Small records that the system keeps beside tasks: operations under way, and whatever
//! else is read and changed as a whole by its name. A change names the version it was
//! made from, so of two that change one at once the second hears of the first.

use crate::{Result, StoreError, Timestamp};

/// Longest kind, in bytes.
pub const KIND_BYTES: usize = 64;
/// Longest name, in bytes.
pub const NAME_BYTES: usize = 256;
/// Longest body, in bytes.
pub const BODY_BYTES: usize = 64 << 10;
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
}

/// A record that is to be made, changed or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentChange {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The version it was made from; without one there must be none yet.
    pub expects: Option<u64>,
    /// What it says from now on; nothing removes it.
    pub body: Option<String>,
}

impl DocumentChange {
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

    /// What stands afterwards, in a store that has `standing` now.
    #[must_use]
    pub fn apply(self, standing: Option<&Document>, now: Timestamp) -> DocumentAnswer {
        let current = standing.map(|document| document.version);
        if current != self.expects {
            return DocumentAnswer::Changed { current };
        }
        let Some(body) = self.body else { return DocumentAnswer::Removed };
        DocumentAnswer::Saved(Document {
            kind: self.kind,
            name: self.name,
            version: current.unwrap_or(0) + 1,
            body,
            created_at: standing.map_or(now, |document| document.created_at),
            changed_at: now,
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
    /// Somebody was faster, or there is none: nothing was changed.
    Changed {
        /// The version that stands.
        current: Option<u64>,
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
