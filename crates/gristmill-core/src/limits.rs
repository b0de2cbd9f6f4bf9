//! What is too large: every list, name, payload, batch and wait has a limit.

use std::time::Duration;

use crate::put::{NewTask, Refusal};

/// A store's limits. The defaults suit everyone; only the payload's is often
/// changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Largest payload, in bytes.
    pub payload_bytes: usize,
    /// Longest key, group, source or caller's id, in bytes.
    pub text_bytes: usize,
    /// Largest sum of header names and values, in bytes.
    pub headers_bytes: usize,
    /// Most tasks in one put.
    pub put_tasks: usize,
    /// Most tasks in one claim.
    pub claim_tasks: usize,
    /// Most payload bytes in one claim (one task is always allowed).
    pub claim_bytes: usize,
    /// Most that a task keeps for its next attempt, in bytes.
    pub checkpoint_bytes: usize,
    /// Largest value that a handler returns for its task, in bytes.
    pub result_bytes: usize,
    /// Most settlements in one call.
    pub settlements: usize,
    /// Most tasks on a page or in one operator's step.
    pub page: usize,
    /// Most tasks that are looked at for a page where no index leads to them.
    pub looks: usize,
    /// Longest error text kept of an attempt, in bytes.
    pub error_bytes: usize,
    /// Attempts kept in a task's history.
    pub history: usize,
    /// Longest wait for work in one call.
    pub wait: Duration,
    /// Releases of a started task that give its attempt back.
    pub started_releases: u32,
    /// Expired leases one claim returns to their queue.
    pub reclaimed_leases: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            payload_bytes: 1 << 20,
            text_bytes: 512,
            headers_bytes: 4096,
            put_tasks: 10_000,
            claim_tasks: 1_000,
            claim_bytes: 16 << 20,
            checkpoint_bytes: 64 << 10,
            result_bytes: 64 << 10,
            settlements: 10_000,
            page: 1_000,
            looks: 10_000,
            error_bytes: 4096,
            history: 10,
            wait: Duration::from_secs(60),
            started_releases: 20,
            reclaimed_leases: 64,
        }
    }
}

impl Limits {
    /// Why this task cannot be stored anywhere, if so.
    #[must_use]
    pub fn refuse(&self, task: &NewTask) -> Option<Refusal> {
        let bytes = task.payload.bytes.len();
        if bytes > self.payload_bytes {
            return Some(Refusal::PayloadTooLarge { bytes, limit: self.payload_bytes });
        }
        let texts = [
            ("key", &task.key),
            ("group", &task.group),
            ("source", &task.source),
            ("id", &task.id),
        ];
        for (what, text) in texts {
            let Some(text) = text else { continue };
            if let Some(why) = self.text_fault(text) {
                return Some(Refusal::Invalid(format!("the {what} {why}")));
            }
        }
        let headers: usize = task.headers.iter().map(|(k, v)| k.len() + v.len()).sum();
        if headers > self.headers_bytes {
            return Some(Refusal::Invalid(format!(
                "the headers have {headers} bytes and {} are allowed",
                self.headers_bytes
            )));
        }
        if task.headers.iter().any(|(k, v)| k.is_empty() || k.contains('\0') || v.contains('\0')) {
            return Some(Refusal::Invalid("a header is unnamed or holds a NUL".to_owned()));
        }
        task.settings.fault().map(Refusal::Invalid)
    }

    /// What is wrong with a key, group, source or id, as the end of a sentence.
    fn text_fault(&self, text: &str) -> Option<String> {
        if text.is_empty() {
            Some("is empty".to_owned())
        } else if text.len() > self.text_bytes {
            Some(format!("has {} bytes and {} are allowed", text.len(), self.text_bytes))
        } else if text.contains('\0') {
            // PostgreSQL cannot keep it as text, and every store is the same.
            Some("holds a NUL".to_owned())
        } else {
            None
        }
    }

    /// An error text cut to what is kept, in its middle and at characters'
    /// borders, without NUL. What went wrong stands at its beginning or at its
    /// end, and neither may be lost.
    #[must_use]
    pub fn cut_error(&self, text: &str) -> String {
        cut_middle(&text.replace('\0', "\u{fffd}"), self.error_bytes)
    }
}

/// Bytes that the note about what was left out may take.
const NOTE: usize = 48;

/// The text's beginning and end, with a note of how much was left out between
/// them: at most this many bytes in all. PostgreSQL's `cut` does the same.
pub(crate) fn cut_middle(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let half = bytes.saturating_sub(NOTE) / 2;
    let head = cut(text, half);
    let mut from = text.len() - half;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let tail = text.get(from..).unwrap_or_default();
    let left_out = text.len() - head.len() - tail.len();
    let cut = format!("{head}\n[{left_out} bytes left out]\n{tail}");
    // Of a limit without room for a note only the beginning can be kept.
    if cut.len() <= bytes { cut } else { self::cut(text, bytes).to_owned() }
}

/// The text's beginning, at a character's border.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
