//! How far the service's wake-ups are, as far as it was heard.
//!
//! A mark is taken without asking: it is the last one that came with an answer. What
//! happened since then ends the next wait at once, so nothing is missed; at worst
//! somebody looks once for nothing. Marks of a service that was started anew begin again,
//! so they count in generations.

use gristmill_core::WakeMark;

/// Bits of a mark that are the service's number.
const BITS: u32 = 48;

/// How far wake-ups are.
#[derive(Debug, Default)]
pub(super) struct Marks {
    epoch: String,
    generation: u64,
    number: u64,
}

impl Marks {
    /// What an answer said.
    pub(super) fn hear(&mut self, said: Option<&str>) {
        let Some((epoch, number)) = said.and_then(|said| said.rsplit_once('.')) else { return };
        let Ok(number) = number.parse::<u64>() else { return };
        if epoch != self.epoch {
            self.generation += 1;
            self.epoch = epoch.to_owned();
            self.number = number;
        }
        // Answers may come in another order than they were sent.
        self.number = self.number.max(number);
    }

    /// The point to wait from.
    pub(super) fn mark(&self) -> WakeMark {
        WakeMark::at((self.generation << BITS) | (self.number & ((1 << BITS) - 1)))
    }

    /// A mark as the service says it; nothing when it is of an earlier service.
    pub(super) fn told(&self, mark: WakeMark) -> Option<String> {
        let (generation, number) = (mark.number() >> BITS, mark.number() & ((1 << BITS) - 1));
        (generation == self.generation).then(|| format!("{}.{number}", self.epoch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_of_a_service_that_is_gone_is_not_told_to_the_next() {
        let mut marks = Marks::default();
        for nonsense in [None, Some(""), Some("a"), Some("a.b"), Some("a.-1")] {
            marks.hear(nonsense);
        }
        assert_eq!(marks.mark(), WakeMark::default());
        marks.hear(Some("one.7"));
        let early = marks.mark();
        marks.hear(Some("one.9"));
        marks.hear(Some("one.8"));
        assert_eq!(marks.told(early).as_deref(), Some("one.7"));
        assert_eq!(marks.told(marks.mark()).as_deref(), Some("one.9"));
        marks.hear(Some("two.1"));
        assert!(marks.mark() > early);
        assert_eq!(marks.told(early), None);
        assert_eq!(marks.told(marks.mark()).as_deref(), Some("two.1"));
    }
}
