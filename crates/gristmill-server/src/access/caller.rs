//! Who calls, and what they may do.

use std::sync::Arc;

use gristmill::{QueueName, Task};

use super::record::Known;
use super::scope::Scope;
use crate::problem::{Answer, FORBIDDEN, Problem};

/// Who calls.
#[derive(Debug, Clone)]
pub(crate) struct Caller(pub(super) Option<Arc<Known>>);

impl Caller {
    /// Somebody at a service that asks nobody, or at a route that does not.
    pub(crate) const fn anyone() -> Self {
        Caller(None)
    }

    /// The token's name; nothing where nobody was asked.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0.as_ref().map(|known| known.name.as_str())
    }

    /// Whether there are queues that are not theirs.
    pub(crate) fn is_limited(&self) -> bool {
        self.0.as_ref().is_some_and(|known| !known.reach.is_all())
    }

    /// Whether a queue is theirs.
    pub(crate) fn reaches(&self, queue: &QueueName) -> bool {
        self.0.as_ref().is_none_or(|known| known.reach.has(queue.as_str()))
    }

    /// The one queue that is theirs, if it is one.
    pub(crate) fn only(&self) -> Option<&QueueName> {
        self.0.as_ref().and_then(|known| known.reach.only())
    }

    /// Whether a task is theirs: one of a foreign queue is as if it were not there.
    pub(crate) fn sees(&self, task: &Task) -> bool {
        self.reaches(&task.queue)
    }

    fn has(&self, scope: Scope) -> bool {
        self.0.as_ref().is_none_or(|known| known.scopes.iter().any(|has| has.includes(scope)))
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

    /// Who acts, for what is written down: what was said, else the token's name.
    pub(crate) fn acts_as(&self, said: Option<String>) -> Option<String> {
        said.or_else(|| self.name().map(str::to_owned))
    }
}

fn insufficient(scope: Scope) -> String {
    format!("Bearer realm=\"gristmill\", error=\"insufficient_scope\", scope=\"{scope}\"")
}
