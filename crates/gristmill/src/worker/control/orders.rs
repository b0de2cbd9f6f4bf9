//! What somebody wants of a running worker, from wherever: that it claims no more for a
//! while, that it ends, or that a processor serves one queue. It stands in the store as a
//! document under the worker's id, and the worker reads it whenever it has reported.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use gristmill_core::{QueueName, WorkerReport};

/// What documents of this are.
pub(crate) const KIND: &str = "worker-orders";

/// What somebody wants of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Orders {
    /// It claims nothing; what runs finishes.
    pub quiet: bool,
    /// It stops as if it had been asked where it runs.
    pub stop: bool,
    /// The queue that a processor serves, by the processor's number.
    pub moved: BTreeMap<usize, QueueName>,
}

impl Orders {
    /// Moves one more processor of this worker to a queue: one that goes round, if there is
    /// one, else one that serves another queue. Returns its number; nothing when all serve it.
    pub fn move_one(&mut self, report: &WorkerReport, queue: &QueueName) -> Option<usize> {
        let free = report.processors.iter().enumerate().filter(|(number, processor)| {
            !self.moved.contains_key(number) && processor.queue.as_ref() != Some(queue)
        });
        let (number, _) = free.min_by_key(|(_, processor)| processor.queue.is_some())?;
        self.moved.insert(number, queue.clone());
        Some(number)
    }

    /// As they are kept: a line each.
    pub(crate) fn write(&self) -> String {
        let mut text = String::new();
        if self.quiet {
            text.push_str("quiet\n");
        }
        if self.stop {
            text.push_str("stop\n");
        }
        for (processor, queue) in &self.moved {
            let _ = writeln!(text, "move {processor} {queue}");
        }
        text
    }

    /// What a newer program says besides is passed over.
    pub(crate) fn read(text: &str) -> Self {
        let mut orders = Orders::default();
        for line in text.lines() {
            let mut words = line.split(' ');
            match (words.next(), words.next(), words.next()) {
                (Some("quiet"), ..) => orders.quiet = true,
                (Some("stop"), ..) => orders.stop = true,
                (Some("move"), Some(number), Some(queue)) => {
                    if let (Ok(number), Ok(queue)) = (number.parse(), QueueName::new(queue)) {
                        orders.moved.insert(number, queue);
                    }
                }
                _ => {}
            }
        }
        orders
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_back() {
        let emails = QueueName::new("emails").expect("a name");
        let all = Orders { quiet: true, stop: true, moved: BTreeMap::from([(2, emails)]) };
        for orders in [Orders::default(), all] {
            assert_eq!(Orders::read(&orders.write()), orders);
        }
        let newer = "quiet\nsing a song\nmove x emails\nmove 1 n o\nmove\n\n";
        assert!(Orders::read(newer).quiet && !Orders::read(newer).stop);
    }
}
