//! YAML whose every value knows its place, read with all mistakes at once: for
//! contracts and for the configuration.

mod excerpt;
mod fields;
mod mistake;
mod queue_settings;
mod tree;

pub use fields::Fields;
pub(crate) use fields::unknown_field;
pub use mistake::Mistakes;
pub use queue_settings::{Said, queue_settings};
pub use tree::{Key, Node, Value, parse};
