//! What a program says on its standard output, where that is its task's result: its
//! beginning and its end, and how much was left out between them.

use gristmill::{Encoding, Payload};
use serde::de::IgnoredAny;

/// Bytes that the note about what was left out may take.
const NOTE: usize = 64;

/// What was said so far.
#[derive(Debug)]
pub(super) struct Output {
    head: Vec<u8>,
    tail: Vec<u8>,
    all: usize,
    most: usize,
}

impl Output {
    /// Of which at most so many bytes are kept.
    pub(super) const fn of(most: usize) -> Self {
        Output { head: Vec::new(), tail: Vec::new(), all: 0, most }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.all += bytes.len();
        let room = self.most - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        // Cut now and then, not at every push.
        if self.tail.len() > 2 * self.most {
            self.tail.drain(..self.tail.len() - self.most);
        }
    }

    /// The result: JSON where it is some. What is too long is cut in its middle, which
    /// its text says, and so does the answer.
    pub(super) fn into_result(self) -> (Option<Payload>, bool) {
        if self.all == 0 {
            return (None, false);
        }
        if self.all <= self.most {
            let json = serde_json::from_slice::<IgnoredAny>(&self.head).is_ok();
            let encoding = if json { Encoding::Json } else { Encoding::Raw };
            return (Some(Payload { bytes: self.head.into(), encoding }), false);
        }
        let half = self.most.saturating_sub(NOTE) / 2;
        let (head, end) = (
            self.head.get(..half).unwrap_or_default(),
            [self.head.as_slice(), &self.tail].concat(),
        );
        let tail = end.get(end.len().saturating_sub(half)..).unwrap_or_default();
        let left_out = self.all - head.len() - tail.len();
        let note = format!("\n[{left_out} bytes left out]\n");
        (Some(Payload::raw([head, note.as_bytes(), tail].concat())), true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(most: usize, said: &[&str]) -> (Option<Payload>, bool) {
        let mut output = Output::of(most);
        said.iter().for_each(|said| output.push(said.as_bytes()));
        output.into_result()
    }

    #[test]
    fn what_fits_is_kept_as_it_is() {
        assert_eq!(result(100, &[]), (None, false));
        assert_eq!(result(100, &["{\"a\":", "1}\n"]).0, Some(Payload::json("{\"a\":1}\n")));
        assert_eq!(result(5, &["hello"]).0, Some(Payload::raw("hello")));
    }

    #[test]
    fn what_does_not_is_cut_in_its_middle_and_says_so() {
        let said: Vec<String> = (0..1_000).map(|n| format!("line {n}\n")).collect();
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let all: usize = said.iter().map(|said| said.len()).sum();
        let (Some(result), true) = result(500, &said) else { panic!("it is cut") };
        let text = std::str::from_utf8(&result.bytes).unwrap();
        assert!(text.len() <= 500 && text.starts_with("line 0\nline 1\n"), "{text}");
        assert!(text.ends_with("line 998\nline 999\n"), "{text}");
        let left_out: usize = text
            .split(['[', ' ', '\n'])
            .find_map(|word| word.parse().ok().filter(|n| *n > 1_000))
            .unwrap();
        let note = format!("\n[{left_out} bytes left out]\n");
        assert_eq!(text.len() - note.len() + left_out, all, "{text}");
    }
}
