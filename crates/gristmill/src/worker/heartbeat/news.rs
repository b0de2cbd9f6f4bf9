//! How far the tasks of a claim are, as their handlers say: the last word of each, until
//! a heartbeat takes it along.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gristmill_core::{Progress, TaskId, TaskProgress};

/// Most of a message that is remembered; of what is longer its end is cut anyway.
const MOST: usize = 2 * Progress::MESSAGE_BYTES;

/// What a handler said last.
#[derive(Debug, Default)]
struct Word {
    done: u64,
    total: Option<u64>,
    message: String,
    /// No heartbeat took it along yet.
    is_fresh: bool,
}

/// The last word of each task.
#[derive(Debug, Default)]
pub(crate) struct News {
    words: Mutex<HashMap<TaskId, Word>>,
    /// One of them is fresh; so that a heartbeat that finds nothing locks nothing.
    is_any: AtomicBool,
}

impl News {
    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, Word>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handler says how far it is. It may do so a million times a second: the message
    /// is copied only where it changed, and nobody is woken.
    pub(crate) fn say(&self, id: TaskId, done: u64, total: Option<u64>, message: &str) {
        let message = head(message);
        let mut words = self.lock();
        let word = words.entry(id).or_default();
        (word.done, word.total) = (done, total);
        if word.message != message {
            word.message.clear();
            word.message.push_str(message);
        }
        word.is_fresh = true;
        self.is_any.store(true, Ordering::Release);
    }

    /// Whether there is a word that nobody took.
    pub(crate) fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }

    /// The fresh ones, which are so no more.
    pub(crate) fn take(&self) -> Vec<TaskProgress> {
        let mut words = self.lock();
        self.is_any.store(false, Ordering::Release);
        let fresh = words.iter_mut().filter(|(_, word)| word.is_fresh);
        let told = fresh.map(|(id, word)| {
            word.is_fresh = false;
            let progress = Progress::new(word.done, word.total, &word.message);
            TaskProgress { id: *id, progress }
        });
        told.collect()
    }

    /// The store did not hear of these: what they say now is fresh again.
    pub(crate) fn put_back(&self, told: &[TaskProgress]) {
        let mut words = self.lock();
        for said in told {
            if let Some(word) = words.get_mut(&said.id) {
                word.is_fresh = true;
                self.is_any.store(true, Ordering::Release);
            }
        }
    }

    /// This one ended.
    pub(crate) fn forget(&self, id: TaskId) {
        self.lock().remove(&id);
    }
}

/// The beginning of a message, at a character's border.
fn head(message: &str) -> &str {
    let mut end = message.len().min(MOST);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(news: &News) -> Vec<(i64, String)> {
        let mut told: Vec<_> =
            news.take().into_iter().map(|t| (t.id.0, t.progress.to_string())).collect();
        told.sort();
        told
    }

    #[test]
    fn the_last_word_of_each_is_taken_once() {
        let news = News::default();
        assert!(!news.is_any());
        news.say(TaskId(1), 1, Some(2), "a");
        news.say(TaskId(2), 7, None, "b");
        news.say(TaskId(1), 2, Some(2), "c");
        assert!(news.is_any());
        assert_eq!(told(&news), [(1, "2/2 c".to_owned()), (2, "7 b".to_owned())]);
        assert!(!news.is_any());
        assert_eq!(told(&news), []);
        news.say(TaskId(2), 8, None, "b");
        assert_eq!(told(&news), [(2, "8 b".to_owned())]);
    }

    #[test]
    fn what_the_store_did_not_hear_is_said_again_unless_there_is_more_or_the_task_ended() {
        let news = News::default();
        news.say(TaskId(1), 1, None, "");
        news.say(TaskId(2), 1, None, "");
        let lost = news.take();
        news.say(TaskId(1), 2, None, "");
        news.forget(TaskId(2));
        news.put_back(&lost);
        assert_eq!(told(&news), [(1, "2".to_owned())]);
    }

    #[test]
    fn a_long_message_is_not_kept_whole() {
        let news = News::default();
        news.say(TaskId(1), 0, None, &"ß".repeat(1 << 20));
        assert!(news.lock()[&TaskId(1)].message.len() <= MOST);
        assert!(news.take()[0].progress.message().len() <= Progress::MESSAGE_BYTES);
    }
}
