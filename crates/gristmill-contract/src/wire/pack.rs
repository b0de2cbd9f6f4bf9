//! MessagePack, written: each value in its shortest form.
//!
//! Writing to memory cannot fail, so there is nothing to tell. Over four gibibytes no
//! payload goes: stores refuse it long before.

use rmp::encode;

pub(super) fn text(to: &mut Vec<u8>, value: &str) {
    let _ = encode::write_str(to, value);
}

pub(super) fn bytes(to: &mut Vec<u8>, value: &[u8]) {
    let _ = encode::write_bin(to, value);
}

pub(super) fn array(to: &mut Vec<u8>, len: usize) {
    let _ = encode::write_array_len(to, u32::try_from(len).unwrap_or(u32::MAX));
}

pub(super) fn map(to: &mut Vec<u8>, len: usize) {
    let _ = encode::write_map_len(to, u32::try_from(len).unwrap_or(u32::MAX));
}

pub(super) fn boolean(to: &mut Vec<u8>, value: bool) {
    let _ = encode::write_bool(to, value);
}

pub(super) fn float(to: &mut Vec<u8>, value: f64) {
    let _ = encode::write_f64(to, value);
}

pub(super) fn int(to: &mut Vec<u8>, value: i64) {
    let _ = encode::write_sint(to, value);
}
