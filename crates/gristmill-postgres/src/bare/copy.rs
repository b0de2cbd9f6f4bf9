//! Rows as `COPY … (FORMAT binary)` reads them. Written here rather than by the
//! driver's writer, which sends four kilobytes at a time: the limit must not be
//! held up by its messenger.

use bytes::{BufMut, Bytes, BytesMut};

/// What every stream begins with: the signature, no flags, no extension.
pub(super) const BEGIN: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What every stream ends with: a row of minus one columns.
pub(super) const END: &[u8] = &[0xff, 0xff];

/// Rows of a key and a payload.
pub(super) fn rows(keys: &[Option<String>], payload: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(keys.len() * (payload.len() + 32));
    for key in keys {
        out.put_i16(2);
        field(&mut out, key.as_deref().map(str::as_bytes));
        field(&mut out, Some(payload));
    }
    out.freeze()
}

fn field(out: &mut BytesMut, value: Option<&[u8]>) {
    let length = value.map_or(Ok(-1), |value| i32::try_from(value.len()));
    // Longer than the format allows: the server refuses the row.
    out.put_i32(length.unwrap_or(i32::MAX));
    out.put_slice(value.unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_key_has_the_length_minus_one() {
        let bytes = rows(&[None, Some("k".to_owned())], b"xy");
        let none = [0, 2, 255, 255, 255, 255, 0, 0, 0, 2, b'x', b'y'];
        let some = [0, 2, 0, 0, 0, 1, b'k', 0, 0, 0, 2, b'x', b'y'];
        assert_eq!(bytes, [none.as_slice(), some.as_slice()].concat());
    }
}
