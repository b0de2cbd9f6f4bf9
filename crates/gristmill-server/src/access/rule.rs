//! Who may use a route. Each route in the table has one; one without does not compile.

use super::caller::Caller;
use super::scope::Scope;
use crate::problem::Answer;

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Everybody: it tells nothing of what is stored.
    Open,
    /// Whoever has a token.
    Any,
    /// Whoever has this scope, for the queues it is about.
    Needs(Scope),
    /// Whoever has this scope, for every queue: it is about all of them at once, or about
    /// none.
    Whole(Scope),
}

impl Rule {
    /// As it is shown.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Rule::Open => "open",
            Rule::Any => "any token",
            Rule::Needs(scope) | Rule::Whole(scope) => scope.as_str(),
        }
    }

    /// Refuses who may not, as far as the scope tells.
    pub(crate) fn check(self, caller: &Caller) -> Answer<()> {
        match self {
            Rule::Open | Rule::Any => Ok(()),
            Rule::Needs(scope) => caller.expect(scope),
            Rule::Whole(scope) => caller.expect_whole(scope),
        }
    }
}
