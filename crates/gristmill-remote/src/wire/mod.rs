//! What travels: each value of the model as JSON, in both directions from one list of its
//! fields, so that neither end can say what the other does not read.
//!
//! A field that may be absent is left out. Who reads passes over fields that it does not
//! know: an older service may be asked, and a newer one may answer ([`VERSION`]).

#[macro_use]
mod shape;
mod about;
mod claim;
mod document;
mod error;
mod plain;
mod put;
mod queue;
mod schedule;
mod settings;
mod settle;
mod stats;
mod task;
mod text;
mod verb;

use std::fmt;

use serde_json::{Map, Value};

pub use about::About;
pub use error::{HIDDEN, concealed};
pub use verb::*;

/// Which form of the port this is. One more with each change of what travels, also when
/// only a field is added: an older service would pass over it in silence.
pub const VERSION: u32 = 3;
/// The oldest form that a service of this version still understands.
pub const OLDEST: u32 = 3;

/// The header in which a client says its [`VERSION`].
pub const VERSION_HEADER: &str = "gristmill-port";
/// The header in which a service says up to where its wake-ups are, and which service it
/// is: `EPOCH.NUMBER`.
pub const MARK_HEADER: &str = "gristmill-mark";
/// Below which path the verbs are.
pub const PATH: &str = "/v1/port";

/// What came is not such a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where in it: `tasks[3].payload`.
    pub at: String,
    /// What is wrong there.
    pub why: String,
}

/// A value that was read.
pub type Read<T> = Result<T, Fault>;

impl Fault {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Fault { at: String::new(), why: why.into() }
    }

    fn within(mut self, place: &str) -> Self {
        let dot = if self.at.is_empty() || self.at.starts_with('[') { "" } else { "." };
        self.at = format!("{place}{dot}{}", self.at);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at.is_empty() {
            f.write_str(&self.why)
        } else {
            write!(f, "{}: {}", self.at, self.why)
        }
    }
}

/// A value that travels.
pub trait Wire: Sized {
    /// As it is sent.
    fn write(&self) -> Value;

    /// As it came.
    ///
    /// # Errors
    /// When it is no such value, with the place.
    fn read(value: Value) -> Read<Self>;

    /// What it is where nothing is said of it; nothing where something must be.
    #[must_use]
    fn absent() -> Option<Self> {
        None
    }
}

/// Says a field, unless it is nothing.
fn say(said: &mut Map<String, Value>, name: &str, value: &impl Wire) {
    let value = value.write();
    if !value.is_null() {
        said.insert(name.to_owned(), value);
    }
}

/// Takes a field out.
fn take<T: Wire>(said: &mut Map<String, Value>, name: &str) -> Read<T> {
    match said.remove(name) {
        Some(value) => T::read(value).map_err(|fault| fault.within(name)),
        None => T::absent().ok_or_else(|| Fault::new("it is missing").within(name)),
    }
}

/// The fields of an object.
fn fields(value: Value) -> Read<Map<String, Value>> {
    match value {
        Value::Object(said) => Ok(said),
        _ => Err(Fault::new("it is no object")),
    }
}

/// One of several things: which, beside its fields.
fn named(word: &str, mut said: Map<String, Value>) -> Value {
    said.insert("is".to_owned(), Value::String(word.to_owned()));
    Value::Object(said)
}

/// What nobody here knows: somebody newer's.
fn unknown(word: &str) -> Fault {
    let word: String = word.chars().take(80).collect();
    Fault::new(format!("'{word}' is not known here"))
}
