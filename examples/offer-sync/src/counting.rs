//! The script that shows the counting: puts tasks, claims them as three workers
//! would, tells what each would take, and cleans up.

use gristmill::port::{
    Action, Claim, ClaimRequest, Declaration, Operation, Outcome, Queue, Selection, Settlement,
    Token, WorkerId,
};
use gristmill::{Accepted, Mill, QueueName, TaskId, TaskType};

use crate::error::{Error, Result};
use crate::out::say;
use crate::queue::{self, LEASE, OfferSyncBatch, OfferUpsertBatch, ProcessStatusCheck, SLOTS};
use crate::slice::{By, Slice};

/// Its tasks are put, claimed, counted and deleted apart from all others.
const OURS: &str = "counting";
/// Rows in a slice.
const LIMIT: u32 = 100;

struct Counting<'a> {
    mill: &'a Mill,
    put: Vec<TaskId>,
}

/// A claim of one task, and what it was told.
struct Held {
    claim: Claim,
    id: TaskId,
    count: Option<u32>,
    slot: Option<u32>,
}

/// Shows it, and leaves the store as it was.
pub(crate) async fn show(mill: &Mill) -> Result<()> {
    let before = mill.inspect().queues().await?;
    let mut counting = Counting { mill, put: Vec::new() };
    let shown = counting.run().await;
    let cleaned = counting.clean_up(before).await;
    shown?;
    say!("\ncleaned up: {} tasks of this script are gone", cleaned?)?;
    Ok(())
}

impl Counting<'_> {
    async fn run(&mut self) -> Result<()> {
        queue::declare(self.mill, By::Count, SLOTS, LEASE).await?;
        say!("Three workers, {}, limit {LIMIT}, by count:\n", OfferSyncBatch::QUEUE)?;
        say!("| Worker | Concurrent Count | Offset | Records Processed |")?;
        say!("|--------|------------------|--------|-------------------|")?;
        let mut held = Vec::new();
        for worker in 1..=3 {
            held.push(self.next(worker, OfferSyncBatch { limit: LIMIT }).await?);
            row(worker, held.last().and_then(|held| held.count), "EANs")?;
        }
        say!("\nWorker 1 has finished; worker 2 and 3 still run. The next one:\n")?;
        let last = held.pop();
        self.finish(held.remove(0)).await?;
        let fourth = self.next(4, OfferSyncBatch { limit: LIMIT }).await?;
        let (third, next) = (last.as_ref().and_then(|held| held.count), fourth.count);
        row(4, next, "EANs")?;
        if third == next {
            say!("\nIt counts two others, as worker 3 did: the same rows twice.")?;
        }
        held.extend(last);
        held.push(fourth);
        for held in held.drain(..) {
            self.finish(held).await?;
        }

        queue::declare(self.mill, By::Slot, SLOTS, LEASE).await?;
        say!("\nThe same with slots:\n")?;
        say!("| Worker | Slot | Offset | Records Processed |")?;
        say!("|--------|------|--------|-------------------|")?;
        for worker in 1..=3 {
            held.push(self.next(worker, OfferSyncBatch { limit: LIMIT }).await?);
            row(worker, held.last().and_then(|held| held.slot), "EANs")?;
        }
        self.put_one(OfferSyncBatch { limit: LIMIT }).await?;
        let none = self.claim(4, OfferSyncBatch::QUEUE).await?;
        say!("\nA fourth while three run: {} tasks. Worker 1 finishes:\n", none.tasks.len())?;
        self.finish(held.remove(0)).await?;
        held.push(self.taken(4, OfferSyncBatch::QUEUE).await?);
        row(4, held.last().and_then(|held| held.slot), "EANs")?;
        say!("\nIt has the slot that became free, and nobody else's rows.")?;
        for held in held.drain(..) {
            self.finish(held).await?;
        }

        say!("\n{} takes slices in the same way:\n", ProcessStatusCheck::QUEUE)?;
        for worker in 1..=3 {
            held.push(self.next(worker, ProcessStatusCheck { batch_size: 50 }).await?);
            let slot = held.last().and_then(|held| held.slot).unwrap_or_default();
            let slice = Slice { number: slot, limit: 50 };
            say!("  worker {worker}: offset {}, processes {slice}", slice.offset())?;
        }
        say!("\n{} brings its list, and is told nothing:\n", OfferUpsertBatch::QUEUE)?;
        for worker in 1..=3 {
            let offers = vec![(i64::from(worker), 999)];
            held.push(self.next(worker, OfferUpsertBatch { offers }).await?);
            let told = held.last().map(|held| (held.count, held.slot));
            let (count, slot) = told.unwrap_or_default();
            say!("  worker {worker}: count {count:?}, slot {slot:?}, EAN {worker}")?;
        }
        for held in held.drain(..) {
            self.finish(held).await?;
        }
        Ok(())
    }

    async fn put_one<T: TaskType>(&mut self, task: T) -> Result<()> {
        match self.mill.put(task).group(OURS).source(OURS).await? {
            Accepted::Enqueued { id } => self.put.push(id),
            other => return Err(format!("not put: {other:?}").into()),
        }
        Ok(())
    }

    /// Puts a task and claims it as this worker.
    async fn next<T: TaskType>(&mut self, worker: u32, task: T) -> Result<Held> {
        self.put_one(task).await?;
        self.taken(worker, T::QUEUE).await
    }

    async fn taken(&self, worker: u32, queue: &str) -> Result<Held> {
        let claim = self.claim(worker, queue).await?;
        let task = claim.tasks.first().ok_or("somebody else took the script's task")?;
        let (id, count, slot) = (task.id, task.concurrent, task.slot);
        Ok(Held { claim, id, count, slot })
    }

    async fn claim(&self, worker: u32, queue: &str) -> Result<Claim> {
        let request = ClaimRequest {
            queue: QueueName::new(queue)?,
            max: 1,
            lease: None,
            worker: WorkerId::new(&format!("worker-{worker}"))?,
            source: Some(OURS.to_owned()),
            token: Token::random()?,
        };
        Ok(self.mill.store().claim(request).await?)
    }

    async fn finish(&self, held: Held) -> Result<()> {
        let done = Settlement::new(held.id, held.claim.token, Outcome::Done);
        self.mill.store().settle(vec![done]).await.map_err(Error::from)?;
        Ok(())
    }

    /// Deletes whatever is left of its tasks, and gives the queues back the
    /// settings that the application had declared. Says how many tasks it had
    /// put.
    async fn clean_up(&self, before: Vec<Queue>) -> Result<usize> {
        let operation = Operation {
            action: Action::Cancel,
            selection: Selection::Ids(self.put.clone()),
            limit: self.put.len(),
            by: OURS.to_owned(),
            note: None,
            start: gristmill::port::Start::Now,
        };
        self.mill.store().operate(operation).await?;
        for queue in before {
            for (origin, settings) in queue.declared {
                let declaration =
                    Declaration { origin, settings, ..Declaration::new(queue.name.clone()) };
                self.mill.store().declare_queue(declaration).await?;
            }
        }
        Ok(self.put.len())
    }
}

/// A line of the table.
fn row(worker: u32, number: Option<u32>, what: &str) -> Result<()> {
    let number = number.ok_or("the claim came without a number")?;
    let slice = Slice { number, limit: LIMIT };
    say!("| Worker {worker} | {number} | {} | {what} {slice} |", slice.offset())?;
    Ok(())
}
