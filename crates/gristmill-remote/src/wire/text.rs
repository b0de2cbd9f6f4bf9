//! Values that are a word each.

use gristmill_core::{Action, AttemptEnd, Encoding, Missed, Origin, Overlap, State, Unique};
use serde_json::Value;

use super::{Read, Wire, unknown};

macro_rules! words {
    ($($type:ident by $read:expr),+ $(,)?) => {$(
        impl Wire for $type {
            fn write(&self) -> Value {
                Value::String(self.as_str().to_owned())
            }

            fn read(value: Value) -> Read<Self> {
                let word = String::read(value)?;
                let read: fn(&str) -> Option<$type> = $read;
                read(&word).ok_or_else(|| unknown(&word))
            }
        }
    )+};
}
words! {
    Action by |word| Action::ALL.into_iter().find(|one| one.as_str() == word),
    AttemptEnd by |word| word.parse().ok(),
    Encoding by |word| word.parse().ok(),
    Missed by |word| word.parse().ok(),
    Origin by |word| Origin::ALL.into_iter().find(|one| one.as_str() == word),
    Overlap by |word| word.parse().ok(),
    State by |word| word.parse().ok(),
    Unique by |word| word.parse().ok(),
}
