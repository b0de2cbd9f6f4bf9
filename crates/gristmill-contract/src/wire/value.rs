//! The Rust types of a contract's types, and how each travels.

use bytes::Bytes;
use gristmill_core::Timestamp;
use serde_json::Value;

use super::unpack::Unpacker;
use super::{Wrong, json, pack};
use crate::base64;

/// A type that a field can have.
pub trait FieldValue: Sized {
    /// Writes it as MessagePack.
    ///
    /// # Errors
    /// When it has no wire form.
    fn pack(&self, to: &mut Vec<u8>) -> Result<(), Wrong>;

    /// Reads it from MessagePack.
    ///
    /// # Errors
    /// When something else comes next.
    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, Wrong>;

    /// Reads it from JSON.
    ///
    /// # Errors
    /// When it is something else.
    fn from_json(value: &Value) -> Result<Self, Wrong>;

    /// It as JSON.
    fn to_json(&self) -> Value;

    /// What stands for a key that is left out, where that is allowed.
    fn absent() -> Option<Self> {
        None
    }

    /// Whether its key is left out.
    fn is_absent(&self) -> bool {
        false
    }
}

impl FieldValue for i64 {
    fn pack(&self, to: &mut Vec<u8>) -> Result<(), Wrong> {
        pack::int(to, *self);
        Ok(())
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, Wrong> {
        from.int()
    }

    fn from_json(value: &Value) -> Result<Self, Wrong> {
        json::int(value)
    }

    fn to_json(&self) -> Value {
        (*self).into()
    }
}

/// Above this, whole numbers and floats part.
const EXACT: i64 = 1 << 53;

/// A whole number as a float, if nothing is lost.
pub(super) fn whole(value: i64) -> Result<f64, Wrong> {
    if (-EXACT..=EXACT).contains(&value) {
        #[expect(clippy::cast_precision_loss, reason = "the range is checked above")]
        return Ok(value as f64);
    }
    Err(Wrong::new(format!("{value} cannot be a float64 without loss")))
}

impl FieldValue for f64 {
    fn pack(&self, to: &mut Vec<u8>) -> Result<(), Wrong> {
        pack::float(to, *self);
        Ok(())
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, Wrong> {
        from.float()
    }

    fn from_json(value: &Value) -> Result<Self, Wrong> {
        json::float(value)
    }

    fn to_json(&self) -> Value {
        json::of_float(*self)
    }
}

impl FieldValue for bool {
    fn pack(&self, to: &mut Vec<u8>) -> Result<(), Wrong> {
        pack::boolean(to, *self);
        Ok(())
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, Wrong> {
        from.boolean()
    }

    fn from_json(value: &Value) -> Result<Self, Wrong> {
        value.as_bool().ok_or_else(|| json::not(value, "a bool"))
    }

    fn to_json(&self) -> Value {
        (*self).into()
    }
}

impl FieldValue for String {
    fn pack(&self, to: &mut Vec<u8>) -> Result<(), Wrong> {
        pack::text(to, self);
        Ok(())
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, Wrong> {
        from.text().map(str::to_owned)
    }

    fn from_json(value: &Value) -> Result<Self, Wrong> {
        value.as_str().map(str::to_owned).ok_or_else(|| json::not(value, "a string"))
    }

    fn to_json(&self) -> Value {
        self.as_str().into()
    }
}

impl FieldValue for Bytes {
    fn pack(&self, to: &mut Vec<u8>) -> Result<(), Wrong> {
        pack::bytes(to, self);
        Ok(())
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, Wrong> {
        from.bytes().map(Bytes::copy_from_slice)
    }

    fn from_json(value: &Value) -> Result<Self, Wrong> {
        let text = value.as_str().ok_or_else(|| json::not(value, "base64 in a string"))?;
        let bytes = base64::decode(text).ok_or_else(|| Wrong::new("the text is not base64"))?;
        Ok(bytes.into())
    }

    fn to_json(&self) -> Value {
        base64::encode(self).into()
    }
}

/// The first instant that can be written as a date, in the year -9999.
const FIRST_MICROS: i64 = -377_705_023_201_000_000;

/// Whether it can be written as a date.
pub(super) fn is_date(instant: Timestamp) -> bool {
    instant.as_micros() >= FIRST_MICROS && instant <= Timestamp::MAX
}

/// An instant from its text.
pub(super) fn instant(text: &str) -> Result<Timestamp, Wrong> {
    let instant: Timestamp = text.parse().map_err(|error| Wrong::new(format!("{error}")))?;
    if is_date(instant) { Ok(instant) } else { Err(no_date()) }
}

fn no_date() -> Wrong {
    Wrong::new("the timestamp is in no year that has four digits")
}

impl FieldValue for Timestamp {
    fn pack(&self, to: &mut Vec<u8>) -> Result<(), Wrong> {
        if !is_date(*self) {
            return Err(no_date());
        }
        pack::text(to, &self.to_string());
        Ok(())
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, Wrong> {
        from.timestamp()
    }

    fn from_json(value: &Value) -> Result<Self, Wrong> {
        let text = value.as_str();
        instant(text.ok_or_else(|| json::not(value, "a time in a string"))?)
    }

    fn to_json(&self) -> Value {
        self.to_string().into()
    }
}

/// No more than this is reserved for a list before its elements are seen.
const RESERVED: usize = 1_024;

impl<T: FieldValue> FieldValue for Vec<T> {
    fn pack(&self, to: &mut Vec<u8>) -> Result<(), Wrong> {
        pack::array(to, self.len());
        for (position, value) in self.iter().enumerate() {
            value.pack(to).map_err(|wrong| wrong.at(position))?;
        }
        Ok(())
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, Wrong> {
        let len = from.array()?;
        let mut list = Vec::with_capacity(len.min(RESERVED));
        for position in 0..len {
            list.push(T::unpack(from).map_err(|wrong| wrong.at(position))?);
        }
        Ok(list)
    }

    fn from_json(value: &Value) -> Result<Self, Wrong> {
        let list = value.as_array().ok_or_else(|| json::not(value, "a list"))?;
        let read = |(position, value)| T::from_json(value).map_err(|wrong| wrong.at(position));
        list.iter().enumerate().map(read).collect()
    }

    fn to_json(&self) -> Value {
        self.iter().map(T::to_json).collect()
    }
}

impl<T: FieldValue> FieldValue for Option<T> {
    fn pack(&self, to: &mut Vec<u8>) -> Result<(), Wrong> {
        match self {
            Some(value) => value.pack(to),
            None => {
                to.push(0xc0);
                Ok(())
            }
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, Wrong> {
        if from.nil()? { Ok(None) } else { T::unpack(from).map(Some) }
    }

    fn from_json(value: &Value) -> Result<Self, Wrong> {
        if value.is_null() { Ok(None) } else { T::from_json(value).map(Some) }
    }

    fn to_json(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_json)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}
