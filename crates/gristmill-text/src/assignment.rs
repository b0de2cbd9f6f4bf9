//! The manager's word: which worker serves which queue with how many processors.

use gristmill_core::{Assignment, Result, Share, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{queue_name, worker_id};

/// The word as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AssignmentText {
    term: u64,
    shares: Vec<ShareText>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ShareText {
    worker: String,
    queue: String,
    processors: u32,
}

impl AssignmentText {
    /// What is stored of it.
    pub(crate) fn new(assignment: &Assignment) -> Self {
        let share = |share: &Share| ShareText {
            worker: share.worker.to_string(),
            queue: share.queue.to_string(),
            processors: share.processors,
        };
        let shares = assignment.shares.iter().map(share).collect();
        AssignmentText { term: assignment.term, shares }
    }

    /// The word as it is read back.
    pub(crate) fn into_assignment(self, published_at: Timestamp) -> Result<Assignment> {
        let share = |share: ShareText| {
            let (worker, queue) = (worker_id(&share.worker), queue_name(&share.queue)?);
            Ok(Share { worker, queue, processors: share.processors })
        };
        let shares = self.shares.into_iter().map(share).collect::<Result<_>>()?;
        Ok(Assignment { term: self.term, shares, published_at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse, text};

    #[test]
    fn a_word_is_stored_in_these_words() -> Result<()> {
        let stored = r#"{"term":2,"shares":[{"worker":"w","queue":"mails","processors":3}]}"#;
        let word: AssignmentText = parse("a word", stored)?;
        let word = word.into_assignment(Timestamp::EPOCH)?;
        assert_eq!(text(&AssignmentText::new(&word))?, stored);
        Ok(())
    }
}
