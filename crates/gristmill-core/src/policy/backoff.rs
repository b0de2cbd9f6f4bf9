//! How long a task waits before its next attempt.

use std::time::Duration;

use crate::{Backoff, TaskId};

/// The wait after the attempt that had `returns` before it, at `spread` within
/// the jitter (0 up to, not including, 1).
#[must_use]
pub fn wait(backoff: &Backoff, returns: u32, spread: f64) -> Duration {
    let base = u64::try_from(backoff.base.as_micros()).unwrap_or(u64::MAX);
    let cap = u64::try_from(backoff.cap.as_micros()).unwrap_or(u64::MAX);
    // 2^63 is past any cap: saturate instead of shifting bits out.
    let grown = if returns >= 63 { u64::MAX } else { base.saturating_mul(1 << returns) };
    let longest = grown.min(cap);
    if !backoff.jitter {
        return Duration::from_micros(longest);
    }
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a year in microseconds fits 53 bits, and the product is never negative"
    )]
    let spread = (longest as f64 * spread.clamp(0.0, 1.0)) as u64;
    Duration::from_micros(spread)
}

/// Where within the jitter an attempt falls: even over all tasks, the same for
/// the same attempt. A store needs no dice, and two stores that are fed the
/// same history agree to the microsecond.
#[must_use]
pub fn spread(id: TaskId, claims: u32) -> f64 {
    let z = server_hash(id.0, u64::from(claims));
    #[expect(clippy::cast_precision_loss, reason = "53 bits are kept on purpose")]
    let even = (z >> 11) as f64 / (1u64 << 53) as f64;
    even
}

/// PostgreSQL's hash of a 64-bit number with a seed (`hashint8extended`, Bob
/// Jenkins' lookup3). Any even hash would do; with this one the server answers in
/// one call where others took numerics, a thousand times a settlement.
fn server_hash(number: i64, seed: u64) -> u64 {
    let bits = number.cast_unsigned();
    let high = halves(bits).0;
    // Equal for a number in 32 and in 64 bits.
    let folded = halves(bits).1 ^ if number >= 0 { high } else { !high };
    let start = 0x9e37_79b9_u32.wrapping_add(4).wrapping_add(3_923_095);
    let [mut a, mut b, mut c] = [start; 3];
    if seed != 0 {
        a = a.wrapping_add(halves(seed).0);
        b = b.wrapping_add(halves(seed).1);
        for (from_c, from_a, from_b) in [(4, 6, 8), (16, 19, 4)] {
            a = a.wrapping_sub(c) ^ c.rotate_left(from_c);
            c = c.wrapping_add(b);
            b = b.wrapping_sub(a) ^ a.rotate_left(from_a);
            a = a.wrapping_add(c);
            c = c.wrapping_sub(b) ^ b.rotate_left(from_b);
            b = b.wrapping_add(a);
        }
    }
    a = a.wrapping_add(folded);
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    u64::from(b) << 32 | u64::from(c)
}

/// The upper and the lower 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "each half is what is meant")]
const fn halves(bits: u64) -> (u32, u32) {
    ((bits >> 32) as u32, bits as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn never_longer_than_the_cap_and_grows_with_returns(
            base in 0u64..10_000_000, cap in 0u64..100_000_000_000,
            returns in 0u32..1_000_000, at in 0.0f64..1.0,
        ) {
            let backoff = Backoff {
                base: Duration::from_micros(base),
                cap: Duration::from_micros(cap),
                jitter: true,
            };
            let this = wait(&backoff, returns, at);
            prop_assert!(this <= backoff.cap);
            prop_assert!(this <= wait(&backoff, returns + 1, at));
            let exact = Backoff { jitter: false, ..backoff };
            prop_assert!(this <= wait(&exact, returns, at));
        }

        #[test]
        fn spread_stays_within_zero_and_one(id in 1i64.., claims in any::<u32>()) {
            let at = spread(TaskId(id), claims);
            prop_assert!((0.0..1.0).contains(&at));
        }
    }

    #[test]
    fn the_default_doubles_from_two_seconds_to_an_hour() {
        let exact = Backoff { jitter: false, ..Backoff::default() };
        assert_eq!(wait(&exact, 0, 0.5), Duration::from_secs(2));
        assert_eq!(wait(&exact, 3, 0.5), Duration::from_secs(16));
        assert_eq!(wait(&exact, 40, 0.5), Duration::from_secs(3600));
        assert_eq!(wait(&Backoff::default(), 0, 0.5), Duration::from_secs(1));
    }

    #[test]
    fn spread_is_even_enough_to_break_up_a_crowd() {
        let mut tenths = [0u32; 10];
        for id in 1..=10_000 {
            let tenth = (spread(TaskId(id), 1) * 10.0) as usize;
            tenths[tenth] += 1;
        }
        assert!(tenths.iter().all(|n| (900..1100).contains(n)), "{tenths:?}");
    }
}
