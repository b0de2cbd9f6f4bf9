//! The wire form: how a contract's values become payloads and back.
//!
//! A payload is one MessagePack map with the fields' names as keys. JSON is
//! read as well, so that those who have nothing else can put tasks.
//!
//! | type | MessagePack | JSON |
//! |---|---|---|
//! | `int`, `int64` | integer, in the fewest bytes | whole number |
//! | `float64` | float 64 (float 32 and integers are read) | number, or `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | `string` | str | string |
//! | `bool` | true, false | true, false |
//! | `bytes` | bin | base64 |
//! | `timestamp` | str, RFC 3339 in UTC (the extension type -1 is read) | the same |
//! | `[]T` | array | array |
//! | `T?` without a value | the key is left out (nil is read) | left out or null |
//!
//! Keys that the reader does not know are skipped: a newer writer may say more.

mod fields;
mod json;
mod map;
mod pack;
mod unpack;
mod value;

pub(crate) use fields::read;
pub use fields::{Fields, QueueSpec, decode, encode, needs};
pub use map::{MapReader, MapWriter};
pub use unpack::Unpacker;
pub use value::FieldValue;

use std::fmt;

/// Why something is not of the contract: where, and what was wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    path: String,
    what: String,
}

impl Wrong {
    /// A mistake without a place yet.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        Wrong { path: String::new(), what: what.into() }
    }

    /// The same, within this field.
    #[must_use]
    pub fn within(mut self, field: &str) -> Self {
        self.path.insert_str(0, field);
        self
    }

    /// The same, within this element of a list.
    #[must_use]
    pub fn at(self, position: usize) -> Self {
        self.within(&format!("[{position}]"))
    }

    /// The field's path, like `user_ids[3]`; empty for the payload as a whole.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.what)
        } else {
            write!(f, "{}: {}", self.path, self.what)
        }
    }
}

impl std::error::Error for Wrong {}
