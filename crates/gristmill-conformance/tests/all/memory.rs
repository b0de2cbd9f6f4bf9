//! The suite over the memory store, and what only that store has: a bound on
//! everything in it.

use std::sync::Arc;

use async_trait::async_trait;
use gristmill_conformance::{Harness, history};
use gristmill_core::memory::{MemoryOptions, MemoryStore};
use gristmill_core::{
    Declaration, Limits, ManualClock, NewTask, Payload, PutAnswer, PutRequest, QueueName, Refusal,
    Store,
};

struct Memory;

#[async_trait]
impl Harness for Memory {
    fn imports(&self) -> bool {
        true
    }

    async fn open(&self, clock: Arc<ManualClock>, limits: Limits) -> Arc<dyn Store> {
        Arc::new(MemoryStore::new(MemoryOptions { clock, limits, ..MemoryOptions::default() }))
    }
}

gristmill_conformance::suite!(Memory);

/// Against itself: shows that equal stores agree, and that the histories meet
/// every answer.
#[test]
fn histories_agree() {
    let seen = history::agree(&Memory, history::cases() * 5);
    for word in history::Seen::WORDS {
        assert!(seen.count(word) > 0, "the histories never met '{word}': {seen:?}");
    }
}

#[tokio::test]
async fn a_full_memory_refuses_puts_of_any_queue() {
    let cases = [
        MemoryOptions { max_tasks: 4, ..MemoryOptions::default() },
        MemoryOptions { max_bytes: 4 * 10, ..MemoryOptions::default() },
    ];
    for options in cases {
        let store = MemoryStore::new(options);
        let mut answers = Vec::new();
        for name in ["one", "other"] {
            let queue = QueueName::new(name).expect("a name");
            store.declare_queue(Declaration::new(queue.clone())).await.expect("a queue");
            let tasks = vec![NewTask::new(Payload::raw(vec![0; 10])); 3];
            let put = store.put(PutRequest { queue, tasks, atomic: false }).await;
            answers.extend(put.expect("a put").answers);
        }
        let (fit, over) = answers.split_at(4);
        assert!(fit.iter().all(PutAnswer::is_enqueued), "{answers:?}");
        let full = Refusal::StoreFull { tasks: 4, bytes: 40 };
        assert!(over.iter().all(|answer| *answer == PutAnswer::Refused(full.clone())));
    }
}
