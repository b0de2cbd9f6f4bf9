//! MessagePack, read: never past the end, never deeper than the stack allows,
//! and no memory is reserved for what is only promised.

use gristmill_core::Timestamp;
use rmp::Marker;
use rmp::decode::{self, NumValueReadError, ValueReadError};

use super::Wrong;

/// MessagePack that is being read.
#[derive(Debug)]
pub struct Unpacker<'a> {
    rest: &'a [u8],
}

impl<'a> Unpacker<'a> {
    /// From its beginning.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Unpacker { rest: bytes }
    }

    /// How many bytes are left.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.rest.len()
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Wrong> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(cut_off)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array_of<const N: usize>(&mut self) -> Result<[u8; N], Wrong> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(cut_off)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn marker(&mut self) -> Result<Marker, Wrong> {
        self.array_of().map(|[marker]| Marker::from_u8(marker))
    }

    fn peek(&self) -> Result<Marker, Wrong> {
        self.rest.first().map(|marker| Marker::from_u8(*marker)).ok_or_else(cut_off)
    }

    /// A length of so many bytes.
    fn len(&mut self, bytes: usize) -> Result<usize, Wrong> {
        let len = self.take(bytes)?.iter().fold(0u64, |len, byte| len << 8 | u64::from(*byte));
        usize::try_from(len).map_err(|_| cut_off())
    }

    /// Whether nil comes next; if so it is passed over.
    pub(super) fn nil(&mut self) -> Result<bool, Wrong> {
        let nil = self.peek()? == Marker::Null;
        if nil {
            self.marker()?;
        }
        Ok(nil)
    }

    pub(super) fn boolean(&mut self) -> Result<bool, Wrong> {
        decode::read_bool(&mut self.rest).map_err(wanted("a bool"))
    }

    pub(super) fn int(&mut self) -> Result<i64, Wrong> {
        let mut again = self.rest;
        decode::read_int(&mut self.rest).map_err(|error| match error {
            NumValueReadError::TypeMismatch(marker) => not(marker, "an int64"),
            NumValueReadError::OutOfRange => match decode::read_u64(&mut again) {
                Ok(value) => Wrong::new(format!("{value} is more than an int64 holds")),
                Err(_) => cut_off(),
            },
            _ => cut_off(),
        })
    }

    pub(super) fn float(&mut self) -> Result<f64, Wrong> {
        let marker = self.peek()?;
        match marker {
            Marker::F32 => {
                let value = decode::read_f32(&mut self.rest);
                value.map(f64::from).map_err(wanted("a float64"))
            }
            Marker::F64 => decode::read_f64(&mut self.rest).map_err(wanted("a float64")),
            // JavaScript writes 5.0 as 5.
            _ if is_whole(marker) => super::value::whole(self.int()?),
            other => Err(not(other, "a float64")),
        }
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Wrong> {
        let len = decode::read_str_len(&mut self.rest).map_err(wanted("a string"))?;
        let bytes = self.take(usize::try_from(len).map_err(|_| cut_off())?)?;
        std::str::from_utf8(bytes).map_err(|_| Wrong::new("the text is not UTF-8"))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Wrong> {
        let len = decode::read_bin_len(&mut self.rest).map_err(wanted("bytes"))?;
        self.take(usize::try_from(len).map_err(|_| cut_off())?)
    }

    /// An instant: as text, or as the extension type that MessagePack has for
    /// it.
    pub(super) fn timestamp(&mut self) -> Result<Timestamp, Wrong> {
        let marker = self.peek()?;
        if matches!(marker, Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32) {
            let text = self.text()?;
            return super::value::instant(text);
        }
        let len = match marker {
            Marker::FixExt4 => 4,
            Marker::FixExt8 => 8,
            Marker::Ext8 => 12,
            other => return Err(not(other, "a timestamp")),
        };
        self.marker()?;
        if marker == Marker::Ext8 && self.array_of()? != [12] || self.array_of()? != [0xff] {
            return Err(not(marker, "a timestamp"));
        }
        let (seconds, nanos) = match len {
            4 => (i64::from(u32::from_be_bytes(self.array_of()?)), 0),
            8 => {
                let both = u64::from_be_bytes(self.array_of()?);
                let seconds = i64::try_from(both & 0x3_ffff_ffff).unwrap_or_default();
                (seconds, u32::try_from(both >> 34).unwrap_or_default())
            }
            _ => {
                let nanos = u32::from_be_bytes(self.array_of()?);
                (i64::from_be_bytes(self.array_of()?), nanos)
            }
        };
        let micros = seconds.checked_mul(1_000_000);
        let micros = micros.and_then(|micros| micros.checked_add(i64::from(nanos / 1_000)));
        let instant = micros.map(Timestamp::from_micros);
        instant
            .filter(|instant| super::value::is_date(*instant))
            .ok_or_else(|| Wrong::new("the timestamp is in no year that has four digits"))
    }

    /// How many elements follow. No more than there are bytes for.
    pub(super) fn array(&mut self) -> Result<usize, Wrong> {
        let len = decode::read_array_len(&mut self.rest).map_err(wanted("a list"))?;
        let len = usize::try_from(len).map_err(|_| cut_off())?;
        if len > self.left() { Err(cut_off()) } else { Ok(len) }
    }

    /// How many keys with values follow.
    pub(super) fn map(&mut self) -> Result<usize, Wrong> {
        let len = decode::read_map_len(&mut self.rest).map_err(wanted("a map of fields"))?;
        usize::try_from(len).map_err(|_| cut_off())
    }

    /// Passes one value over, whatever it is. Without recursion: a value may
    /// be nested as deep as it is long.
    pub(super) fn skip(&mut self) -> Result<(), Wrong> {
        let mut open = 1usize;
        while open > 0 {
            open -= 1;
            let marker = self.marker()?;
            let (bytes, inside) = match marker {
                Marker::FixPos(_) | Marker::FixNeg(_) | Marker::Null => (0, 0),
                Marker::True | Marker::False => (0, 0),
                Marker::U8 | Marker::I8 => (1, 0),
                Marker::U16 | Marker::I16 => (2, 0),
                Marker::U32 | Marker::I32 | Marker::F32 => (4, 0),
                Marker::U64 | Marker::I64 | Marker::F64 => (8, 0),
                Marker::FixStr(len) => (usize::from(len), 0),
                Marker::Bin8 | Marker::Str8 => (self.len(1)?, 0),
                Marker::Bin16 | Marker::Str16 => (self.len(2)?, 0),
                Marker::Bin32 | Marker::Str32 => (self.len(4)?, 0),
                // An extension has its type before its bytes.
                Marker::FixExt1 => (2, 0),
                Marker::FixExt2 => (3, 0),
                Marker::FixExt4 => (5, 0),
                Marker::FixExt8 => (9, 0),
                Marker::FixExt16 => (17, 0),
                Marker::Ext8 => (self.len(1)?.saturating_add(1), 0),
                Marker::Ext16 => (self.len(2)?.saturating_add(1), 0),
                Marker::Ext32 => (self.len(4)?.saturating_add(1), 0),
                Marker::FixArray(len) => (0, usize::from(len)),
                Marker::Array16 => (0, self.len(2)?),
                Marker::Array32 => (0, self.len(4)?),
                Marker::FixMap(len) => (0, usize::from(len) * 2),
                Marker::Map16 => (0, self.len(2)?.saturating_mul(2)),
                Marker::Map32 => (0, self.len(4)?.saturating_mul(2)),
                Marker::Reserved => return Err(Wrong::new("0xc1 is no MessagePack")),
            };
            self.take(bytes)?;
            open = open.saturating_add(inside);
            if open > self.left() {
                return Err(cut_off());
            }
        }
        Ok(())
    }
}

fn cut_off() -> Wrong {
    Wrong::new("the payload is cut off")
}

/// What a failed reading means, where this was wanted.
fn wanted(what: &'static str) -> impl Fn(ValueReadError) -> Wrong {
    move |error| match error {
        ValueReadError::TypeMismatch(marker) => not(marker, what),
        _ => cut_off(),
    }
}

const fn is_whole(marker: Marker) -> bool {
    use Marker::{FixNeg, FixPos, I8, I16, I32, I64, U8, U16, U32, U64};
    matches!(marker, FixPos(_) | FixNeg(_) | U8 | U16 | U32 | U64 | I8 | I16 | I32 | I64)
}

fn not(marker: Marker, wanted: &str) -> Wrong {
    use Marker::{
        Array16, Array32, Bin8, Bin16, Bin32, F32, F64, False, FixArray, FixMap, FixStr, Map16,
        Map32, Null, Reserved, Str8, Str16, Str32, True,
    };
    let given = match marker {
        _ if is_whole(marker) => "a whole number",
        FixMap(_) | Map16 | Map32 => "a map",
        FixArray(_) | Array16 | Array32 => "a list",
        FixStr(_) | Str8 | Str16 | Str32 => "a string",
        Null => "nil",
        Reserved => "no MessagePack",
        True | False => "a bool",
        Bin8 | Bin16 | Bin32 => "bytes",
        F32 | F64 => "a number with a fraction",
        _ => "an extension",
    };
    Wrong::new(format!("{given} was given and {wanted} is wanted"))
}
