//! The look at a store after each behaviour: its kept counts against its
//! tasks, and its tasks against what must always be true.

use std::collections::{BTreeMap, BTreeSet};

use gristmill_core::{QueueName, QueueStats, StandingPlace, State, Task, Timestamp};

use crate::handle::Handle;

/// Audits the store twice: as it stands, when only the split of ready and
/// delayed may lag, and after a sweep, when nothing may.
pub(crate) async fn audit(handle: &Handle) {
    look(handle, false).await;
    handle.store.sweep().await.expect("a sweep");
    look(handle, true).await;
}

async fn look(handle: &Handle, swept: bool) {
    let tasks = handle.all().await;
    let stats = handle.store.stats().await.expect("stats");
    let now = handle.now();
    let ids: Vec<_> = tasks.iter().map(|task| task.id).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "ids rise and are unique");
    for task in &tasks {
        shape(task);
    }
    for counts in &stats {
        let of_queue = tasks.iter().filter(|task| task.queue == counts.queue);
        let of_queue: Vec<&Task> = of_queue.collect();
        numbers(counts, &of_queue, now, swept);
        places(handle, &counts.queue, &of_queue, swept).await;
    }
    slots(&tasks);
    let known: BTreeSet<_> = stats.iter().map(|s| &s.queue).collect();
    assert!(tasks.iter().all(|task| known.contains(&task.queue)));
}

/// What is true of every task by itself.
fn shape(task: &Task) {
    let id = task.id;
    let state = task.state;
    assert_eq!(
        task.lease.is_some(),
        state == State::Processing,
        "a lease is there while {id} is processing: {task:?}"
    );
    assert!(!task.blocked || state == State::Pending, "only pending tasks are blocked: {task:?}");
    assert!(
        !task.cancel_requested || state == State::Processing,
        "only a processing task waits for its cancel: {task:?}"
    );
    match state {
        State::Failed => assert!(task.failed_at.is_some(), "{task:?}"),
        State::Pending | State::Processing => assert!(task.failed_at.is_none(), "{task:?}"),
        State::Done => assert!(task.resolved_at.is_some(), "{task:?}"),
    }
    assert!(task.attempts <= task.claims, "{task:?}");
    assert!(task.expiries <= task.attempts, "{task:?}");
    assert_eq!(task.claimed_at.is_some(), task.claims > 0, "{task:?}");
    assert!(task.history.len() <= 10, "{task:?}");
    assert!(task.history.iter().all(|a| a.claimed_at <= a.ended_at), "{task:?}");
}

/// What the kept counts must be.
fn numbers(counts: &QueueStats, tasks: &[&Task], now: Timestamp, swept: bool) {
    let count = |wanted: &dyn Fn(&Task) -> bool| -> u64 {
        tasks.iter().filter(|task| wanted(task)).count() as u64
    };
    let pending = |task: &Task| task.state == State::Pending && !task.blocked;
    let shown = [
        count(&|t| pending(t) && t.run_at <= now),
        count(&|t| pending(t) && t.run_at > now),
        count(&|t| t.state == State::Pending && t.blocked),
        count(&|t| t.state == State::Processing),
        count(&|t| t.state == State::Failed),
        count(&|t| t.state == State::Done),
    ];
    let kept = [
        counts.ready,
        counts.delayed,
        counts.blocked,
        counts.processing,
        counts.failed,
        counts.done_kept,
    ];
    let queue = &counts.queue;
    if swept {
        assert_eq!(
            kept, shown,
            "{queue}: counts of ready, delayed, blocked, processing, failed, done (kept, listed)"
        );
    } else {
        let joined = |n: [u64; 6]| [n[0] + n[1], n[2], n[3], n[4], n[5]];
        assert_eq!(
            joined(kept),
            joined(shown),
            "{queue}: counts of ready or delayed, blocked, processing, failed, done (kept, listed)"
        );
    }
    let c = &counts.counters;
    let left = c.done + c.cancelled + c.discarded + c.resolved + c.subject_gone;
    assert_eq!(
        c.put,
        counts.total() + left,
        "{queue}: every task that was put stands or was counted as it left: {counts:?}"
    );
}

/// At most one task in each place of a key, and blocked behind the other.
async fn places(handle: &Handle, queue: &QueueName, tasks: &[&Task], swept: bool) {
    let keys: BTreeSet<&str> = tasks.iter().filter_map(|t| t.key.as_deref()).collect();
    // Each key is looked at by the tasks themselves; the store's own search is
    // asked for a few, since it is no cheap question for thousands.
    for key in keys.iter().take(64) {
        let found = handle.places(queue, key).await;
        let at = |place| found.iter().filter(move |(_, p)| *p == place);
        let waiting: Vec<_> = at(StandingPlace::Waiting).collect();
        let in_flight: Vec<_> = at(StandingPlace::InFlight).collect();
        assert!(waiting.len() <= 1, "{queue} {key}: {found:?}");
        assert!(in_flight.len() <= 1, "{queue} {key}: {found:?}");
        for (id, _) in waiting {
            let task = tasks.iter().find(|t| t.id == *id).expect("it is listed");
            if !in_flight.is_empty() {
                assert!(task.blocked, "{queue} {key}: behind the one in flight");
            } else if swept {
                assert!(!task.blocked, "{queue} {key}: nothing is in flight");
            }
        }
    }
    let mut standing: BTreeMap<&str, usize> = BTreeMap::new();
    for task in tasks {
        if let (Some(key), State::Pending | State::Processing) = (task.key.as_deref(), task.state) {
            let n = standing.entry(key).or_default();
            *n += 1;
            assert!(*n <= 2, "{queue} {key}: more tasks than places");
        }
    }
}

/// No slot is held twice within a group of a queue.
pub(crate) fn slots(tasks: &[Task]) {
    let mut taken = BTreeSet::new();
    for task in tasks {
        if let Some(slot) = task.lease.as_ref().and_then(|lease| lease.slot) {
            assert!(
                taken.insert((&task.queue, task.group.as_deref(), slot)),
                "slot {slot} is held twice: {task:?}"
            );
        }
    }
}
