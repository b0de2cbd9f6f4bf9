//! A token as it is written down, and as it is shown.

use gristmill::port::Document;
use gristmill::{StoreError, Timestamp};
use serde::{Deserialize, Serialize};

use super::reach::Reach;
use super::scope::Scope;
use super::secret::Digest;
use super::tokens::NewToken;

/// A token as it is written down. Names and not values, so that an older service reads
/// what a newer one wrote: a scope that it does not know grants nothing.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    sha256: String,
    scopes: Vec<String>,
    queues: Vec<String>,
    expires_at: Option<i64>,
    by: String,
}

/// A token as the door knows it.
#[derive(Debug)]
pub(crate) struct Known {
    pub(super) name: String,
    pub(super) digest: Digest,
    pub(super) scopes: Vec<Scope>,
    pub(super) reach: Reach,
    pub(super) expires_at: Option<Timestamp>,
}

/// How a token stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenState {
    /// It is taken.
    Active,
    /// Its time is over: it is refused, and still there.
    Expired,
    /// It is refused: this version cannot read what stands there.
    Unreadable,
}

impl TokenState {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            TokenState::Active => "active",
            TokenState::Expired => "expired",
            TokenState::Unreadable => "unreadable",
        }
    }
}

/// A token as it is shown: everything but itself.
#[derive(Debug, Clone, Serialize)]
pub struct TokenView {
    /// Its name.
    pub name: String,
    /// How it stands.
    pub state: TokenState,
    /// What it is good for.
    pub scopes: Vec<String>,
    /// For which queues.
    pub queues: Vec<String>,
    /// Since when.
    pub created_at: String,
    /// Who made it.
    pub created_by: String,
    /// Until when; without end where there is none.
    pub expires_at: Option<String>,
}

impl Record {
    pub(super) fn new(digest: &Digest, token: &NewToken, now: Timestamp) -> Self {
        Record {
            sha256: digest.text(),
            scopes: token.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
            queues: token.reach.texts(),
            expires_at: token.lasts.map(|lasts| now.after(lasts).as_micros()),
            by: token.by.clone(),
        }
    }

    pub(super) fn text(&self) -> Result<String, StoreError> {
        serde_json::to_string(self).map_err(|e| StoreError::corrupt(format!("a token: {e}")))
    }
}

impl Known {
    /// The token that a document is; nothing when that cannot be read.
    pub(super) fn of(document: &Document) -> Option<Self> {
        let record: Record = serde_json::from_str(&document.body).ok()?;
        Some(Known {
            name: document.name.clone(),
            digest: Digest::read(&record.sha256)?,
            scopes: record.scopes.iter().filter_map(|scope| scope.parse().ok()).collect(),
            // Without a word about queues it is for none, not for all.
            reach: if record.queues.is_empty() { None } else { Reach::of(&record.queues).ok() }?,
            expires_at: record.expires_at.map(Timestamp::from_micros),
        })
    }

    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }
}

impl TokenView {
    pub(super) fn of(document: &Document, now: Timestamp) -> Self {
        let record = serde_json::from_str::<Record>(&document.body).ok();
        let state = match Known::of(document) {
            None => TokenState::Unreadable,
            Some(known) if known.is_over(now) => TokenState::Expired,
            Some(_) => TokenState::Active,
        };
        let (scopes, queues, by, end) = match record {
            Some(record) => (record.scopes, record.queues, record.by, record.expires_at),
            None => (Vec::new(), Vec::new(), "?".to_owned(), None),
        };
        TokenView {
            name: document.name.clone(),
            state,
            scopes,
            queues,
            created_at: document.created_at.to_string(),
            created_by: by,
            expires_at: end.map(|end| Timestamp::from_micros(end).to_string()),
        }
    }
}
