//! What a worker left behind as it ended: a stop ends whatever the store or a
//! handler does, and then says what it did not wait for.

use gristmill_core::{QueueName, TaskId};

/// Most tasks that are listed by name.
const LISTED: usize = 100;

/// What a worker left behind as it ended. Nothing of it is lost: the leases run
/// out, and other workers get the tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Left {
    /// Attempts whose handler did not come to an end when it was told to. It, or
    /// what it started, may still run in this process.
    pub running: u64,
    /// Attempts and tasks in hand of which the store was not told in time.
    pub unsettled: u64,
    /// The first hundred of them, as far as their names are known.
    pub tasks: Vec<LeftTask>,
}

/// A task that was left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftTask {
    /// Its queue.
    pub queue: QueueName,
    /// Its number.
    pub id: TaskId,
    /// Its handler may still run.
    pub running: bool,
}

impl Left {
    /// Whether nothing was left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.running == 0 && self.unsettled == 0
    }

    pub(crate) fn running(&mut self, queue: &QueueName, id: TaskId) {
        self.running += 1;
        self.list(queue, id, true);
    }

    pub(crate) fn unsettled(&mut self, queue: &QueueName, id: TaskId) {
        self.unsettled += 1;
        self.list(queue, id, false);
    }

    fn list(&mut self, queue: &QueueName, id: TaskId, running: bool) {
        if let Some(task) = self.tasks.iter_mut().find(|task| task.id == id) {
            task.running |= running;
        } else if self.tasks.len() < LISTED {
            self.tasks.push(LeftTask { queue: queue.clone(), id, running });
        }
    }

    pub(crate) fn add(&mut self, other: &Left) {
        self.running += other.running;
        self.unsettled += other.unsettled;
        let room = LISTED.saturating_sub(self.tasks.len());
        self.tasks.extend(other.tasks.iter().take(room).cloned());
    }
}
