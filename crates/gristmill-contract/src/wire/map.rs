//! A payload's fields on their way in and out.

use serde_json::{Map, Value};

use super::unpack::Unpacker;
use super::{FieldValue, Wrong, pack};

/// Writes a payload's fields.
#[derive(Debug)]
pub struct MapWriter {
    body: Vec<u8>,
    fields: usize,
    wrong: Option<Wrong>,
}

/// Room for most payloads without growing.
const USUAL: usize = 128;

impl MapWriter {
    pub(crate) fn new() -> Self {
        MapWriter { body: Vec::with_capacity(USUAL), fields: 0, wrong: None }
    }

    /// Writes a field, or leaves it out where it has no value.
    pub fn field(&mut self, name: &str, value: &impl FieldValue) {
        if value.is_absent() || self.wrong.is_some() {
            return;
        }
        self.fields += 1;
        pack::text(&mut self.body, name);
        // Kept for the end, so that generated code is a list of fields.
        self.wrong = value.pack(&mut self.body).err().map(|wrong| wrong.within(name));
    }

    pub(crate) fn finish(self) -> Result<Vec<u8>, Wrong> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let mut bytes = Vec::with_capacity(self.body.len() + 3);
        pack::map(&mut bytes, self.fields);
        bytes.extend_from_slice(&self.body);
        Ok(bytes)
    }
}

/// Reads a payload's fields, from MessagePack or JSON.
#[derive(Debug)]
pub struct MapReader<'a>(Form<'a>);

#[derive(Debug)]
enum Form<'a> {
    Packed { from: Unpacker<'a>, left: usize },
    Json { entries: serde_json::map::Iter<'a>, value: Option<&'a Value> },
}

impl<'a> MapReader<'a> {
    pub(super) fn packed(bytes: &'a [u8]) -> Result<Self, Wrong> {
        let mut from = Unpacker::new(bytes);
        let left = from.map()?;
        Ok(MapReader(Form::Packed { from, left }))
    }

    pub(super) fn json(map: &'a Map<String, Value>) -> Self {
        MapReader(Form::Json { entries: map.iter(), value: None })
    }

    /// The next field's name, if there is one. Its value, or skipping it, is
    /// to be asked for next.
    ///
    /// # Errors
    /// When a key is no text, or the payload is cut off.
    pub fn name(&mut self) -> Result<Option<&'a str>, Wrong> {
        match &mut self.0 {
            Form::Packed { left: 0, .. } => Ok(None),
            Form::Packed { from, left } => {
                *left -= 1;
                from.text().map(Some).map_err(|wrong| wrong.within("a key"))
            }
            Form::Json { entries, value } => Ok(entries.next().map(|(name, next)| {
                *value = Some(next);
                name.as_str()
            })),
        }
    }

    /// The value of the field whose name came last.
    ///
    /// # Errors
    /// When it is of another type.
    pub fn value<T: FieldValue>(&mut self, name: &str) -> Result<Option<T>, Wrong> {
        let value = match &mut self.0 {
            Form::Packed { from, .. } => T::unpack(from),
            Form::Json { value, .. } => T::from_json(value.unwrap_or(&Value::Null)),
        };
        value.map(Some).map_err(|wrong| wrong.within(name))
    }

    /// Passes the value over.
    ///
    /// # Errors
    /// When the payload is cut off.
    pub fn skip(&mut self) -> Result<(), Wrong> {
        match &mut self.0 {
            Form::Packed { from, .. } => from.skip(),
            Form::Json { .. } => Ok(()),
        }
    }

    /// A field that was read, or what stands for it when it was left out.
    ///
    /// # Errors
    /// When it was left out and may not be.
    pub fn required<T: FieldValue>(&self, name: &str, value: Option<T>) -> Result<T, Wrong> {
        value.or_else(T::absent).ok_or_else(|| Wrong::new("is missing").within(name))
    }

    pub(super) fn finish(self) -> Result<(), Wrong> {
        match self.0 {
            Form::Packed { from, .. } if from.left() > 0 => {
                Err(Wrong::new(format!("{} bytes follow the payload", from.left())))
            }
            _ => Ok(()),
        }
    }
}
