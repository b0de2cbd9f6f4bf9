//! What is more than one request may have: sent in several, one after the other.
//!
//! All of it is answered, or an error says what is known. Once a piece was taken, an error
//! of a later one leaves the whole *unknown*: some of it happened.

use gristmill_core::{NewTask, Settlement, StoreError};

/// Bytes of a request for which the words around the tasks are taken.
const WORDS: usize = 16 << 10;

/// Something of which a request holds several.
pub(super) trait Piece {
    /// About how many bytes it is when it is sent; rather more.
    fn bytes(&self) -> usize;
}

/// In base64, or in JSON with some escapes.
const fn grown(bytes: usize) -> usize {
    bytes.saturating_mul(2)
}

fn text(text: Option<&String>) -> usize {
    text.map_or(0, |text| grown(text.len()))
}

impl Piece for NewTask {
    fn bytes(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(k, v)| grown(k.len() + v.len()) + 8).sum();
        let texts = text(self.key.as_ref())
            + text(self.group.as_ref())
            + text(self.source.as_ref())
            + text(self.id.as_ref());
        // Base64 is a third more.
        self.payload.bytes.len().div_ceil(3) * 4 + headers + texts + 512
    }
}

impl Piece for Settlement {
    fn bytes(&self) -> usize {
        let follow_ups: usize = self.follow_ups.iter().map(|one| one.task.bytes() + 128).sum();
        let result = self.result.as_ref().map_or(0, |result| grown(result.bytes.len()));
        let error = self.outcome.error().map_or(0, |error| grown(error.len()));
        follow_ups + result + error + 512
    }
}

/// What fits into one request each, in order.
pub(super) fn pieces<T: Piece>(all: Vec<T>, body_bytes: usize) -> Vec<Vec<T>> {
    let room = body_bytes.saturating_sub(WORDS);
    let (mut pieces, mut held) = (vec![Vec::new()], 0);
    for one in all {
        let bytes = one.bytes();
        match pieces.last_mut() {
            Some(piece) if piece.is_empty() || held + bytes <= room => {
                piece.push(one);
                held += bytes;
            }
            _ => {
                pieces.push(vec![one]);
                held = bytes;
            }
        }
    }
    pieces
}

/// An error of a piece that was not the first.
pub(super) fn halfway(error: StoreError, taken: usize, all: usize) -> StoreError {
    let told = format!("{taken} of {all} were taken, and then: {}", error.whole());
    StoreError::unknown(told).caused_by(error)
}

#[cfg(test)]
mod tests {
    use gristmill_core::Payload;

    use super::*;

    #[test]
    fn pieces_keep_the_order_and_the_limit() {
        let task = |bytes: usize| NewTask::new(Payload::raw(vec![0; bytes]));
        let sizes = [100_000, 300_000, 10, 2_000_000, 10, 10];
        let all: Vec<_> = sizes.into_iter().map(task).collect();
        let cut = pieces(all, 1 << 20);
        let shape: Vec<Vec<usize>> = cut
            .iter()
            .map(|piece| piece.iter().map(|task| task.payload.bytes.len()).collect())
            .collect();
        assert_eq!(shape, [vec![100_000, 300_000, 10], vec![2_000_000], vec![10, 10]]);
        assert_eq!(pieces(Vec::<NewTask>::new(), 1).len(), 1, "nothing is a request as well");
    }

    #[test]
    fn what_is_sent_is_no_larger_than_it_was_taken_for() {
        use crate::wire::Wire;
        let mut task = NewTask::new(Payload::raw(vec![7; 100_000]));
        task.key = Some("\"\n".repeat(200));
        task.headers.insert("a\"".repeat(50), "b\\".repeat(500));
        let said = task.write().to_string().len();
        assert!(said <= task.bytes() && task.bytes() < said + 4_000, "{said} {}", task.bytes());
    }
}
