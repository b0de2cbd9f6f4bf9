//! What somebody should look at, in words, with the way to it. Pure: numbers in, words
//! out.

use std::time::Duration;

use gristmill::QueueStats;
use gristmill::port::{CopyPause, Diagnosis, Queue, WorkerView};

use super::fields::query;
use super::trend::Trend;
use super::words::{age, counted, number};

/// A worker that said nothing for so long is not counted on.
pub(crate) const HEARD_OF: Duration = Duration::from_secs(60);
/// What was due for less may just be on its way to somebody.
const ON_ITS_WAY: Duration = Duration::from_secs(5);
/// A store that takes longer for its numbers is slow.
const SLOW: Duration = Duration::from_millis(500);
/// A transaction that is open for longer is forgotten rather than long.
const OPEN_LONG: Duration = Duration::from_secs(60);
/// Most that is listed: the first ones are the grave ones.
pub(crate) const LISTED: usize = 12;

/// One thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// Whether something is lost or held up until somebody acts.
    pub(crate) grave: bool,
    pub(crate) words: String,
    /// Where to act, from the first page, and what that is called; nothing where no page
    /// helps.
    pub(crate) place: String,
    pub(crate) link: &'static str,
}

/// What is known of one queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) stats: &'a QueueStats,
    pub(crate) queue: Option<&'a Queue>,
    pub(crate) trend: &'a Trend,
    /// Whether anybody serves it.
    pub(crate) served: bool,
}

/// How the store answers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Answered {
    /// How long it took for its numbers.
    pub(crate) took: Duration,
    /// For how long the oldest transaction in its database is open.
    pub(crate) oldest_transaction: Duration,
}

/// All of it, the grave things first.
pub(crate) fn notices(
    queues: &[Known<'_>],
    workers: &[WorkerView],
    checked: &[Diagnosis],
    store: Answered,
) -> Vec<Notice> {
    let mut found: Vec<Notice> = Vec::new();
    let Answered { took, oldest_transaction } = store;
    if oldest_transaction > OPEN_LONG {
        found.push(Notice {
            grave: oldest_transaction > OPEN_LONG * 10,
            words: format!(
                "Somebody's transaction in the store's database has been open for {}: dead rows \
                 stay until it ends, and claims walk over them. 'gristmill doctor' names it.",
                age(oldest_transaction)
            ),
            place: String::new(),
            link: "",
        });
    }
    if took > SLOW {
        found.push(Notice {
            grave: true,
            words: format!("The store took {} for its numbers: it is slow, or far away.", ms(took)),
            place: "readyz".to_owned(),
            link: "is it ready?",
        });
    }
    found.extend(checked.iter().map(diagnosed));
    for known in queues {
        found.extend(waiting(known));
        found.extend(failing(known));
    }
    for worker in workers {
        let holding: u64 = worker.report.processors.iter().map(|p| u64::from(p.holding)).sum();
        if worker.silent_for >= HEARD_OF && holding > 0 {
            found.push(Notice {
                grave: false,
                words: format!(
                    "Worker {} on {} held {} and has been silent for {}: they come back when \
                     their leases end.",
                    worker.report.id,
                    worker.report.host,
                    counted(holding, "task"),
                    age(worker.silent_for)
                ),
                place: "workers".to_owned(),
                link: "workers",
            });
        }
    }
    found.sort_by_key(|notice| !notice.grave);
    found
}

/// What `doctor` says of clocks and leases.
fn diagnosed(one: &Diagnosis) -> Notice {
    let (place, link) = match one.code {
        "schedule_ahead" => ("schedules", "schedules"),
        "tasks_ahead" => ("tasks?state=pending", "the newest tasks"),
        _ => ("workers", "workers"),
    };
    let sentence = |text: &str| {
        let mut letters = text.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>())
    };
    let words: Vec<String> =
        [&one.found, &one.remedy].into_iter().filter_map(|text| sentence(text)).collect();
    Notice {
        grave: one.grave,
        words: format!("{}.", words.join(". ")),
        place: place.to_owned(),
        link,
    }
}

fn ms(span: Duration) -> String {
    super::words::span(Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
}

/// So many do.
fn wait(tasks: u64) -> String {
    format!("{} {}", counted(tasks, "task"), if tasks == 1 { "waits" } else { "wait" })
}

/// Why tasks of a queue wait, if for no good reason. One reason: the first explains the
/// others.
fn waiting(known: &Known<'_>) -> Option<Notice> {
    let stats = known.stats;
    let name = &stats.queue;
    let to_queue = |grave, words: String| {
        Some(Notice { grave, words, place: format!("queues/{name}"), link: "the queue" })
    };
    if let Some(pause) = known.queue.and_then(CopyPause::of) {
        let words = match pause {
            CopyPause::Away { .. } => format!(
                "{name} was copied to another store and keeps {}: do not resume it here, they \
                 would run twice.",
                counted(stats.total(), "task")
            ),
            CopyPause::Arriving => {
                format!("A copy into {name} has not ended: repeat it, and it goes on.")
            }
        };
        return if stats.total() > 0 { to_queue(true, words) } else { None };
    }
    let waited = stats.oldest_ready.unwrap_or_default();
    if stats.paused && stats.pending() > 0 {
        let by = known.queue.and_then(|queue| queue.paused_by.as_deref()).unwrap_or("somebody");
        let words = format!("{name} was paused by {by}, and {}.", wait(stats.pending()));
        return to_queue(false, words);
    }
    if !stats.can_accept() {
        let words = format!(
            "{name} is full: {} are pending, and puts are refused until there is room.",
            counted(stats.pending(), "task")
        );
        return to_queue(true, words);
    }
    if stats.ready > 0 && !known.served && stats.processing == 0 && waited > ON_ITS_WAY {
        let words =
            format!("Nobody serves {name}: {}, the oldest for {}.", wait(stats.ready), age(waited));
        return to_queue(true, words);
    }
    let most = known.queue.and_then(|queue| queue.settings.max_wait)?;
    if waited > most {
        let words = format!(
            "{name} is late: its oldest task has been due for {}, and its max_wait is {}.",
            age(waited),
            super::words::span(most)
        );
        return to_queue(true, words);
    }
    None
}

/// Whether failures of a queue rise, or stand.
fn failing(known: &Known<'_>) -> Option<Notice> {
    let (name, failed) = (&known.stats.queue, known.stats.failed);
    let (lately, before) = known.trend.failures();
    let place = format!("failed?{}", query([("queue", Some(name.as_str()))]));
    if lately > 0 && lately > before.saturating_mul(2) {
        let words = format!(
            "Failures of {name} rise: {} failed in the last 15 minutes, {} in the 15 before.",
            counted(lately, "task"),
            number(before)
        );
        return Some(Notice { grave: true, words, place, link: "why" });
    }
    (failed > 0).then(|| Notice {
        grave: false,
        words: format!(
            "{} of {name} failed for good and {} for a person.",
            counted(failed, "task"),
            if failed == 1 { "waits" } else { "wait" }
        ),
        place,
        link: "look at them",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill::port::Minute;
    use gristmill::{QueueName, Timestamp};

    fn now() -> Timestamp {
        Timestamp::from_micros(3_600_000_000 * 24)
    }

    fn said(change: impl Fn(&mut QueueStats, &mut Queue), minutes: &[Minute]) -> Vec<String> {
        let name = QueueName::new("emails").expect("a name");
        let mut stats = QueueStats::new(name.clone(), 10_000);
        let mut queue = Queue::new(name, 10_000, Timestamp::EPOCH);
        change(&mut stats, &mut queue);
        let trend = Trend::new(minutes, now());
        let known = Known { stats: &stats, queue: Some(&queue), trend: &trend, served: false };
        let all = notices(&[known], &[], &[], Answered::default());
        all.into_iter().map(|notice| notice.words).collect()
    }

    #[test]
    fn nothing_is_said_of_a_quiet_queue() {
        assert!(said(|_, _| {}, &[]).is_empty());
        // A second may be its way to a worker.
        let fresh = |stats: &mut QueueStats, _: &mut Queue| {
            stats.ready = 3;
            stats.oldest_ready = Some(Duration::from_secs(1));
        };
        assert!(said(fresh, &[]).is_empty());
    }

    #[test]
    fn each_trouble_is_said_once() {
        let waits = |stats: &mut QueueStats| {
            stats.ready = 3;
            stats.oldest_ready = Some(Duration::from_secs(90));
        };
        assert_eq!(
            said(|stats, _| waits(stats), &[]),
            ["Nobody serves emails: 3 tasks wait, the oldest for 1m30s."]
        );
        let paused = said(
            |stats, queue| {
                waits(stats);
                stats.paused = true;
                queue.paused_by = Some("ada".to_owned());
            },
            &[],
        );
        assert_eq!(paused, ["emails was paused by ada, and 3 tasks wait."]);
        let full = said(
            |stats, _| {
                waits(stats);
                stats.capacity = Some(3);
            },
            &[],
        );
        assert!(full[0].starts_with("emails is full: 3 tasks are pending"), "{full:?}");
        let late = said(
            |stats, queue| {
                waits(stats);
                stats.processing = 1;
                queue.settings.max_wait = Some(Duration::from_secs(60));
            },
            &[],
        );
        assert!(late[0].contains("due for 1m30s, and its max_wait is 1m"), "{late:?}");
    }

    #[test]
    fn failures_that_rise_come_first() {
        let minute = |ago: u64, failed| Minute {
            failed,
            ..Minute::new(now().before(Duration::from_secs(ago * 60)))
        };
        let failed = |stats: &mut QueueStats, _: &mut Queue| stats.failed = 9;
        assert_eq!(
            said(failed, &[minute(2, 5), minute(20, 2)]),
            ["Failures of emails rise: 5 tasks failed in the last 15 minutes, 2 in the 15 before."]
        );
        assert_eq!(
            said(failed, &[minute(2, 4), minute(20, 2)]),
            ["9 tasks of emails failed for good and wait for a person."]
        );
    }

    #[test]
    fn what_the_doctor_says_of_clocks_is_said_here() {
        let one = Diagnosis::grave("schedule_ahead", "it was wrong", "set it right");
        let all = notices(&[], &[], &[one], Answered::default());
        assert_eq!(all[0].words, "It was wrong. Set it right.");
        assert_eq!((all[0].place.as_str(), all[0].grave), ("schedules", true));
    }

    #[test]
    fn an_old_transaction_and_a_slow_store_are_said() {
        let seconds = Duration::from_secs;
        let said = |took, oldest_transaction| {
            let all = notices(&[], &[], &[], Answered { took, oldest_transaction });
            all.into_iter().map(|one| (one.grave, one.words)).collect::<Vec<_>>()
        };
        assert_eq!(said(seconds(0), seconds(59)), []);
        let open = said(seconds(0), seconds(61));
        assert!(!open[0].0 && open[0].1.contains("has been open for 1m1s"), "{open:?}");
        assert!(said(seconds(0), seconds(601))[0].0);
        assert!(said(seconds(1), seconds(0))[0].1.starts_with("The store took 1s"));
    }

    #[test]
    fn a_copied_queue_is_never_said_to_wait_for_a_resume() {
        let copied = said(
            |stats, queue| {
                stats.ready = 3;
                stats.paused = true;
                queue.paused = true;
                queue.paused_by = Some("gristmill copy".to_owned());
            },
            &[],
        );
        assert!(copied[0].contains("do not resume it here"), "{copied:?}");
    }
}
