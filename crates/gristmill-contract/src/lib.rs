//! The contract: queues and the fields of their payloads in YAML, and what
//! follows from it.
//!
//! ```text
//!   queues.yaml ──► read ──► Contract ──► generate ──► typed Rust
//!                               │
//!                               ├──► view: JSON ⇄ payload, JSON Schema
//!                               └──► evolution: what a new one breaks
//! ```
//!
//! A build script needs one line: see [`build`]. What generated code uses at
//! run time ([`wire`]) needs no YAML; the feature `yaml` brings the reader and
//! the generator.

pub mod duration;
pub mod model;
pub mod naming;
#[cfg(feature = "yaml")]
pub mod read;
pub mod settings;
#[cfg(feature = "yaml")]
pub mod yaml;

pub use model::{Contract, Field, FieldType, QueueContract, Scalar};
#[cfg(feature = "yaml")]
pub use read::{ContractError, Source, read, read_files};
