//! A task's checksum: what a worker is handed is what was put.
//!
//! SQLite notices a page that is torn or out of place, not a bit that flipped
//! inside a value. Each step maps states to states one to one, so an altered word
//! always shows; several altered ones go unseen once in 2⁶⁴ times. It is no
//! protection against somebody who means it.

use gristmill_core::Encoding;

use crate::row::encoding_number;

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The checksum of a payload.
pub(crate) fn of(encoding: Encoding, payload: &[u8]) -> i64 {
    let mut state = (payload.len() as u64) << 8 | encoding_number(encoding).cast_unsigned();
    let mut add = |word: u64| state = (state ^ word).wrapping_mul(STEP).rotate_left(29);
    let (words, rest) = payload.as_chunks::<8>();
    for word in words {
        add(u64::from_le_bytes(*word));
    }
    let mut last = [0u8; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    add(u64::from_le_bytes(last));
    state.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_shows() {
        for bytes in [1, 7, 8, 9, 100] {
            let payload: Vec<u8> = (0..bytes).collect();
            let sum = of(Encoding::Json, &payload);
            assert_ne!(sum, of(Encoding::Raw, &payload));
            assert_ne!(sum, of(Encoding::Json, &[&payload[..], &[0]].concat()));
            for bit in 0..payload.len() * 8 {
                let mut altered = payload.clone();
                altered[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(sum, of(Encoding::Json, &altered), "bit {bit} of {bytes} bytes");
            }
        }
    }
}
