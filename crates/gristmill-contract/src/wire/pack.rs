//! MessagePack, written: each value in its shortest form.

/// Begins a text.
pub(super) fn text(to: &mut Vec<u8>, value: &str) {
    let bytes = value.as_bytes();
    match bytes.len() {
        len @ 0..=31 => to.push(0xa0 | low(len)),
        len @ 32..=0xff => to.extend([0xd9, low(len)]),
        len @ 0x100..=0xffff => sized16(to, 0xda, len),
        len => sized32(to, 0xdb, len),
    }
    to.extend_from_slice(bytes);
}

pub(super) fn bytes(to: &mut Vec<u8>, value: &[u8]) {
    match value.len() {
        len @ 0..=0xff => to.extend([0xc4, low(len)]),
        len @ 0x100..=0xffff => sized16(to, 0xc5, len),
        len => sized32(to, 0xc6, len),
    }
    to.extend_from_slice(value);
}

pub(super) fn array(to: &mut Vec<u8>, len: usize) {
    match len {
        0..=15 => to.push(0x90 | low(len)),
        16..=0xffff => sized16(to, 0xdc, len),
        _ => sized32(to, 0xdd, len),
    }
}

pub(super) fn map(to: &mut Vec<u8>, len: usize) {
    match len {
        0..=15 => to.push(0x80 | low(len)),
        16..=0xffff => sized16(to, 0xde, len),
        _ => sized32(to, 0xdf, len),
    }
}

pub(super) fn boolean(to: &mut Vec<u8>, value: bool) {
    to.push(if value { 0xc3 } else { 0xc2 });
}

pub(super) fn float(to: &mut Vec<u8>, value: f64) {
    to.push(0xcb);
    to.extend(value.to_be_bytes());
}

pub(super) fn int(to: &mut Vec<u8>, value: i64) {
    if let Ok(small) = i8::try_from(value) {
        if small < -32 {
            to.push(0xd0);
        }
        to.push(small.to_be_bytes()[0]);
    } else if let Ok(value) = u8::try_from(value) {
        to.extend([0xcc, value]);
    } else if let Ok(value) = u16::try_from(value) {
        to.push(0xcd);
        to.extend(value.to_be_bytes());
    } else if let Ok(value) = u32::try_from(value) {
        to.push(0xce);
        to.extend(value.to_be_bytes());
    } else if let Ok(value) = u64::try_from(value) {
        to.push(0xcf);
        to.extend(value.to_be_bytes());
    } else if let Ok(value) = i16::try_from(value) {
        to.push(0xd1);
        to.extend(value.to_be_bytes());
    } else if let Ok(value) = i32::try_from(value) {
        to.push(0xd2);
        to.extend(value.to_be_bytes());
    } else {
        to.push(0xd3);
        to.extend(value.to_be_bytes());
    }
}

fn low(len: usize) -> u8 {
    u8::try_from(len & 0xff).unwrap_or_default()
}

fn sized16(to: &mut Vec<u8>, marker: u8, len: usize) {
    to.push(marker);
    to.extend(u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes());
}

/// Over four gibibytes no payload goes: stores refuse it long before.
fn sized32(to: &mut Vec<u8>, marker: u8, len: usize) {
    to.push(marker);
    to.extend(u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
}
