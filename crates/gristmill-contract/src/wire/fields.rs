//! What generated code implements for each queue.

use gristmill_core::{Encoding, Payload, QueueName};
use serde_json::Value;

use super::{MapReader, MapWriter, Wrong};
use crate::{Field, FieldType, QueueContract, settings};

/// The newest generated code that this runtime serves.
const RUNTIME: u32 = 1;

/// Generated code says in a constant which runtime it needs: with an older one
/// it does not compile.
///
/// ```
/// const _: () = gristmill_contract::wire::needs(1);
/// ```
///
/// ```compile_fail
/// const _: () = gristmill_contract::wire::needs(1_000);
/// ```
pub const fn needs(runtime: u32) {
    assert!(runtime <= RUNTIME, "this code was generated for a newer gristmill: upgrade it");
}

/// A queue of a contract, as generated code knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSpec {
    /// Its number, 1 to 9999.
    pub number: u32,
    /// Its name.
    pub name: &'static str,
    /// Its fields: names and types.
    pub fields: &'static [(&'static str, &'static str)],
    /// Its settings: names and values.
    pub settings: &'static [(&'static str, &'static str)],
}

impl QueueSpec {
    /// The contract it was generated from.
    ///
    /// # Errors
    /// When it was written by hand and has mistakes.
    pub fn contract(&self) -> Result<QueueContract, String> {
        let field = |(name, kind): &(&str, &str)| {
            let kind =
                FieldType::parse(kind).ok_or_else(|| format!("there is no type '{kind}'"))?;
            Ok(Field { name: (*name).to_owned(), kind, doc: None })
        };
        let mut patch = gristmill_core::SettingsPatch::default();
        for (name, value) in self.settings {
            settings::set(&mut patch, name, value)?;
        }
        let said = self.settings.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Ok(QueueContract {
            number: self.number,
            name: QueueName::new(self.name).map_err(|error| error.to_string())?,
            doc: None,
            retired: Vec::new(),
            fields: self.fields.iter().map(field).collect::<Result<_, String>>()?,
            settings: patch,
            said: said.collect(),
        })
    }
}

/// The fields of a queue's payloads, as a struct.
pub trait Fields: Sized {
    /// The queue.
    const SPEC: QueueSpec;

    /// Writes every field.
    fn write(&self, map: &mut MapWriter);

    /// Reads the fields it knows and skips the others.
    ///
    /// # Errors
    /// When a field is missing or of another type.
    fn read(map: &mut MapReader<'_>) -> Result<Self, Wrong>;
}

/// The fields as a payload, in MessagePack.
///
/// # Errors
/// When a value has no wire form: a timestamp in the year 10000.
pub fn encode(fields: &impl Fields) -> Result<Payload, Wrong> {
    let mut map = MapWriter::new();
    fields.write(&mut map);
    map.finish().map(Payload::msgpack)
}

/// The fields of a payload, in MessagePack or JSON.
///
/// # Errors
/// When the payload is of another form or lacks a field.
pub fn decode<T: Fields>(payload: &Payload) -> Result<T, Wrong> {
    read(payload, T::read)
}

/// Opens a payload, has it read, and looks that nothing is left.
pub(crate) fn read<T>(
    payload: &Payload,
    read: impl FnOnce(&mut MapReader<'_>) -> Result<T, Wrong>,
) -> Result<T, Wrong> {
    match payload.encoding {
        Encoding::Msgpack => {
            let mut map = MapReader::packed(&payload.bytes)?;
            let fields = read(&mut map)?;
            map.finish()?;
            Ok(fields)
        }
        Encoding::Json => {
            let value = serde_json::from_slice(&payload.bytes);
            let value =
                value.map_err(|error| Wrong::new(format!("the payload is not JSON: {error}")))?;
            let Value::Object(map) = &value else {
                return Err(super::json::not(&value, "an object of fields"));
            };
            read(&mut MapReader::json(map))
        }
        Encoding::Raw => Err(Wrong::new("the payload is raw: a contract reads msgpack and json")),
    }
}
