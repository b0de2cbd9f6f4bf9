//! How many processors serve which queue.
//!
//! A queue with a target (`drain_within`) gets processors of its own when the
//! rotation alone would miss it, and a queue with a minimum always has them.
//! All others share the spare processors by rotation, and of every queue at
//! least one processor that can serve it rotates, so that none is forgotten.
//!
//! Nothing flaps: processors come when the target is missed, but leave only
//! when half the time would do with half as many again to spare, several
//! decisions in a row.

mod place;
#[cfg(test)]
mod properties;

use std::collections::HashMap;
use std::time::Duration;

use crate::{QueueName, Share, WorkerId};
use place::Places;

/// How often in a row fewer processors must do before some leave.
pub const CALM: u32 = 3;
/// What must do before processors leave: this part of the target …
const EASY_TARGET: f64 = 0.5;
/// … with so much more work than there is.
const EASY_LOAD: f64 = 1.5;

/// A queue as the decision sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueLoad {
    /// The queue.
    pub queue: QueueName,
    /// Tasks that are due.
    pub ready: u64,
    /// Tasks that are put, a second.
    pub arriving: f64,
    /// How long a task takes a processor; nothing before the first has run.
    pub run_time: Option<Duration>,
    /// How long the oldest ready task has waited.
    pub waited: Duration,
    /// Claims are stopped: processors would do nothing here.
    pub paused: bool,
    /// Least processors of its own.
    pub min: u32,
    /// Most processors of its own.
    pub max: Option<u32>,
    /// Its share when processors are short.
    pub weight: u32,
    /// What is ready should be done within this time.
    pub drain_within: Option<Duration>,
}

/// A worker as the decision sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hands {
    /// The worker.
    pub worker: WorkerId,
    /// The queues it can serve.
    pub queues: Vec<QueueName>,
    /// How many processors it has.
    pub processors: u32,
}

/// How many processors a queue is to have of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The queue.
    pub queue: QueueName,
    /// The processors it should have; it has fewer where they are short.
    pub wanted: u32,
    /// How often in a row fewer would have done.
    pub calm: u32,
}

/// A decision, and what the next one has to know of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// What queues should have; those that should have none are left out.
    pub standings: Vec<Standing>,
    /// Who serves what. Processors that are not named rotate.
    pub shares: Vec<Share>,
}

impl Plan {
    /// The plan behind shares that somebody else decided.
    #[must_use]
    pub fn of(shares: Vec<Share>) -> Self {
        let mut standings: Vec<Standing> = Vec::new();
        for share in &shares {
            match standings.iter_mut().find(|standing| standing.queue == share.queue) {
                Some(standing) => standing.wanted += share.processors,
                None => standings.push(Standing {
                    queue: share.queue.clone(),
                    wanted: share.processors,
                    calm: 0,
                }),
            }
        }
        Plan { standings, shares }
    }

    /// Processors a queue has of its own.
    #[must_use]
    pub fn given(&self, queue: &QueueName) -> u32 {
        let of_queue = self.shares.iter().filter(|share| share.queue == *queue);
        of_queue.map(|share| share.processors).sum()
    }
}

/// Decides anew, from what is and from the decision before.
#[must_use]
pub fn decide(queues: &[QueueLoad], workers: &[Hands], before: &Plan) -> Plan {
    let able: HashMap<&QueueName, u32> = queues
        .iter()
        .map(|load| {
            let can = workers.iter().filter(|hands| hands.queues.contains(&load.queue));
            (&load.queue, can.fold(0u32, |sum, hands| sum.saturating_add(hands.processors)))
        })
        .collect();
    let open = queues.iter().filter(|load| !load.paused && able.get(&load.queue) > Some(&0));
    let rotation = 1.0 / f64::from(u32::try_from(open.count()).unwrap_or(u32::MAX).max(1));
    let mut wanted = Vec::new();
    for load in queues {
        let most = able.get(&load.queue).copied().unwrap_or(0).min(load.max.unwrap_or(u32::MAX));
        let was = before.standings.iter().find(|standing| standing.queue == load.queue);
        wanted.push(want(load, rotation, most, was));
    }
    let shares = Places::new(workers, &before.shares).fill(queues, &wanted);
    let standings = wanted.into_iter().filter(|standing| standing.wanted > 0).collect();
    Plan { standings, shares }
}

/// How many processors of its own a queue should have, at most `most`.
fn want(load: &QueueLoad, rotation: f64, most: u32, was: Option<&Standing>) -> Standing {
    let standing = |wanted: u32, calm| Standing { queue: load.queue.clone(), wanted, calm };
    if load.paused {
        return standing(0, 0);
    }
    let least = load.min.min(most);
    let Some(target) = load.drain_within else { return standing(least, 0) };
    let within = |wanted: u32| wanted.clamp(least, most);
    let (has, calm) = was.map_or((0, 0), |was| (within(was.wanted), was.calm));
    let mut now = need(load, target.as_secs_f64(), 1.0, rotation);
    if load.ready > 0 && load.waited > target {
        // The sum says that it should do, and it does not: the run times are
        // not all that a task costs.
        let ready = u32::try_from(load.ready).unwrap_or(u32::MAX);
        now = now.max(has.saturating_add(1).min(ready));
    }
    let now = within(now);
    if now >= has {
        return standing(now, 0);
    }
    let easy = within(need(load, target.as_secs_f64() * EASY_TARGET, EASY_LOAD, rotation));
    if easy >= has {
        standing(has, 0)
    } else if calm + 1 >= CALM {
        standing(easy, 0)
    } else {
        standing(has, calm + 1)
    }
}

/// The processors that keep up with what arrives and drain what is ready
/// within `target` seconds, with the load taken `times` as large. None when the
/// queue's part of one rotating processor does.
fn need(load: &QueueLoad, target: f64, times: f64, rotation: f64) -> u32 {
    let run_time = load.run_time.map_or(0.0, |run_time| run_time.as_secs_f64());
    #[expect(clippy::cast_precision_loss, reason = "a number of processors, not of tasks")]
    let ready = load.ready as f64;
    // No more than one processor a task, however short the target is.
    let backlog = (run_time * ready / target.max(1e-3)).min(ready);
    let busy = (load.arriving.max(0.0) * run_time + backlog) * times;
    if busy <= rotation {
        return 0;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, and the number is not negative"
    )]
    let needed = busy.ceil() as u32;
    needed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load() -> QueueLoad {
        QueueLoad {
            queue: QueueName::new("mails").expect("a name"),
            ready: 0,
            arriving: 0.0,
            run_time: Some(Duration::from_secs(1)),
            waited: Duration::ZERO,
            paused: false,
            min: 0,
            max: None,
            weight: 1,
            drain_within: Some(Duration::from_secs(60)),
        }
    }

    fn hands(processors: u32) -> Vec<Hands> {
        let queues = vec![load().queue];
        vec![Hands { worker: WorkerId::new("w").expect("a name"), queues, processors }]
    }

    /// What is wanted after so many decisions on the same load.
    fn settled(load: &QueueLoad, before: &Plan, decisions: u32) -> u32 {
        let mut plan = before.clone();
        for _ in 0..decisions {
            plan = decide(std::slice::from_ref(load), &hands(50), &plan);
        }
        plan.given(&load.queue)
    }

    #[test]
    fn the_backlog_and_what_arrives_are_summed_up() {
        let backlog = QueueLoad { ready: 300, ..load() };
        assert_eq!(settled(&backlog, &Plan::default(), 1), 5);
        let both = QueueLoad { ready: 300, arriving: 2.5, ..load() };
        assert_eq!(settled(&both, &Plan::default(), 1), 8);
        let quick = QueueLoad { run_time: Some(Duration::from_millis(1)), ..both };
        assert_eq!(settled(&quick, &Plan::default(), 1), 0, "the rotation does");
    }

    #[test]
    fn without_a_target_only_the_minimum_counts() {
        let loads = [(0, 0), (3, 3)].map(|(min, expected)| {
            (QueueLoad { ready: 100_000, drain_within: None, min, ..load() }, expected)
        });
        for (load, expected) in loads {
            assert_eq!(settled(&load, &Plan::default(), 3), expected);
        }
        let paused = QueueLoad { min: 3, paused: true, ..load() };
        assert_eq!(settled(&paused, &Plan::default(), 1), 0);
    }

    #[test]
    fn processors_leave_only_after_a_calm_while_and_only_what_is_not_needed() {
        let busy = QueueLoad { ready: 600, ..load() };
        let before = decide(&[busy], &hands(50), &Plan::default());
        assert_eq!(before.given(&load().queue), 10);
        // Half of it would do, but not twice over.
        let less = QueueLoad { ready: 300, ..load() };
        assert_eq!(settled(&less, &before, 20), 10);
        let little = QueueLoad { ready: 60, ..load() };
        assert_eq!(settled(&little, &before, CALM - 1), 10);
        assert_eq!(settled(&little, &before, CALM), 3);
        assert_eq!(settled(&load(), &before, CALM), 0);
    }

    #[test]
    fn a_busy_moment_ends_the_calm() {
        let queue = load().queue;
        let mut plan = decide(&[QueueLoad { ready: 600, ..load() }], &hands(50), &Plan::default());
        for round in 0..20 {
            let ready = if round % CALM == CALM - 1 { 600 } else { 0 };
            plan = decide(&[QueueLoad { ready, ..load() }], &hands(50), &plan);
            assert_eq!(plan.given(&queue), 10, "in round {round}");
        }
    }

    #[test]
    fn a_missed_target_asks_for_more_than_the_sum_says() {
        let late = QueueLoad { ready: 5, waited: Duration::from_secs(61), ..load() };
        let unmeasured = QueueLoad { run_time: None, ..late.clone() };
        for late in [late, unmeasured] {
            assert_eq!(settled(&late, &Plan::default(), 1), 1);
            assert_eq!(settled(&late, &Plan::default(), 4), 4);
        }
    }

    #[test]
    fn a_minimum_and_a_maximum_are_kept() {
        let flood = QueueLoad { ready: 100_000, max: Some(4), ..load() };
        assert_eq!(settled(&flood, &Plan::default(), 5), 4);
        let idle = QueueLoad { min: 2, ..load() };
        assert_eq!(settled(&idle, &Plan::default(), 5), 2);
        // The last one rotates.
        let greedy = QueueLoad { min: 1_000, ..load() };
        assert_eq!(settled(&greedy, &Plan::default(), 1), 49);
    }
}
