//! What holds of every decision, tried with loads and workers of all kinds.

use std::time::Duration;

use proptest::prelude::*;

use super::{CALM, Hands, Plan, QueueLoad, decide};
use crate::{QueueName, WorkerId};

const QUEUES: usize = 4;

fn queue(number: usize) -> QueueName {
    QueueName::new(&format!("q{number}")).expect("a name")
}

prop_compose! {
    fn load()(
        ready in 0u64..5_000,
        arriving in 0.0f64..50.0,
        run_ms in proptest::option::of(1u64..2_000),
        waited in 0u64..200,
        paused in prop::bool::weighted(0.1),
        min in 0u32..4,
        spread in proptest::option::of(0u32..6),
        weight in 1u32..5,
        target in proptest::option::of(1u64..120),
    ) -> QueueLoad {
        QueueLoad {
            queue: queue(0),
            ready,
            arriving,
            run_time: run_ms.map(Duration::from_millis),
            waited: Duration::from_secs(waited),
            paused,
            min,
            max: spread.map(|spread| min + spread),
            weight,
            drain_within: target.map(Duration::from_secs),
        }
    }
}

fn loads() -> impl Strategy<Value = Vec<QueueLoad>> {
    prop::collection::vec(load(), QUEUES).prop_map(|mut loads| {
        for (number, load) in loads.iter_mut().enumerate() {
            load.queue = queue(number);
        }
        loads
    })
}

fn workers() -> impl Strategy<Value = Vec<Hands>> {
    let one = (prop::collection::vec(any::<bool>(), QUEUES), 0u32..8);
    prop::collection::vec(one, 1..6).prop_map(|all| {
        let hands = all.into_iter().enumerate().map(|(number, (serves, processors))| Hands {
            worker: WorkerId::new(&format!("w{number}")).expect("a name"),
            queues: serves
                .iter()
                .enumerate()
                .filter(|(_, on)| **on)
                .map(|(n, _)| queue(n))
                .collect(),
            processors,
        });
        hands.collect()
    })
}

fn taken(plan: &Plan, worker: &Hands) -> u32 {
    let of_worker = plan.shares.iter().filter(|share| share.worker == worker.worker);
    of_worker.map(|share| share.processors).sum()
}

proptest! {
    #[test]
    fn nobody_is_given_more_than_there_is_and_every_queue_has_a_rotating_processor(
        loads in loads(), workers in workers(), earlier in workers(), rounds in 0usize..6,
    ) {
        // The plan before may speak of workers that are gone or have shrunk.
        let mut plan = decide(&loads, &earlier, &Plan::default());
        for _ in 0..=rounds {
            plan = decide(&loads, &workers, &plan);
        }
        for share in &plan.shares {
            let worker = workers.iter().find(|hands| hands.worker == share.worker);
            let worker = worker.expect("a worker that is there");
            prop_assert!(share.processors > 0 && worker.queues.contains(&share.queue));
        }
        for worker in &workers {
            prop_assert!(taken(&plan, worker) <= worker.processors);
        }
        for load in &loads {
            let able = |hands: &&Hands| hands.queues.contains(&load.queue) && hands.processors > 0;
            let rotates = |hands: &Hands| hands.processors > taken(&plan, hands);
            prop_assert!(
                !workers.iter().any(|hands| able(&hands))
                    || workers.iter().filter(able).any(rotates),
                "{} is forgotten", load.queue
            );
            let given = plan.given(&load.queue);
            prop_assert!(load.max.is_none_or(|max| given <= max));
            prop_assert!(given == 0 || !load.paused);
            prop_assert!(load.drain_within.is_some() || given <= load.min);
        }
    }

    #[test]
    fn the_same_load_comes_to_rest(loads in loads(), workers in workers()) {
        let processors: u32 = workers.iter().map(|hands| hands.processors).sum();
        let mut plan = Plan::default();
        for _ in 0..processors + 2 * CALM {
            plan = decide(&loads, &workers, &plan);
        }
        for _ in 0..2 * CALM {
            let next = decide(&loads, &workers, &plan);
            prop_assert_eq!(&next.shares, &plan.shares);
            plan = next;
        }
        // Another leader goes on where this one stopped. What queues have in
        // vain wished for it cannot know.
        if plan.standings.iter().all(|standing| plan.given(&standing.queue) == standing.wanted) {
            let next = decide(&loads, &workers, &Plan::of(plan.shares.clone()));
            prop_assert_eq!(next.shares, plan.shares);
        }
    }

    #[test]
    fn minima_come_first(loads in loads(), processors in 1u32..40) {
        let queues: Vec<QueueName> = (0..QUEUES).map(queue).collect();
        let workers = [Hands { worker: WorkerId::new("w").expect("a name"), queues, processors }];
        let plan = decide(&loads, &workers, &Plan::default());
        let minima: u32 = loads.iter().filter(|load| !load.paused).map(|load| load.min).sum();
        if minima < processors {
            for load in loads.iter().filter(|load| !load.paused) {
                prop_assert!(plan.given(&load.queue) >= load.min);
            }
        } else {
            prop_assert_eq!(taken(&plan, &workers[0]), processors - 1, "all but the rotating one");
        }
    }

    #[test]
    fn where_processors_are_short_weights_decide(
        weights in prop::collection::vec(1u32..6, QUEUES), processors in 5u32..60,
    ) {
        let loads: Vec<QueueLoad> = weights
            .iter()
            .enumerate()
            .map(|(number, weight)| QueueLoad {
                queue: queue(number),
                ready: 1_000_000,
                arriving: 0.0,
                run_time: Some(Duration::from_secs(1)),
                waited: Duration::ZERO,
                paused: false,
                min: 0,
                max: None,
                weight: *weight,
                drain_within: Some(Duration::from_secs(1)),
            })
            .collect();
        let queues: Vec<QueueName> = (0..QUEUES).map(queue).collect();
        let workers = [Hands { worker: WorkerId::new("w").expect("a name"), queues, processors }];
        let plan = decide(&loads, &workers, &Plan::default());
        prop_assert_eq!(taken(&plan, &workers[0]), processors - 1);
        let sum: u32 = weights.iter().sum();
        for load in &loads {
            let fair = f64::from(processors - 1) * f64::from(load.weight) / f64::from(sum);
            let given = f64::from(plan.given(&load.queue));
            prop_assert!((given - fair).abs() <= 2.0, "{given} instead of {fair}");
        }
    }
}
