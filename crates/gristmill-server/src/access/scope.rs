//! What a token is good for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a token is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Putting tasks.
    Put,
    /// Claiming, extending and settling.
    Work,
    /// Looking.
    Read,
    /// Everything, and what operators do.
    Admin,
}

impl Scope {
    /// All of them.
    pub const ALL: [Scope; 4] = [Scope::Put, Scope::Work, Scope::Read, Scope::Admin];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Put => "put",
            Scope::Work => "work",
            Scope::Read => "read",
            Scope::Admin => "admin",
        }
    }

    /// Whether who has it may do what needs `other`.
    #[must_use]
    pub fn includes(self, other: Scope) -> bool {
        self == Scope::Admin || self == other
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// There is no such scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no scope '{0}': use put, work, read or admin")]
pub struct ScopeError(String);

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        let found = Scope::ALL.into_iter().find(|scope| scope.as_str() == text);
        found.ok_or_else(|| ScopeError(text.chars().take(40).collect()))
    }
}
