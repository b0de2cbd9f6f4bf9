//! Which queue each task is of that was claimed here: a settlement names only the task.
//!
//! What is heard of a store is not always in order. A task whose backoff is short may be
//! claimed again before its first settlement is heard of, so claims are counted: with a
//! mere set the second settlement would be somebody else's, and nobody would be told.

use std::collections::HashMap;

use gristmill::{QueueName, TaskId};

/// Most tasks that are remembered. Those whose lease was lost are never heard of again;
/// when they are so many, all are forgotten and it begins anew.
const REMEMBERED: usize = 10_000;

/// The tasks that were claimed here and not settled yet.
#[derive(Debug, Default)]
pub(crate) struct Claimed(HashMap<TaskId, (QueueName, u32)>);

impl Claimed {
    /// These were claimed.
    pub(crate) fn claimed(&mut self, queue: &QueueName, tasks: Vec<TaskId>) {
        if self.0.len() >= REMEMBERED {
            self.forget();
        }
        for id in tasks {
            self.0.entry(id).or_insert_with(|| (queue.clone(), 0)).1 += 1;
        }
    }

    /// One of its claims was settled: its queue, if it was claimed here.
    pub(crate) fn settled(&mut self, id: TaskId) -> Option<QueueName> {
        let (queue, claims) = self.0.get_mut(&id)?;
        *claims -= 1;
        let queue = queue.clone();
        if *claims == 0 {
            self.0.remove(&id);
        }
        Some(queue)
    }

    /// Something was not heard: nothing is known any more.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> QueueName {
        QueueName::new("emails").expect("a name")
    }

    #[test]
    fn a_task_claimed_again_before_its_settlement_is_heard_of_is_told_of_twice() {
        let mut claimed = Claimed::default();
        claimed.claimed(&queue(), vec![TaskId(3)]);
        claimed.claimed(&queue(), vec![TaskId(3)]);
        assert_eq!(claimed.settled(TaskId(3)), Some(queue()));
        assert_eq!(claimed.settled(TaskId(3)), Some(queue()));
        assert_eq!(claimed.settled(TaskId(3)), None, "somebody else's");
    }

    #[test]
    fn lost_tasks_do_not_silence_those_that_come_after() {
        let mut claimed = Claimed::default();
        for id in 0..=REMEMBERED as i64 {
            claimed.claimed(&queue(), vec![TaskId(id)]);
        }
        assert!(claimed.0.len() <= REMEMBERED);
        assert_eq!(claimed.settled(TaskId(REMEMBERED as i64)), Some(queue()));
    }
}
