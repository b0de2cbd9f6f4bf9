//! Who of the workers serves what was decided: fair by weight where processors
//! are short, and with as few moves as possible.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Hands, QueueLoad, Standing};
use crate::{QueueName, Share, WorkerId};

/// The processors that can be given away.
#[derive(Clone)]
pub(super) struct Places<'a> {
    hands: Vec<Free<'a>>,
    before: &'a [Share],
}

#[derive(Clone)]
struct Free<'a> {
    hands: &'a Hands,
    /// Processors that are not given away and need not rotate.
    free: u32,
}

/// Processors by worker and queue.
type Given<'a> = BTreeMap<(&'a WorkerId, &'a QueueName), u32>;

impl<'a> Places<'a> {
    pub(super) fn new(workers: &'a [Hands], before: &'a [Share]) -> Self {
        let rotating = rotating(workers);
        let hands = workers.iter().map(|hands| {
            let kept = u32::from(rotating.contains(&hands.worker));
            Free { hands, free: hands.processors.saturating_sub(kept) }
        });
        Places { hands: hands.collect(), before }
    }

    /// Gives every queue what it should have, as far as there are processors:
    /// first everybody's minimum, then the rest, by weight.
    pub(super) fn fill(self, queues: &'a [QueueLoad], wanted: &[Standing]) -> Vec<Share> {
        let mut fresh = self.clone();
        let mut given: Given<'a> = Given::new();
        let mut counts: HashMap<&'a QueueName, u32> = HashMap::new();
        for only_minimum in [true, false] {
            let mut open: Vec<(&'a QueueLoad, u32)> = queues
                .iter()
                .zip(wanted)
                .map(|(load, standing)| match only_minimum {
                    true => (load, standing.wanted.min(load.min)),
                    false => (load, standing.wanted),
                })
                .collect();
            loop {
                open.retain(|(load, most)| counts.get(&load.queue).unwrap_or(&0) < most);
                let next = open.iter().enumerate().min_by_key(|(at, (load, _))| {
                    let has = u64::from(counts.get(&load.queue).copied().unwrap_or(0));
                    // Compared as fractions of the weight, in whole numbers.
                    ((has + 1) * 1_000_000 / u64::from(load.weight.max(1)), *at)
                });
                let Some((at, (load, _))) = next else { break };
                match fresh.take(&load.queue) {
                    Some(worker) => {
                        *given.entry((worker, &load.queue)).or_default() += 1;
                        *counts.entry(&load.queue).or_default() += 1;
                    }
                    None => {
                        open.remove(at);
                    }
                }
            }
        }
        // The same counts with what can stay where it is. It may not work out:
        // a processor that stays can be the only one that could serve another
        // queue.
        let shares = self.keep(&counts).unwrap_or(given);
        shares
            .into_iter()
            .map(|((worker, queue), processors)| Share {
                worker: worker.clone(),
                queue: queue.clone(),
                processors,
            })
            .collect()
    }

    /// Places these counts, moving as few processors as possible.
    fn keep(mut self, counts: &HashMap<&'a QueueName, u32>) -> Option<Given<'a>> {
        let mut left: BTreeMap<&'a QueueName, u32> = counts.iter().map(|(q, n)| (*q, *n)).collect();
        let mut given: Given<'a> = Given::new();
        for share in self.before {
            for (queue, left) in left.iter_mut().filter(|(queue, _)| ***queue == share.queue) {
                let able = |free: &&mut Free<'a>| {
                    free.hands.worker == share.worker && free.hands.queues.contains(queue)
                };
                let Some(free) = self.hands.iter_mut().find(able) else { continue };
                let stay = share.processors.min(*left).min(free.free);
                free.free -= stay;
                *left -= stay;
                if stay > 0 {
                    *given.entry((&free.hands.worker, queue)).or_default() += stay;
                }
            }
        }
        for (queue, left) in left {
            for _ in 0..left {
                *given.entry((self.take(queue)?, queue)).or_default() += 1;
            }
        }
        Some(given)
    }

    /// Takes a processor for a queue: of the worker that serves the fewest
    /// queues, as the others can do more.
    fn take(&mut self, queue: &QueueName) -> Option<&'a WorkerId> {
        let able =
            self.hands.iter_mut().filter(|free| free.free > 0 && free.hands.queues.contains(queue));
        let best = able.min_by(|a, b| {
            let few = a.hands.queues.len().cmp(&b.hands.queues.len());
            few.then(b.free.cmp(&a.free)).then(a.hands.worker.cmp(&b.hands.worker))
        })?;
        best.free -= 1;
        Some(&best.hands.worker)
    }
}

/// Workers that keep one processor in the rotation: few that together can serve
/// every queue that anybody can serve.
fn rotating(workers: &[Hands]) -> HashSet<&WorkerId> {
    let mut forgotten: HashSet<&QueueName> = workers
        .iter()
        .filter(|hands| hands.processors > 0)
        .flat_map(|hands| &hands.queues)
        .collect();
    let mut chosen = HashSet::new();
    while !forgotten.is_empty() {
        let reach = |hands: &Hands| {
            let queues: HashSet<&QueueName> = hands.queues.iter().collect();
            queues.intersection(&forgotten).count()
        };
        let open = workers.iter().filter(|hands| hands.processors > 0 && reach(hands) > 0);
        let best = open.max_by(|a, b| {
            let far = reach(a).cmp(&reach(b)).then(a.processors.cmp(&b.processors));
            far.then(b.worker.cmp(&a.worker))
        });
        let Some(best) = best else { break };
        chosen.insert(&best.worker);
        forgotten.retain(|queue| !best.queues.contains(queue));
    }
    chosen
}
