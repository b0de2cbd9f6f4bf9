//! Random numbers by seed: the same seed and name throw the same.

/// A client's dice.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The dice of this name in a run of this seed.
    #[must_use]
    pub fn of(seed: u64, name: &str) -> Self {
        // FNV: what it mixes need not be secret, only the same each time.
        let mixed = name.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut dice = Dice(mixed | 1);
        for _ in 0..8 {
            dice.throw();
        }
        dice
    }

    /// The next number.
    pub fn throw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    /// One of the numbers below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.throw() % n.max(1) as u64).unwrap_or(0)
    }

    /// True once in `n` throws.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of these.
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        of.get(self.below(of.len())).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::Dice;

    #[test]
    fn the_same_seed_throws_the_same_and_another_does_not() {
        let throws = |seed, name| {
            let mut dice = Dice::of(seed, name);
            (0..20).map(|_| dice.below(6)).collect::<Vec<_>>()
        };
        assert_eq!(throws(1, "a"), throws(1, "a"));
        assert_ne!(throws(1, "a"), throws(2, "a"));
        assert_ne!(throws(1, "a"), throws(1, "b"));
    }
}
