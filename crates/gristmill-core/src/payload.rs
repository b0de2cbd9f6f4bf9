//! The task's data: bytes kept as given, and how they are encoded.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

/// How a payload's bytes are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Encoding {
    /// JSON text.
    #[default]
    Json,
    /// MessagePack, maps with string keys.
    Msgpack,
    /// Anything else; only the handler knows.
    Raw,
}

impl Encoding {
    /// All encodings.
    pub const ALL: [Encoding; 3] = [Encoding::Json, Encoding::Msgpack, Encoding::Raw];

    /// Its name, the same on every surface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Encoding::Json => "json",
            Encoding::Msgpack => "msgpack",
            Encoding::Raw => "raw",
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Encoding {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|e| e.as_str() == name)
            .ok_or_else(|| format!("'{name}' is not an encoding: use json, msgpack or raw"))
    }
}

/// Bytes and their encoding. Stores keep both as given and never look inside.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Payload {
    /// The bytes, exactly as they were put.
    pub bytes: Bytes,
    /// How to read them.
    pub encoding: Encoding,
}

impl Payload {
    /// JSON text.
    #[must_use]
    pub fn json(text: impl Into<Bytes>) -> Self {
        Payload { bytes: text.into(), encoding: Encoding::Json }
    }

    /// MessagePack bytes.
    #[must_use]
    pub fn msgpack(bytes: impl Into<Bytes>) -> Self {
        Payload { bytes: bytes.into(), encoding: Encoding::Msgpack }
    }

    /// Bytes of any kind.
    #[must_use]
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Payload { bytes: bytes.into(), encoding: Encoding::Raw }
    }

    /// What a remembered caller's id is compared by: same digest, same put.
    #[must_use]
    pub fn digest(&self) -> [u8; 16] {
        use sha2::Digest;
        let mut hash = sha2::Sha256::new();
        hash.update(self.encoding.as_str());
        hash.update([0]);
        hash.update(&self.bytes);
        let full = hash.finalize();
        let mut short = [0u8; 16];
        for (to, from) in short.iter_mut().zip(full.iter()) {
            *to = *from;
        }
        short
    }
}

/// Payloads may hold secrets: a debug line shows the size only.
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({}, {} bytes)", self.encoding, self.bytes.len())
    }
}
