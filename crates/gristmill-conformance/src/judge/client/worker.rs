//! The worker: claims, extends, settles in every way, holds some tasks past their
//! lease, settles what it no longer holds, and tries tokens that are nobody's.

use std::time::{Duration, Instant};

use gristmill_core::{Claim, ExtendAnswer, QueueName, SettleAnswer, TaskId, Token, WorkerId};

use super::super::event::{Follow, How, Wanted};
use super::super::plan::{self, FOLLOWED, queue_name};
use super::{AGAIN, Client};

/// How often an unanswered settlement is repeated before it is left unknown.
const REPEATS: usize = 200;

/// A task that is held past its lease.
struct Kept {
    until: Instant,
    task: TaskId,
    token: Token,
    queue: QueueName,
}

impl Client {
    pub(super) async fn work(&mut self) {
        let queues: Vec<QueueName> = plan::worked().into_iter().map(queue_name).collect();
        let Ok(worker) = WorkerId::random() else { return };
        let mut kept: Vec<Kept> = Vec::new();
        let mut swept = Instant::now();
        let mut made = 0;
        while !self.has_to_leave() {
            let Some(queue) = self.dice.pick(&queues) else { return };
            let mark = self.noted.store.mark();
            let most = 1 + self.dice.below(6);
            match self.noted.claim(&queue, most, &worker).await {
                Ok(claim) if claim.tasks.is_empty() => {
                    let nap = Duration::from_millis(5);
                    let _ = self.noted.store.wait(&queues, mark, nap).await;
                }
                Ok(claim) => self.handle(&queue, &claim, &mut kept, &mut made).await,
                Err(_) => tokio::time::sleep(AGAIN).await,
            }
            while let Some(at) = kept.iter().position(|kept| kept.until <= Instant::now()) {
                let held = kept.swap_remove(at);
                // Most likely it is somebody else's by now.
                if self.dice.once_in(3) {
                    let _ = self.noted.extend(held.token, self.lease).await;
                }
                self.end((held.task, held.token, held.queue.as_str()), &mut made).await;
            }
            if swept.elapsed() > Duration::from_millis(500) {
                swept = Instant::now();
                if self.dice.once_in(2) {
                    let _ = self.noted.sweep().await;
                } else {
                    let _ = self.noted.reclaim().await;
                }
            }
            self.rest(Duration::from_millis(1)).await;
        }
    }

    async fn handle(
        &mut self,
        queue: &QueueName,
        claim: &Claim,
        kept: &mut Vec<Kept>,
        made: &mut u64,
    ) {
        let mut cancelled = Vec::new();
        if self.dice.once_in(5) {
            match self.noted.extend(claim.token, self.lease).await {
                Ok(ExtendAnswer::Extended { cancelled: asked, .. }) => cancelled = asked,
                // Settled all the same: it must be refused.
                Ok(ExtendAnswer::LeaseLost) | Err(_) => {}
            }
        }
        for task in &claim.tasks {
            if self.dice.once_in(14) {
                let until = Instant::now() + self.lease.mul_f64(1.2);
                let (task, token, queue) = (task.id, claim.token, queue.clone());
                kept.push(Kept { until, task, token, queue });
                continue;
            }
            if self.dice.once_in(20)
                && let Ok(forged) = Token::random()
            {
                let forged = (task.id, forged, queue.as_str());
                let _ = self.noted.settle(forged, How::Done, &[]).await;
            }
            if cancelled.contains(&task.id) {
                let held = (task.id, claim.token, queue.as_str());
                let _ = self.noted.settle(held, How::Cancelled, &[]).await;
            } else {
                self.end((task.id, claim.token, queue.as_str()), made).await;
            }
        }
    }

    /// Settles by the dice, repeats what went without an answer, and now and then
    /// what was answered.
    async fn end(&mut self, held: (TaskId, Token, &str), made: &mut u64) {
        let how = match self.dice.below(24) {
            0 => How::Retry,
            1 => How::Release,
            2 => How::Fail,
            3 | 4 => How::Error,
            _ => How::Done,
        };
        let mut follow_ups = Vec::new();
        if how == How::Done && self.dice.once_in(5) {
            for _ in 0..=self.dice.below(2) {
                *made += 1;
                let payload = format!("{}/follow/{made}", self.noted.journal.name());
                let task = Wanted { payload, ..Wanted::default() };
                follow_ups.push(Follow { queue: FOLLOWED.to_owned(), task });
            }
        }
        for _ in 0..REPEATS {
            match self.noted.settle(held, how, &follow_ups).await {
                Ok(SettleAnswer::Recorded { .. }) if self.dice.once_in(12) => {}
                Ok(_) => return,
                Err(_) if self.has_to_leave() => return,
                Err(_) => tokio::time::sleep(AGAIN).await,
            }
        }
    }
}
