//! What each processor is at: the queue it keeps to, and the claim in its hand.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill_core::{ProcessorReport, QueueName};

use crate::timer::Timer;
use crate::worker::run::hand::Hand;

/// All processors that work, by their numbers.
pub(crate) struct Cycles {
    timer: Timer,
    cycles: Mutex<HashMap<usize, Cycle>>,
}

/// What a processor is at.
#[derive(Default)]
struct Cycle {
    post: Option<QueueName>,
    hand: Option<(Instant, Arc<Hand>)>,
}

impl Cycles {
    pub(crate) fn new(timer: Timer) -> Self {
        Cycles { timer, cycles: Mutex::default() }
    }

    /// A processor began or ended a cycle.
    pub(crate) fn cycle(&self, number: usize, hand: Option<&Arc<Hand>>) {
        self.lock().entry(number).or_default().hand =
            hand.map(|hand| (self.timer.now(), hand.clone()));
    }

    /// A processor serves only this queue, or rotates.
    pub(crate) fn posted(&self, number: usize, post: Option<QueueName>) {
        self.lock().entry(number).or_default().post = post;
    }

    /// A processor ended.
    pub(crate) fn left(&self, number: usize) {
        self.lock().remove(&number);
    }

    /// How many processors there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// The claims in hand.
    pub(crate) fn hands(&self) -> Vec<Arc<Hand>> {
        self.lock().values().filter_map(|cycle| Some(cycle.hand.as_ref()?.1.clone())).collect()
    }

    /// Each processor, as it is reported.
    pub(crate) fn processors(&self) -> Vec<ProcessorReport> {
        let mut cycles: Vec<_> = self
            .lock()
            .iter()
            .map(|(number, cycle)| {
                let hand = cycle.hand.as_ref();
                let holding = hand.map_or(0, |(_, hand)| hand.holding());
                let report = ProcessorReport {
                    queue: cycle.post.clone(),
                    holding: u32::try_from(holding).unwrap_or(u32::MAX),
                    cycle: hand.map_or(Duration::ZERO, |(since, _)| self.timer.since(*since)),
                };
                (*number, report)
            })
            .collect();
        cycles.sort_by_key(|(number, _)| *number);
        cycles.into_iter().map(|(_, report)| report).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<usize, Cycle>> {
        self.cycles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
