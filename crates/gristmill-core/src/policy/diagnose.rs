//! What the numbers of any store say about its queues.

use std::time::Duration;

use crate::{CopyPause, Diagnosis, Queue, QueueStats, Schedule, Task, Timestamp, WorkerView};

/// A worker that was silent for longer does not count as serving.
const HEARD_OF: Duration = Duration::from_secs(60);
/// Work that was due for less may just be on its way.
const UNSERVED: Duration = Duration::from_secs(60);

/// A lease that ended is taken back within a second, where anybody works.
const TAKEN_BACK: Duration = Duration::from_secs(60);
/// A task that is held for longer has a handler that most likely hangs.
const HELD: Duration = Duration::from_secs(24 * 3600);

/// Clocks may differ by so much without anyone's fault.
const OFF: Duration = Duration::from_secs(60);

/// Looks at every queue's numbers.
#[must_use]
pub fn queues(queues: &[Queue], stats: &[QueueStats], workers: &[WorkerView]) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    for numbers in stats {
        let Some(queue) = queues.iter().find(|queue| queue.name == numbers.queue) else {
            continue;
        };
        found.extend(one(queue, numbers, workers));
        found.extend(failed(numbers));
    }
    found
}

/// `1 task`, `2 tasks`.
fn tasks(number: u64) -> String {
    if number == 1 { "1 task".to_owned() } else { format!("{number} tasks") }
}

/// `1 task waits`, `2 tasks wait`.
fn tasks_wait(number: u64) -> String {
    let s = if number == 1 { "s" } else { "" };
    format!("{} wait{s}", tasks(number))
}

/// Counts what a person has to look at.
fn failed(stats: &QueueStats) -> Option<Diagnosis> {
    let (name, failed) = (&stats.queue, stats.failed);
    let tasks = tasks(failed);
    (failed > 0).then(|| {
        Diagnosis::note(
            "failed",
            format!("{tasks} of queue '{name}' failed for good"),
            format!(
                "gristmill failed {name} --by-error tells why; then retry, resolve or discard them"
            ),
        )
    })
}

/// Looks at leases (of the oldest processing tasks): those that ended and were not taken
/// back, and those that are kept for longer than any handler should run.
#[must_use]
pub fn leases(processing: &[Task], now: Timestamp) -> Vec<Diagnosis> {
    let leases = || processing.iter().filter_map(|task| Some((task, task.lease.as_ref()?)));
    let over = leases().filter(|(_, lease)| now.since(lease.until) > TAKEN_BACK);
    let over: Vec<Duration> = over.map(|(_, lease)| now.since(lease.until)).collect();
    let mut found = Vec::new();
    if let Some(longest) = over.iter().max() {
        found.push(Diagnosis::grave(
            "leases_over",
            format!(
                "the leases of {} ended, one {} s ago, and nobody took them back",
                tasks(over.len() as u64),
                longest.as_secs()
            ),
            "start a worker or 'gristmill serve' on this store: it takes them back",
        ));
    }
    let held = leases().filter(|(task, lease)| {
        lease.until > now && task.claimed_at.is_some_and(|claimed| now.since(claimed) > HELD)
    });
    let mut held = held.peekable();
    if let Some((task, lease)) = held.peek().copied() {
        let (id, worker, tasks) = (task.id, &lease.worker, tasks(held.count() as u64));
        found.push(Diagnosis::note(
            "held_long",
            format!("{tasks} held for over a day, as task {id} is by worker {worker}"),
            "look whether their handlers hang: a queue's timeout ends those that do",
        ));
    }
    found
}

/// Compares the store's clock with this machine's, between two looks at the latter.
#[must_use]
pub fn clocks(before: Timestamp, theirs: Timestamp, after: Timestamp) -> Option<Diagnosis> {
    let (ahead, behind) = (theirs.since(after), before.since(theirs));
    let off = ahead.max(behind);
    let word = if ahead > behind { "ahead of" } else { "behind" };
    (off > OFF).then(|| {
        Diagnosis::note(
            "clocks_differ",
            format!("the store's clock is {} s {word} this machine's", off.as_secs()),
            "set both by NTP: the store's clock decides when tasks are due and leases end, this \
             one what tables call 'ago'",
        )
    })
}

/// Looks for what lies further ahead of the clock than anybody could have meant:
/// schedules that are decided, and tasks (the newest pending ones) that were put or
/// tried then.
#[must_use]
pub fn ahead(schedules: &[Schedule], pending: &[Task], now: Timestamp) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    for schedule in schedules.iter().filter(|schedule| schedule.is_ahead(now)) {
        let (name, ahead) = (&schedule.declared.name, schedule.decided_until.since(now));
        found.push(Diagnosis::grave(
            "schedule_ahead",
            format!(
                "schedule '{name}' is decided {} s ahead of the clock and does not fire until \
                 then: the clock was wrong, or is",
                ahead.as_secs()
            ),
            format!(
                "set the clock right; a program that runs meanwhile brings the schedule back, as \
                 do gristmill schedules pause {name} and resume {name}"
            ),
        ));
    }
    let ahead: Vec<Duration> =
        pending.iter().map(|task| last_touched(task).since(now)).filter(|by| *by > OFF).collect();
    if let Some(most) = ahead.iter().max() {
        found.push(Diagnosis::grave(
            "tasks_ahead",
            format!(
                "of the pending tasks {} put or tried up to {} s ahead of the clock: the clock was \
                 wrong, or is",
                if ahead.len() == 1 { "1 was".to_owned() } else { format!("{} were", ahead.len()) },
                most.as_secs()
            ),
            "set the clock right; tasks put meanwhile are due when they say (gristmill list)",
        ));
    }
    found
}

/// When it was put, or when an attempt of it last ended.
fn last_touched(task: &Task) -> Timestamp {
    let ended = task.history.last().map(|attempt| attempt.ended_at);
    ended.map_or(task.created_at, |ended| ended.max(task.created_at))
}

fn one(queue: &Queue, stats: &QueueStats, workers: &[WorkerView]) -> Option<Diagnosis> {
    let name = &queue.name;
    let waited = stats.oldest_ready.unwrap_or_default();
    if let Some(pause) = CopyPause::of(queue) {
        return (stats.total() > 0).then(|| copied(queue, &pause, stats));
    }
    if queue.paused && stats.pending() > 0 {
        let by = queue.paused_by.as_deref().unwrap_or("somebody");
        return Some(Diagnosis::note(
            "paused",
            format!("queue '{name}' was paused by {by}, and {}", tasks_wait(stats.pending())),
            format!("when the reason is gone: gristmill resume {name}"),
        ));
    }
    if !stats.can_accept() {
        return Some(Diagnosis::grave(
            "full",
            format!("queue '{name}' is full, with {} pending", tasks(stats.pending())),
            "add workers, or raise its capacity; puts are refused until there is room",
        ));
    }
    let served = workers
        .iter()
        .any(|worker| worker.silent_for < HEARD_OF && worker.report.queues.contains(name));
    if waited > UNSERVED && !served && stats.processing == 0 {
        // A note, for cron may drain it once a day.
        return Some(Diagnosis::note(
            "not_served",
            format!(
                "{} of queue '{name}' due, the oldest for {} s, and no worker has reported that \
                 it serves it",
                tasks(stats.ready),
                waited.as_secs()
            ),
            format!("start a worker that serves '{name}'; workers in SQL do not report"),
        ));
    }
    if let Some(most) = queue.settings.max_wait.filter(|most| waited > *most) {
        return Some(Diagnosis::grave(
            "waits_too_long",
            format!(
                "the oldest task of queue '{name}' has been due for {} s; its max_wait is {} s",
                waited.as_secs(),
                most.as_secs()
            ),
            "add processors or workers, or look at what its handler waits for",
        ));
    }
    None
}

/// A queue that a copy paused must not be advised to go on: its tasks may run
/// elsewhere, or have not all come.
fn copied(queue: &Queue, pause: &CopyPause, stats: &QueueStats) -> Diagnosis {
    let (name, tasks) = (&queue.name, tasks(stats.total()));
    match pause {
        CopyPause::Away { .. } => Diagnosis::note(
            "copied_away",
            format!("queue '{name}' was copied to another store and keeps {tasks}"),
            format!(
                "work on the other store, and do not resume it here: they would run twice; when \
                 nobody needs them any more: gristmill cancel --queue {name}, gristmill discard \
                 --queue {name}"
            ),
        ),
        CopyPause::Arriving => Diagnosis::grave(
            "half_copied",
            format!(
                "a copy into queue '{name}' has not ended, and {} for it",
                tasks_wait(stats.total())
            ),
            "repeat the copy with the same words: it goes on where it ended",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Counters, LeaseView, Payload, QueueName, State, TaskId, WorkerId};

    fn queue() -> Queue {
        Queue::new(QueueName::new("q").expect("a name"), 10_000, Timestamp::EPOCH)
    }

    fn stats() -> QueueStats {
        QueueStats {
            queue: queue().name,
            number: 10_000,
            ready: 5,
            delayed: 0,
            blocked: 0,
            processing: 0,
            failed: 0,
            done_kept: 0,
            oldest_ready: Some(Duration::from_secs(1)),
            paused: false,
            capacity: None,
            counters: Counters::default(),
        }
    }

    fn at(change: impl FnOnce(&mut Queue, &mut QueueStats)) -> Vec<&'static str> {
        let (mut queue, mut stats) = (queue(), stats());
        change(&mut queue, &mut stats);
        queues(&[queue], &[stats], &[]).iter().map(|found| found.code).collect()
    }

    #[test]
    fn a_healthy_queue_gives_nothing_to_say() {
        assert!(at(|_, _| {}).is_empty());
    }

    #[test]
    fn what_a_copy_paused_is_not_advised_to_go_on() {
        let paused_by = |pause: CopyPause, tasks: u64| {
            let mut queue = queue();
            (queue.paused, queue.paused_by) = (true, Some(pause.to_string()));
            let mut stats = stats();
            stats.ready = tasks;
            queues(&[queue], &[stats], &[])
        };
        let away = CopyPause::Away { whole: None, after: None };
        let [found] = &paused_by(away.clone(), 5)[..] else { panic!("one thing to say") };
        assert_eq!((found.code, found.grave), ("copied_away", false));
        assert!(!found.remedy.contains("gristmill resume"), "{}", found.remedy);
        assert!(paused_by(away, 0).is_empty());
        assert_eq!(paused_by(CopyPause::Arriving, 5)[0].code, "half_copied");
    }

    #[test]
    fn what_stands_still_is_told() {
        assert_eq!(at(|queue, _| queue.paused = true), ["paused"]);
        assert!(at(|queue, stats| (queue.paused, stats.ready) = (true, 0)).is_empty());
        assert_eq!(at(|_, stats| stats.capacity = Some(5)), ["full"]);
        let long = Some(Duration::from_secs(600));
        assert_eq!(at(|_, stats| stats.oldest_ready = long), ["not_served"]);
        assert_eq!(at(|_, stats| stats.failed = 1), ["failed"]);
        let late = at(|queue, stats| {
            (stats.oldest_ready, stats.processing) = (long, 1);
            queue.settings.max_wait = Some(Duration::from_secs(60));
        });
        assert_eq!(late, ["waits_too_long"]);
    }

    #[test]
    fn clocks_may_differ_by_a_minute() {
        let at = |seconds: i64| Timestamp::from_micros(1_000_000_000 + seconds * 1_000_000);
        let look = |theirs| clocks(at(0), at(theirs), at(2)).map(|found| found.found);
        assert_eq!(look(1), None);
        assert_eq!(look(62), None);
        let said = "the store's clock is 61 s ahead of this machine's".to_owned();
        assert_eq!(look(63), Some(said));
        let said = "the store's clock is 61 s behind this machine's".to_owned();
        assert_eq!(look(-61), Some(said));
    }

    #[test]
    fn leases_that_nobody_takes_back_are_told() {
        let now = Timestamp::from_micros(1_000_000_000_000_000);
        let held = |claimed: u64, over: u64| {
            let mut task = Task::new(TaskId(7), queue().name, Payload::raw(""), now);
            task.state = State::Processing;
            task.claimed_at = Some(now.before(Duration::from_secs(claimed)));
            let until = now.after(Duration::from_secs(30)).before(Duration::from_secs(over));
            let worker = WorkerId::new("w").expect("a name");
            task.lease = Some(LeaseView { worker, until, slot: None, progress: None });
            task
        };
        let codes = |tasks: &[Task]| -> Vec<&str> {
            leases(tasks, now).iter().map(|found| found.code).collect()
        };
        assert!(codes(&[held(100, 0), held(100, 90)]).is_empty());
        assert_eq!(codes(&[held(100, 91)]), ["leases_over"]);
        assert_eq!(codes(&[held(86_401, 0), held(100, 200)]), ["leases_over", "held_long"]);
    }
}
