//! Short ways to write down a task, so that a behaviour reads as a sentence.

use std::time::Duration;

use gristmill_core::{NewTask, Payload, QueueName, Start, WorkerId};

/// That many seconds.
pub(crate) const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// That many milliseconds.
pub(crate) const fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A queue's name.
pub(crate) fn name(text: &str) -> QueueName {
    QueueName::new(text).expect("a queue name")
}

/// A worker's id.
pub(crate) fn worker(text: &str) -> WorkerId {
    WorkerId::new(text).expect("a worker id")
}

/// A task with this text as its payload.
pub(crate) fn task(text: &str) -> NewTask {
    NewTask::new(Payload::json(text.to_owned()))
}

/// A number of tasks without keys.
pub(crate) fn plain(count: usize) -> Vec<NewTask> {
    (0..count).map(|n| task(&n.to_string())).collect()
}

/// What else can be said of a new task.
pub(crate) trait Shape: Sized {
    /// What it is about.
    fn keyed(self, key: &str) -> Self;
    /// What it is counted with.
    fn in_group(self, group: &str) -> Self;
    /// Who produced it.
    fn of_source(self, source: &str) -> Self;
    /// How urgent it is.
    fn at_priority(self, priority: i16) -> Self;
    /// Not before that many seconds have passed.
    fn delayed(self, seconds: u64) -> Self;
    /// The caller's id.
    fn with_id(self, id: &str) -> Self;
    /// One more header.
    fn with_header(self, name: &str, value: &str) -> Self;
}

impl Shape for NewTask {
    fn keyed(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    fn in_group(mut self, group: &str) -> Self {
        self.group = Some(group.to_owned());
        self
    }

    fn of_source(mut self, source: &str) -> Self {
        self.source = Some(source.to_owned());
        self
    }

    fn at_priority(mut self, priority: i16) -> Self {
        self.priority = priority;
        self
    }

    fn delayed(mut self, seconds: u64) -> Self {
        self.start = Start::After(secs(seconds));
        self
    }

    fn with_id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }
}
