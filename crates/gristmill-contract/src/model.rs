//! A contract: numbered queues, and the fields of their payloads.

use std::fmt;

use gristmill_core::{QueueName, SettingsPatch};

/// What a contract says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contract {
    /// The queues, in the order of the file.
    pub queues: Vec<QueueContract>,
}

impl Contract {
    /// The queue of this name.
    #[must_use]
    pub fn queue(&self, name: &str) -> Option<&QueueContract> {
        self.queues.iter().find(|queue| queue.name.as_str() == name)
    }
}

/// A queue as its contract has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueContract {
    /// Its number, 1 to 9999.
    pub number: u32,
    /// Its name.
    pub name: QueueName,
    /// What it is for, in the contract's words.
    pub doc: Option<String>,
    /// What its payloads hold.
    pub fields: Vec<Field>,
    /// What payloads of earlier contracts may hold beside that. Only stores say
    /// so: a contract's file has just its fields.
    pub retired: Vec<Field>,
    /// Its settings.
    pub settings: SettingsPatch,
    /// The same settings as they were said: names and texts.
    pub said: Vec<(String, String)>,
}

impl QueueContract {
    /// The field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// This contract as it follows on another: the fields that are gone stay
    /// remembered with their types, for standing tasks may hold them.
    #[must_use]
    pub fn following(&self, old: &QueueContract) -> Self {
        let gone = old.fields.iter().chain(&old.retired);
        let retired = gone.filter(|field| self.field(&field.name).is_none()).cloned().collect();
        QueueContract { retired, ..self.clone() }
    }
}

/// A field of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name: the key in the payload's map.
    pub name: String,
    /// What it holds.
    pub kind: FieldType,
    /// What it is for, in the contract's words.
    pub doc: Option<String>,
}

/// What a field holds: a scalar or a list of them, and whether it may be
/// missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FieldType {
    /// The scalar, or what the list is of.
    pub scalar: Scalar,
    /// `[]` in front.
    pub list: bool,
    /// `?` behind.
    pub optional: bool,
}

/// A single value's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scalar {
    /// A whole number of 64 bits.
    Int,
    /// The same under the name that says so.
    Int64,
    /// A text in UTF-8.
    String,
    /// True or false.
    Bool,
    /// Bytes of any kind.
    Bytes,
    /// A number of 64 bits with a fraction.
    Float64,
    /// An instant in UTC, to the microsecond.
    Timestamp,
}

impl Scalar {
    /// All of them.
    pub const ALL: [Scalar; 7] = [
        Scalar::Int,
        Scalar::Int64,
        Scalar::String,
        Scalar::Bool,
        Scalar::Bytes,
        Scalar::Float64,
        Scalar::Timestamp,
    ];

    /// Its name in a contract.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Scalar::Int => "int",
            Scalar::Int64 => "int64",
            Scalar::String => "string",
            Scalar::Bool => "bool",
            Scalar::Bytes => "bytes",
            Scalar::Float64 => "float64",
            Scalar::Timestamp => "timestamp",
        }
    }

    /// Whether both have the same values and the same wire form.
    #[must_use]
    pub fn is_same(self, other: Scalar) -> bool {
        let one = |scalar| if scalar == Scalar::Int { Scalar::Int64 } else { scalar };
        one(self) == one(other)
    }
}

impl FieldType {
    /// A required scalar.
    #[must_use]
    pub const fn of(scalar: Scalar) -> Self {
        FieldType { scalar, list: false, optional: false }
    }

    /// Reads a type as a contract writes it: `string`, `[]int64`, `bytes?`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (rest, optional) = text.strip_suffix('?').map_or((text, false), |rest| (rest, true));
        let scalar = |name: &str| match name {
            "[]byte" => Some(Scalar::Bytes),
            name => Scalar::ALL.into_iter().find(|scalar| scalar.as_str() == name),
        };
        if let Some(scalar) = scalar(rest) {
            return Some(FieldType { scalar, list: false, optional });
        }
        let scalar = scalar(rest.strip_prefix("[]")?)?;
        Some(FieldType { scalar, list: true, optional })
    }

    /// Whether both have the same values and the same wire form, but for being
    /// optional.
    #[must_use]
    pub fn is_same(self, other: FieldType) -> bool {
        self.list == other.list && self.scalar.is_same(other.scalar)
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (list, optional) =
            (if self.list { "[]" } else { "" }, if self.optional { "?" } else { "" });
        write!(f, "{list}{}{optional}", self.scalar.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_read_as_it_is_shown() {
        for scalar in Scalar::ALL {
            for (list, optional) in [(false, false), (true, false), (false, true), (true, true)] {
                let kind = FieldType { scalar, list, optional };
                assert_eq!(FieldType::parse(&kind.to_string()), Some(kind));
            }
        }
        let bytes = Some(FieldType::of(Scalar::Bytes));
        assert_eq!(FieldType::parse("[]byte"), bytes);
        let many = Some(FieldType { scalar: Scalar::Bytes, list: true, optional: true });
        assert_eq!(FieldType::parse("[][]byte?"), many);
        for wrong in ["", "?", "[]", "String", "[][]int", "int??", "?int", "[]int[]", "byte"] {
            assert_eq!(FieldType::parse(wrong), None, "{wrong}");
        }
    }
}
