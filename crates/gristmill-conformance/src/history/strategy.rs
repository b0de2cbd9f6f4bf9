//! Which histories are tried: mostly puts, claims and settlements, with
//! everything else mixed in often enough to meet them.

use std::time::Duration;

use gristmill_core::{Action, State};
use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::step::{
    Back, Begin, Change, End, Ending, GROUPS, KEYS, Meant, QUEUES, SOURCES, Shown, Sketch, Step,
    WORKERS,
};

/// Histories of up to that many steps. Each plays on a few queues only: on all
/// of them at once, tasks would hardly ever meet.
pub(super) fn histories(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    let declared: Vec<u8> = (0..ABSENT).collect();
    subsequence(declared, 1..=3).prop_flat_map(move |queues| vec(step(&queues), 1..=steps))
}

/// The last of the queues is the one that nobody declared.
const ABSENT: u8 = QUEUES.len() as u8 - 1;

fn index(names: &[&str]) -> std::ops::Range<u8> {
    0..u8::try_from(names.len()).expect("few names")
}

/// One of the history's queues, and seldom the one that nobody declared.
fn queue(queues: &[u8]) -> impl Strategy<Value = u8> + use<> {
    prop_oneof![40 => select(queues.to_vec()), 1 => Just(ABSENT)]
}

fn back() -> impl Strategy<Value = Back> {
    prop_oneof![3 => 0u8..4, 1 => 0u8..40].prop_map(Back)
}

fn begin() -> impl Strategy<Value = Begin> {
    prop_oneof![
        7 => Just(Begin::Now),
        2 => (0u16..90).prop_map(Begin::In),
        1 => (0u16..90).prop_map(Begin::At),
        1 => (0u16..90).prop_map(Begin::Ago),
    ]
}

fn sketch() -> impl Strategy<Value = Sketch> {
    (
        0u8..3,
        weighted(0.6, index(&KEYS)),
        weighted(0.3, index(&GROUPS)),
        weighted(0.3, index(&SOURCES)),
        prop_oneof![3 => Just(0i16), 1 => -2i16..=2],
        begin(),
        weighted(0.2, 0u8..3),
        weighted(0.1, 0u8..3),
        proptest::bool::weighted(0.03),
    )
        .prop_map(|(payload, key, group, source, priority, begin, id, attempts, invalid)| {
            Sketch { payload, key, group, source, priority, begin, id, attempts, invalid }
        })
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        6 => Just(End::Done),
        3 => Just(End::Error),
        1 => Just(End::TimedOut),
        2 => (0u16..90).prop_map(End::RetryIn),
        5 => Just(End::Fail),
        1 => Just(End::Release),
        1 => Just(End::ReleaseStarted),
        1 => (0u16..90).prop_map(End::ReleaseIn),
        1 => Just(End::Cancelled),
    ]
}

fn shown() -> impl Strategy<Value = Shown> {
    prop_oneof![
        12 => Just(Shown::Own),
        2 => back().prop_map(Shown::Of),
        1 => Just(Shown::Unknown),
    ]
}

fn ending(queues: &[u8]) -> impl Strategy<Value = Ending> + use<> {
    let follow_ups = prop_oneof![4 => Just(Vec::new()), 1 => vec((queue(queues), sketch()), 1..3)];
    (back(), shown(), end(), follow_ups).prop_map(|(lease, token, end, follow_ups)| Ending {
        lease,
        token,
        end,
        follow_ups,
    })
}

fn advance() -> impl Strategy<Value = Duration> {
    // Within a second, within a lease, past it, past the keeping times.
    select(vec![1u64, 999, 1_000, 7_000, 30_000, 61_000, 130_000, 400_000, 4_000_000])
        .prop_map(Duration::from_millis)
}

fn meant(queues: &[u8]) -> impl Strategy<Value = Meant> + use<> {
    prop_oneof![
        vec(back(), 1..4).prop_map(Meant::Tasks),
        (
            weighted(0.3, queue(queues)),
            weighted(0.2, select(State::ALL.to_vec())),
            weighted(0.3, index(&KEYS)),
            weighted(0.1, index(&SOURCES)),
        )
            .prop_map(|(queue, state, key, source)| Meant::Matching {
                queue,
                state,
                key,
                source
            }),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => Just(Action::Retry),
        2 => Just(Action::Cancel),
        1 => Just(Action::Resolve),
        1 => Just(Action::Discard),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        of(1u32..4).prop_map(Change::MaxAttempts),
        any::<bool>().prop_map(Change::Unique),
        (0u8..3).prop_map(Change::OnDuplicate),
        of(1u64..6).prop_map(Change::Capacity),
        of(10u16..300).prop_map(Change::KeepDone),
        of(10u16..300).prop_map(Change::KeepFailed),
        (1u16..200).prop_map(Change::Lease),
        (1u16..500).prop_map(Change::IdWindow),
        of(0u16..300).prop_map(Change::UniqueFor),
    ]
}

fn step(queues: &[u8]) -> impl Strategy<Value = Step> + use<> {
    prop_oneof![
        30 => (queue(queues), tasks(), proptest::bool::weighted(0.2))
            .prop_map(|(queue, tasks, atomic)| Step::Put { queue, tasks, atomic }),
        25 => (
            queue(queues),
            1u8..5,
            index(&WORKERS),
            weighted(0.2, index(&SOURCES)),
            weighted(0.2, 1u16..200),
        )
            .prop_map(|(queue, max, worker, source, lease)| Step::Claim {
                queue,
                max,
                worker,
                source,
                lease
            }),
        25 => vec(ending(queues), 1..4).prop_map(Step::Settle),
        4 => (back(), shown(), 1u16..200, vec((back(), any::<u8>()), 0..3)).prop_map(
            |(lease, token, seconds, told)| Step::Extend { lease, token, seconds, told }
        ),
        14 => advance().prop_map(Step::Advance),
        5 => Just(Step::Reclaim),
        4 => Just(Step::Sweep),
        12 => (action(), meant(queues), 1u8..5, any::<bool>())
            .prop_map(|(action, meant, limit, note)| Step::Operate { action, meant, limit, note }),
        2 => (queue(queues), proptest::bool::weighted(0.3)).prop_map(|(queue, paused)| Step::Pause { queue, paused }),
        4 => (queue(queues), change()).prop_map(|(queue, change)| Step::Override { queue, change }),
        1 => queue(queues).prop_map(|queue| Step::Reset { queue }),
        2 => queue(queues).prop_map(|queue| Step::Find { queue }),
        1 => (queue(queues), 1u16..4_000).prop_map(|(queue, back)| Step::Minutes { queue, back }),
        9 => other(queues),
    ]
}

fn tasks() -> impl Strategy<Value = Vec<Sketch>> {
    prop_oneof![3 => vec(sketch(), 1..2), 2 => vec(sketch(), 2..6)]
}

/// Contracts, schedules, roles and workers.
fn other(queues: &[u8]) -> impl Strategy<Value = Step> + use<> {
    let who = || index(&WORKERS);
    prop_oneof![
        1 => (queue(queues), 0u8..2, of(0u8..2), any::<bool>()).prop_map(
            |(queue, text, replaces, breaking)| Step::Contract { queue, text, replaces, breaking }
        ),
        1 => (any::<bool>(), queue(queues))
            .prop_map(|(overlap_skip, queue)| Step::Schedule { overlap_skip, queue }),
        1 => Just(Step::Unschedule),
        3 => proptest::bool::weighted(0.7).prop_map(Step::PauseSchedule),
        8 => (-100i16..100, vec(sketch(), 0..3), proptest::bool::weighted(0.3))
            .prop_map(|(behind, tasks, by_hand)| Step::Fire { behind, tasks, by_hand }),
        5 => (who(), 1u16..1_000).prop_map(|(who, hold)| Step::Campaign { who, hold }),
        1 => who().prop_map(|who| Step::Resign { who }),
        4 => select(vec![1u8, 1, 2, 0]).prop_map(|term| Step::Publish { term }),
        2 => who().prop_map(|who| Step::Report { who }),
        1 => who().prop_map(|who| Step::Forget { who }),
    ]
}
