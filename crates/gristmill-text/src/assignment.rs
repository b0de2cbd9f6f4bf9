//! The manager's word: which worker serves which queue with how many processors.

use gristmill_core::{Result, Share};
use serde::{Deserialize, Serialize};

use crate::{parse, queue_name, text, worker_id};

#[derive(Serialize, Deserialize)]
struct ShareText {
    worker: String,
    queue: String,
    processors: u32,
}

/// The shares as they are stored.
///
/// # Errors
///
/// Invalid, when they cannot be said in JSON.
pub fn shares_text(shares: &[Share]) -> Result<String> {
    let shares: Vec<ShareText> = shares
        .iter()
        .map(|share| ShareText {
            worker: share.worker.to_string(),
            queue: share.queue.to_string(),
            processors: share.processors,
        })
        .collect();
    text(&shares)
}

/// The shares as they are read back.
///
/// # Errors
///
/// Corrupt, when the text is none of shares.
pub fn shares(stored: &str) -> Result<Vec<Share>> {
    let shares: Vec<ShareText> = parse("the assignment", stored)?;
    shares
        .into_iter()
        .map(|share| {
            Ok(Share {
                worker: worker_id(&share.worker),
                queue: queue_name(&share.queue)?,
                processors: share.processors,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_stored_in_these_words() -> Result<()> {
        let stored = r#"[{"worker":"w","queue":"mails","processors":3}]"#;
        assert_eq!(shares_text(&shares(stored)?)?, stored);
        Ok(())
    }
}
