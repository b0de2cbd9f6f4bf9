//! The port over HTTP: how each verb and what it speaks of travel ([`wire`]), and the
//! store that asks a service ([`Remote`], with the feature `client`).
//!
//! ```text
//!   Mill, Worker ──► Remote ──► wire: the verb's arguments as JSON ──► POST /v1/port/VERB
//!                       ▲        lines: connections, deadlines               │
//!                       └─────── wire: the answer, or the store's error ◄────┘
//! ```
//!
//! One encoding of the model, for both ends: the service and its client use the same
//! functions. What travels is ours to change with any version; [`wire::VERSION`] says
//! which one it is, and both ends refuse one that they do not know in words.
//!
//! An application does not use this crate: `Mill::open("http://host:4747")` does.

#[cfg(feature = "client")]
mod address;
#[cfg(feature = "client")]
mod client;
pub mod wire;

#[cfg(feature = "client")]
pub use address::{Address, AddressError};
#[cfg(feature = "client")]
pub use client::{Options, Remote};
