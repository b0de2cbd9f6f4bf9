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

pub mod base64;
pub mod duration;
pub mod evolution;
#[cfg(feature = "yaml")]
pub mod generate;
pub mod model;
pub mod naming;
#[cfg(feature = "yaml")]
pub mod read;
pub mod schema;
mod setting_value;
pub mod settings;
pub mod task_settings;
mod text;
pub mod view;
pub mod wire;
#[cfg(feature = "yaml")]
pub mod yaml;

#[cfg(feature = "yaml")]
pub use generate::{BuildError, build, build_all};
pub use model::{Contract, Field, FieldType, QueueContract, Scalar};
#[cfg(feature = "yaml")]
pub use read::{ContractError, Source, read, read_files};
