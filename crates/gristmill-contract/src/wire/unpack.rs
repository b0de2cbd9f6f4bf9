//! MessagePack, read: never past the end, never deeper than the stack allows,
//! and no memory is reserved for what is only promised.

use gristmill_core::Timestamp;

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

    fn marker(&mut self) -> Result<u8, Wrong> {
        self.array_of().map(|[marker]| marker)
    }

    fn peek(&self) -> Result<u8, Wrong> {
        self.rest.first().copied().ok_or_else(cut_off)
    }

    /// A length of so many bytes.
    fn len(&mut self, bytes: usize) -> Result<usize, Wrong> {
        let len = self.take(bytes)?.iter().fold(0u64, |len, byte| len << 8 | u64::from(*byte));
        usize::try_from(len).map_err(|_| cut_off())
    }

    /// Whether nil comes next; if so it is passed over.
    pub(super) fn nil(&mut self) -> Result<bool, Wrong> {
        let nil = self.peek()? == 0xc0;
        if nil {
            self.marker()?;
        }
        Ok(nil)
    }

    pub(super) fn boolean(&mut self) -> Result<bool, Wrong> {
        match self.peek()? {
            0xc2 | 0xc3 => Ok(self.marker()? == 0xc3),
            other => Err(not(other, "a bool")),
        }
    }

    pub(super) fn int(&mut self) -> Result<i64, Wrong> {
        let marker = self.peek()?;
        if !matches!(marker, 0x00..=0x7f | 0xcc..=0xd3 | 0xe0..=0xff) {
            return Err(not(marker, "an int64"));
        }
        self.marker()?;
        Ok(match marker {
            0xcc => i64::from(u8::from_be_bytes(self.array_of()?)),
            0xcd => i64::from(u16::from_be_bytes(self.array_of()?)),
            0xce => i64::from(u32::from_be_bytes(self.array_of()?)),
            0xcf => {
                let value = u64::from_be_bytes(self.array_of()?);
                let over = |_| Wrong::new(format!("{value} is more than an int64 holds"));
                i64::try_from(value).map_err(over)?
            }
            0xd0 => i64::from(i8::from_be_bytes(self.array_of()?)),
            0xd1 => i64::from(i16::from_be_bytes(self.array_of()?)),
            0xd2 => i64::from(i32::from_be_bytes(self.array_of()?)),
            0xd3 => i64::from_be_bytes(self.array_of()?),
            small => i64::from(i8::from_be_bytes([small])),
        })
    }

    pub(super) fn float(&mut self) -> Result<f64, Wrong> {
        match self.peek()? {
            0xca => {
                self.marker()?;
                Ok(f64::from(f32::from_be_bytes(self.array_of()?)))
            }
            0xcb => {
                self.marker()?;
                Ok(f64::from_be_bytes(self.array_of()?))
            }
            // JavaScript writes 5.0 as 5.
            0x00..=0x7f | 0xcc..=0xd3 | 0xe0..=0xff => super::value::whole(self.int()?),
            other => Err(not(other, "a float64")),
        }
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Wrong> {
        let marker = self.peek()?;
        let len = match marker {
            0xa0..=0xbf => {
                self.marker()?;
                usize::from(marker & 0x1f)
            }
            0xd9..=0xdb => {
                self.marker()?;
                self.len(1 << (marker - 0xd9))?
            }
            other => return Err(not(other, "a string")),
        };
        std::str::from_utf8(self.take(len)?).map_err(|_| Wrong::new("the text is not UTF-8"))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Wrong> {
        let marker = self.peek()?;
        if !(0xc4..=0xc6).contains(&marker) {
            return Err(not(marker, "bytes"));
        }
        self.marker()?;
        let len = self.len(1 << (marker - 0xc4))?;
        self.take(len)
    }

    /// An instant: as text, or as the extension type that MessagePack has for
    /// it.
    pub(super) fn timestamp(&mut self) -> Result<Timestamp, Wrong> {
        let marker = self.peek()?;
        if matches!(marker, 0xa0..=0xbf | 0xd9..=0xdb) {
            let text = self.text()?;
            return super::value::instant(text);
        }
        let len = match marker {
            0xd6 => 4,
            0xd7 => 8,
            0xc7 => 12,
            other => return Err(not(other, "a timestamp")),
        };
        self.marker()?;
        if marker == 0xc7 && self.marker()? != 12 || self.marker()? != 0xff {
            return Err(Wrong::new("an extension was given and a timestamp is wanted"));
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
        let marker = self.peek()?;
        let len = match marker {
            0x90..=0x9f => {
                self.marker()?;
                usize::from(marker & 0x0f)
            }
            0xdc | 0xdd => {
                self.marker()?;
                self.len(2 << (marker - 0xdc))?
            }
            other => return Err(not(other, "a list")),
        };
        if len > self.left() { Err(cut_off()) } else { Ok(len) }
    }

    /// How many keys with values follow.
    pub(super) fn map(&mut self) -> Result<usize, Wrong> {
        let marker = self.peek()?;
        match marker {
            0x80..=0x8f => {
                self.marker()?;
                Ok(usize::from(marker & 0x0f))
            }
            0xde | 0xdf => {
                self.marker()?;
                self.len(2 << (marker - 0xde))
            }
            other => Err(not(other, "a map of fields")),
        }
    }

    /// Passes one value over, whatever it is. Without recursion: a value may
    /// be nested as deep as it is long.
    pub(super) fn skip(&mut self) -> Result<(), Wrong> {
        let mut open = 1usize;
        while open > 0 {
            open -= 1;
            let marker = self.marker()?;
            let (bytes, inside) = match marker {
                0x00..=0x7f | 0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => (0, 0),
                0x80..=0x8f => (0, usize::from(marker & 0x0f) * 2),
                0x90..=0x9f => (0, usize::from(marker & 0x0f)),
                0xa0..=0xbf => (usize::from(marker & 0x1f), 0),
                0xc1 => return Err(Wrong::new("0xc1 is no MessagePack")),
                0xc4 | 0xd9 => (self.len(1)?, 0),
                0xc5 | 0xda => (self.len(2)?, 0),
                0xc6 | 0xdb => (self.len(4)?, 0),
                0xc7 => (self.len(1)?.saturating_add(1), 0),
                0xc8 => (self.len(2)?.saturating_add(1), 0),
                0xc9 => (self.len(4)?.saturating_add(1), 0),
                0xcc | 0xd0 => (1, 0),
                0xcd | 0xd1 | 0xd4 => (2, 0),
                0xd5 => (3, 0),
                0xca | 0xce | 0xd2 => (4, 0),
                0xd6 => (5, 0),
                0xcb | 0xcf | 0xd3 => (8, 0),
                0xd7 => (9, 0),
                0xd8 => (17, 0),
                0xdc => (0, self.len(2)?),
                0xdd => (0, self.len(4)?),
                0xde => (0, self.len(2)?.saturating_mul(2)),
                0xdf => (0, self.len(4)?.saturating_mul(2)),
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

fn not(marker: u8, wanted: &str) -> Wrong {
    let given = match marker {
        0x00..=0x7f | 0xcc..=0xd3 | 0xe0..=0xff => "a whole number",
        0x80..=0x8f | 0xde | 0xdf => "a map",
        0x90..=0x9f | 0xdc | 0xdd => "a list",
        0xa0..=0xbf | 0xd9..=0xdb => "a string",
        0xc0 => "nil",
        0xc1 => "no MessagePack",
        0xc2 | 0xc3 => "a bool",
        0xc4..=0xc6 => "bytes",
        0xc7..=0xc9 | 0xd4..=0xd8 => "an extension",
        0xca | 0xcb => "a number with a fraction",
    };
    Wrong::new(format!("{given} was given and {wanted} is wanted"))
}
