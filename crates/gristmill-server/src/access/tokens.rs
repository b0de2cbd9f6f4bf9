//! The tokens of a store: made, listed and revoked. They are small documents there, so
//! that every service of the store knows them.

use std::sync::Arc;
use std::time::Duration;

use gristmill::port::{
    Clock, Document, DocumentAnswer, DocumentChange, DocumentList, Expects, SystemClock,
};
use gristmill::{Mill, QueueName, Store, StoreError};

use super::reach::Reach;
use super::record::{Known, Record, TokenView};
use super::scope::Scope;
use super::secret::Secret;

/// The kind of their documents.
pub(crate) const TOKENS: &str = "token";
/// Most tokens of a store: all are looked through for each request.
const TOKENS_MAX: usize = 1_000;
/// Longest life of a token that has an end.
const LASTS_MAX: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

/// A token that is to be made.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// What it is called: as queues are.
    pub name: String,
    /// What it is good for.
    pub scopes: Vec<Scope>,
    /// For which queues.
    pub reach: Reach,
    /// For how long; without end unless said.
    pub lasts: Option<Duration>,
    /// Who makes it.
    pub by: String,
}

impl NewToken {
    /// Refuses what no token can be.
    ///
    /// # Errors
    /// When it cannot be called so, would be good for nothing, or has an impossible end.
    pub fn check(&self) -> Result<(), TokenError> {
        if QueueName::new(&self.name).is_err() {
            return Err(TokenError::Name(self.name.chars().take(80).collect()));
        }
        if self.scopes.is_empty() {
            return Err(TokenError::NoScope);
        }
        let lasts = Duration::from_secs(1)..=LASTS_MAX;
        if self.lasts.is_some_and(|said| !lasts.contains(&said)) {
            return Err(TokenError::Lasts);
        }
        Ok(())
    }
}

/// Why a token was not made.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The name cannot be one.
    #[error("'{0}' is no name for a token: use letters, digits, '_', '.' and '-', at most 64")]
    Name(String),
    /// It would be good for nothing.
    #[error("a token has at least one scope: put, work, read or admin")]
    NoScope,
    /// It would end before it begins, or so late that nobody meant it.
    #[error("a token lasts from a second to ten years; leave it out for no end")]
    Lasts,
    /// There is one of this name.
    #[error("there is a token '{0}' already: revoke it first, or use another name")]
    Taken(String),
    /// There are as many as there may be.
    #[error("there are {TOKENS_MAX} tokens already: revoke some that are not used any more")]
    TooMany,
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The tokens of a store.
#[derive(Debug, Clone)]
pub struct Tokens(Arc<dyn Store>);

impl Tokens {
    /// Those of this mill's store.
    #[must_use]
    pub fn of(mill: &Mill) -> Self {
        Tokens(mill.store())
    }

    pub(super) fn in_store(store: Arc<dyn Store>) -> Self {
        Tokens(store)
    }

    /// Makes a token. What it is, is in the answer, and from then on nowhere.
    ///
    /// # Errors
    /// When it cannot be called so, would be good for nothing, or the store cannot answer.
    pub async fn create(&self, token: NewToken) -> Result<(Secret, TokenView), TokenError> {
        token.check()?;
        if self.documents().await?.len() >= TOKENS_MAX {
            return Err(TokenError::TooMany);
        }
        let now = SystemClock::default().now();
        let secret = Secret::random()?;
        let record = Record::new(&secret.digest(), &token, now);
        let body = Some(record.text()?);
        let change = DocumentChange::new(TOKENS, &token.name, Expects::Absent, body);
        match self.0.save_document(change).await? {
            DocumentAnswer::Saved(document) => Ok((secret, TokenView::of(&document, now))),
            _ => Err(TokenError::Taken(token.name)),
        }
    }

    /// All tokens, by name.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn list(&self) -> Result<Vec<TokenView>, StoreError> {
        let now = SystemClock::default().now();
        let found = self.documents().await?;
        Ok(found.iter().map(|document| TokenView::of(document, now)).collect())
    }

    /// Takes a token back; returns whether there was one. Services refuse it within a
    /// second.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn revoke(&self, name: &str) -> Result<bool, StoreError> {
        loop {
            let Some(document) = self.0.document(TOKENS, name).await? else { return Ok(false) };
            let expects = Expects::Version(document.version);
            let change = DocumentChange::new(TOKENS, name, expects, None);
            if self.0.save_document(change).await? == DocumentAnswer::Removed {
                return Ok(true);
            }
        }
    }

    /// Whether there is any, also one that expired: a service without tokens is open to
    /// its own machine, and must not become so by itself.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn any(&self) -> Result<bool, StoreError> {
        let list = DocumentList { kind: TOKENS.to_owned(), after: None, limit: 1 };
        Ok(!self.0.documents(list).await?.is_empty())
    }

    async fn documents(&self) -> Result<Vec<Document>, StoreError> {
        let list = DocumentList { kind: TOKENS.to_owned(), after: None, limit: TOKENS_MAX };
        self.0.documents(list).await
    }

    /// Those that can be shown at the door, and whether there is any at all.
    pub(super) async fn known(&self) -> Result<(Vec<Arc<Known>>, bool), StoreError> {
        let found = self.documents().await?;
        let known = found.iter().filter_map(|document| Some(Arc::new(Known::of(document)?)));
        Ok((known.collect(), !found.is_empty()))
    }
}
