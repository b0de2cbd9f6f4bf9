//! The producer: puts of every kind, alone and in batches, with and without keys,
//! ids, delays and priorities, and repeats of what went without an answer.

use std::time::Duration;

use super::super::event::Wanted;
use super::super::plan;
use super::{AGAIN, Client};

/// With more than this pending, workers are left to catch up.
const BACKLOG: u64 = 400;
/// Keys of a queue: few, so that puts meet.
const KEYS: usize = 6;
/// Queues that tell groups apart.
const GROUPED: [&str; 4] = ["slots", "abreast_groups", "paced_groups", "turns"];
/// How often an unanswered put is repeated before it is left unknown.
const REPEATS: usize = 200;

impl Client {
    pub(super) async fn produce(&mut self) {
        let queues = plan::put_to();
        let mut made = 0_u64;
        while !self.has_to_leave() {
            if made.is_multiple_of(32) && self.is_behind().await {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
            let Some(queue) = self.dice.pick(&queues) else { return };
            let count = if self.dice.once_in(6) { 2 + self.dice.below(12) } else { 1 };
            // Few batches are mixed: only one whose tasks cannot be duplicates
            // shows a torn put.
            let plain = self.dice.once_in(3);
            let tasks: Vec<Wanted> = (0..count)
                .map(|_| {
                    made += 1;
                    self.wanted(queue, made, plain)
                })
                .collect();
            let atomic = count > 1 && self.dice.once_in(4);
            self.put_patiently(queue, &tasks, atomic).await;
            self.pause(Duration::from_millis(6)).await;
        }
    }

    async fn is_behind(&self) -> bool {
        match self.noted.store.stats().await {
            Ok(stats) => {
                stats.iter().map(|queue| queue.total() - queue.failed).sum::<u64>() > BACKLOG
            }
            Err(_) => true,
        }
    }

    fn wanted(&mut self, queue: &str, nth: u64, plain: bool) -> Wanted {
        let who = self.noted.journal.name().to_owned();
        let mut task = Wanted { payload: format!("{who}/{nth}"), ..Wanted::default() };
        if GROUPED.contains(&queue) {
            task.group = self.dice.pick(&["a", "b"]).map(str::to_owned);
        }
        if plain {
            return task;
        }
        if self.dice.once_in(2) {
            task.key = Some(format!("k{}", self.dice.below(KEYS)));
        }
        if self.dice.once_in(6) {
            task.priority = [-1, 1][self.dice.below(2)];
        }
        if self.dice.once_in(8) {
            task.delay_ms = 10 + self.dice.throw() % 200;
        }
        if self.dice.once_in(4) {
            task.id = Some(format!("id-{who}-{nth}"));
        }
        if self.dice.once_in(5) {
            task.source = Some(who);
        }
        task
    }

    /// Puts; what has an id is repeated until it is answered, and now and then
    /// once more.
    async fn put_patiently(&mut self, queue: &str, tasks: &[Wanted], atomic: bool) {
        let can_repeat = tasks.iter().all(|task| task.id.is_some());
        for _ in 0..REPEATS {
            let answer = self.noted.put(queue, tasks, atomic).await;
            match answer {
                Ok(_) if can_repeat && self.dice.once_in(4) => {}
                Ok(_) => return,
                Err(_) if can_repeat && !self.has_to_leave() => tokio::time::sleep(AGAIN).await,
                Err(_) => {
                    tokio::time::sleep(AGAIN).await;
                    return;
                }
            }
        }
    }
}
