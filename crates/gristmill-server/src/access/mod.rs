//! Who may do what: access tokens, and the door at which they are shown.
//!
//! ```text
//!   gristmill token create ──► a document of kind `token`: name, SHA-256, scopes, queues
//!                                │  looked at twice a second
//!   Authorization: Bearer … ──► door ──► caller ──► the route's rule, then its queues
//!   the cookie of a session  ────┤  (pages only)
//!                             throttle: wrong ones, by address
//! ```
//!
//! Only what a token hashes to is kept. It has 256 random bits, so a fast hash is
//! enough: there is nothing to guess from a dictionary.

mod caller;
mod door;
mod reach;
mod record;
mod rule;
mod scope;
mod secret;
mod sessions;
mod throttle;
mod tokens;

pub(crate) use caller::Caller;
pub(crate) use door::{Door, Encrypted, Peer, SESSION};
pub use reach::{Reach, ReachError};
pub use record::{TokenState, TokenView};
pub(crate) use rule::Rule;
pub use scope::{Scope, ScopeError};
pub use secret::Secret;
pub(crate) use sessions::LASTS;
pub(crate) use tokens::TOKENS;
pub use tokens::{NewToken, TokenError, Tokens};
