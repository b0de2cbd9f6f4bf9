//! The last 4 KiB of what a program said.

/// Most bytes kept.
const KEPT: usize = 4096;

/// The end of a stream of bytes.
#[derive(Debug, Default)]
pub(super) struct Tail(Vec<u8>);

impl Tail {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        // Cut now and then, not at every push.
        if self.0.len() > 2 * KEPT {
            self.0.drain(..self.0.len() - KEPT);
        }
    }

    /// What was kept, as text of at most 4 KiB without blanks around it.
    pub(super) fn text(&self) -> String {
        let from = self.0.len().saturating_sub(KEPT);
        let text = String::from_utf8_lossy(self.0.get(from..).unwrap_or_default());
        let text = text.trim();
        // What stood for broken bytes is longer than they were.
        let mut from = text.len().saturating_sub(KEPT);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        text.get(from..).unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept() {
        let mut tail = Tail::default();
        for number in 0..10_000 {
            tail.push(format!("line {number}\n").as_bytes());
        }
        let text = tail.text();
        assert!(text.ends_with("line 9999") && text.len() <= KEPT && text.len() > KEPT - 20);
    }

    #[test]
    fn broken_bytes_do_not_make_it_longer() {
        let mut tail = Tail::default();
        tail.push(&[0xff; 10_000]);
        assert!(tail.text().len() <= KEPT);
        assert_eq!(Tail::default().text(), "");
    }
}
