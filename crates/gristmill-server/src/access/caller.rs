//! Who calls, and what they may do.

use std::sync::{Arc, Mutex, PoisonError};

use gristmill::{QueueName, Task};

use super::record::Known;
use super::scope::Scope;
use super::secret::Digest;
use crate::audit::Deed;
use crate::problem::{Answer, FORBIDDEN, Problem};

/// Who calls, and what becomes known of what they do while it is done.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    pub(super) known: Option<Arc<Known>>,
    /// What the cookie's secret hashes to, where a browser showed one instead of a token.
    pub(super) session: Option<Digest>,
    deed: Arc<Mutex<Deed>>,
}

impl Caller {
    /// Somebody at a service that asks nobody, or at a route that does not.
    pub(crate) fn anyone() -> Self {
        Caller::default()
    }

    pub(super) fn with(known: Arc<Known>) -> Self {
        Caller { known: Some(known), session: None, deed: Arc::default() }
    }

    pub(super) fn in_session(known: Arc<Known>, session: Digest) -> Self {
        Caller { session: Some(session), ..Caller::with(known) }
    }

    /// Whether a browser asks that has logged in.
    pub(crate) fn is_logged_in(&self) -> bool {
        self.session.is_some()
    }

    /// Notes something of what is done, for the audit log.
    pub(crate) fn note(&self, note: impl FnOnce(&mut Deed)) {
        // A text is valid whatever a panicking holder did.
        note(&mut self.deed.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// What was done, as far as it is known.
    pub(crate) fn deed(&self) -> Deed {
        let deed = self.deed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Deed { actor: self.name().map(str::to_owned), ..deed }
    }

    /// The token's name; nothing where nobody was asked.
    pub(crate) fn name(&self) -> Option<&str> {
        self.known.as_ref().map(|known| known.name.as_str())
    }

    /// Whether there are queues that are not theirs.
    pub(crate) fn is_limited(&self) -> bool {
        self.known.as_ref().is_some_and(|known| !known.reach.is_all())
    }

    /// Whether a queue is theirs.
    pub(crate) fn reaches(&self, queue: &QueueName) -> bool {
        self.known.as_ref().is_none_or(|known| known.reach.has(queue.as_str()))
    }

    /// The one queue that is theirs, if it is one.
    pub(crate) fn only(&self) -> Option<&QueueName> {
        self.known.as_ref().and_then(|known| known.reach.only())
    }

    /// Whether a task is theirs: one of a foreign queue is as if it were not there.
    pub(crate) fn sees(&self, task: &Task) -> bool {
        self.reaches(&task.queue)
    }

    fn has(&self, scope: Scope) -> bool {
        self.known.as_ref().is_none_or(|known| known.scopes.iter().any(|has| has.includes(scope)))
    }

    /// Refuses who has not this scope for any queue.
    pub(crate) fn expect(&self, scope: Scope) -> Answer<()> {
        if self.has(scope) {
            return Ok(());
        }
        let name = self.name().unwrap_or_default();
        let why = format!("token '{name}' has not the scope {scope}, which this needs");
        Err(Problem::new(&FORBIDDEN, why).challenged(insufficient(scope)))
    }

    /// Refuses who has not this scope for this queue, whether there is such a queue or
    /// not.
    pub(crate) fn expect_for(&self, scope: Scope, queue: &QueueName) -> Answer<()> {
        self.expect(scope)?;
        if self.reaches(queue) {
            return Ok(());
        }
        let name = self.name().unwrap_or_default();
        let why = format!("token '{name}' is not for queue '{queue}'");
        Err(Problem::new(&FORBIDDEN, why).at("queue").challenged(insufficient(scope)))
    }

    /// Refuses who has not this scope for every queue.
    pub(crate) fn expect_whole(&self, scope: Scope) -> Answer<()> {
        self.expect(scope)?;
        if !self.is_limited() {
            return Ok(());
        }
        let name = self.name().unwrap_or_default();
        let why = format!("token '{name}' is for some queues, and this is about all of them");
        Err(Problem::new(&FORBIDDEN, why).challenged(insufficient(scope)))
    }

    /// Who acts, for what is written down: what was said, else the token's name.
    pub(crate) fn acts_as(&self, said: Option<String>) -> Option<String> {
        let by = said.or_else(|| self.name().map(str::to_owned));
        self.note(|deed| deed.by.clone_from(&by));
        by
    }
}

fn insufficient(scope: Scope) -> String {
    format!("Bearer realm=\"gristmill\", error=\"insufficient_scope\", scope=\"{scope}\"")
}
