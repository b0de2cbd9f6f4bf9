//! Numbers, texts, times, and several of something.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gristmill_core::{Kept, Payload, QueueName, ScheduleName, TaskId, Timestamp, Token, WorkerId};
use serde_json::{Value, json};

use super::{Fault, Read, Wire, fields, say, take};

macro_rules! numbers {
    ($($type:ty),+) => {$(
        impl Wire for $type {
            fn write(&self) -> Value {
                json!(self)
            }

            fn read(value: Value) -> Read<Self> {
                let number = value.as_i64().and_then(|n| n.try_into().ok());
                let number = number.or_else(|| value.as_u64().and_then(|n| n.try_into().ok()));
                number.ok_or_else(|| Fault::new(concat!("it is no number of kind ", stringify!($type))))
            }
        }
    )+};
}
numbers!(i16, i64, u32, u64, usize);

impl Wire for bool {
    fn write(&self) -> Value {
        Value::Bool(*self)
    }

    fn read(value: Value) -> Read<Self> {
        value.as_bool().ok_or_else(|| Fault::new("it is neither true nor false"))
    }
}

impl Wire for String {
    fn write(&self) -> Value {
        Value::String(self.clone())
    }

    fn read(value: Value) -> Read<Self> {
        match value {
            Value::String(text) => Ok(text),
            _ => Err(Fault::new("it is no text")),
        }
    }
}

impl<T: Wire> Wire for Option<T> {
    fn write(&self) -> Value {
        self.as_ref().map_or(Value::Null, Wire::write)
    }

    fn read(value: Value) -> Read<Self> {
        if value.is_null() { Ok(None) } else { T::read(value).map(Some) }
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn write(&self) -> Value {
        Value::Array(self.iter().map(Wire::write).collect())
    }

    fn read(value: Value) -> Read<Self> {
        let Value::Array(all) = value else { return Err(Fault::new("it is no list")) };
        let each = all.into_iter().enumerate();
        each.map(|(at, one)| T::read(one).map_err(|fault| fault.within(&format!("[{at}]"))))
            .collect()
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn write(&self) -> Value {
        Value::Array(vec![self.0.write(), self.1.write()])
    }

    fn read(value: Value) -> Read<Self> {
        let pair = match value {
            Value::Array(all) => <[Value; 2]>::try_from(all).ok(),
            _ => None,
        };
        let [first, second] = pair.ok_or_else(|| Fault::new("it is no pair"))?;
        Ok((A::read(first)?, B::read(second)?))
    }
}

/// Nothing to say.
impl Wire for () {
    fn write(&self) -> Value {
        json!({})
    }

    fn read(_: Value) -> Read<Self> {
        Ok(())
    }
}

/// Whole seconds and the nanoseconds beside them: a wait for ever is one too.
impl Wire for Duration {
    fn write(&self) -> Value {
        json!([self.as_secs(), self.subsec_nanos()])
    }

    fn read(value: Value) -> Read<Self> {
        let (seconds, nanos) = <(u64, u32)>::read(value)?;
        if nanos >= 1_000_000_000 {
            return Err(Fault::new("it has over a second of nanoseconds"));
        }
        Ok(Duration::new(seconds, nanos))
    }
}

/// Microseconds since 1970.
impl Wire for Timestamp {
    fn write(&self) -> Value {
        self.as_micros().write()
    }

    fn read(value: Value) -> Read<Self> {
        i64::read(value).map(Timestamp::from_micros)
    }
}

impl Wire for TaskId {
    fn write(&self) -> Value {
        self.0.write()
    }

    fn read(value: Value) -> Read<Self> {
        i64::read(value).map(TaskId)
    }
}

impl Wire for Token {
    fn write(&self) -> Value {
        Value::String(self.to_string())
    }

    fn read(value: Value) -> Read<Self> {
        String::read(value)?.parse().map_err(|error| Fault::new(format!("{error}")))
    }
}

macro_rules! names {
    ($($type:ident by $make:expr),+ $(,)?) => {$(
        impl Wire for $type {
            fn write(&self) -> Value {
                Value::String(self.to_string())
            }

            fn read(value: Value) -> Read<Self> {
                $make(&String::read(value)?)
            }
        }
    )+};
}
names! {
    QueueName by |text: &str| QueueName::new(text).map_err(|error| Fault::new(error.to_string())),
    ScheduleName by |text: &str| ScheduleName::new(text).map_err(|error| Fault::new(error.to_string())),
    // Whatever somebody called himself: what is stored is shown as it is.
    WorkerId by |text: &str| Ok(WorkerId::stored(text)),
}

fn bytes(bytes: &[u8]) -> Value {
    Value::String(STANDARD.encode(bytes))
}

fn read_bytes(value: Value) -> Read<Vec<u8>> {
    let text = String::read(value)?;
    STANDARD.decode(text).map_err(|error| Fault::new(format!("it is no base64: {error}")))
}

/// Any bytes, in base64.
struct Bytes(Vec<u8>);

impl Wire for Bytes {
    fn write(&self) -> Value {
        bytes(&self.0)
    }

    fn read(value: Value) -> Read<Self> {
        read_bytes(value).map(Bytes)
    }
}

impl Wire for Kept {
    fn write(&self) -> Value {
        bytes(self)
    }

    fn read(value: Value) -> Read<Self> {
        read_bytes(value).map(Kept::from)
    }
}

impl Wire for Payload {
    fn write(&self) -> Value {
        let mut said = serde_json::Map::new();
        say(&mut said, "encoding", &self.encoding);
        said.insert("bytes".to_owned(), bytes(&self.bytes));
        Value::Object(said)
    }

    fn read(value: Value) -> Read<Self> {
        let mut said = fields(value)?;
        let Bytes(bytes) = take(&mut said, "bytes")?;
        Ok(Payload { bytes: bytes.into(), encoding: take(&mut said, "encoding")? })
    }
}
