//! Rule 10, a clock that is far ahead for a moment: what is kept for a time is not
//! thrown away by it, and what it wrote down is not believed for ever.

use gristmill_core::assignment::MANAGER;
use gristmill_core::{Assignment, Outcome, PutAnswer, QueueName, State, TaskFilter, Timestamp};
use gristmill_text::ControlPlane;

use super::verb_roles::report;
use crate::fixture::Fixture;
use crate::shape::{Shape, plain, secs, task, worker};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const YEAR: u64 = 365 * 24 * HOUR;

async fn sweep(f: &Fixture) {
    f.store.sweep().await.expect("a sweep");
}

/// The clock is so far ahead for three seconds in which everything goes on, and
/// right again.
async fn ahead_for_three_seconds(f: &Fixture, by: u64, meanwhile: impl AsyncFnOnce()) {
    // A process knows of a jump when it has looked at the clock before.
    sweep(f).await;
    f.clock.set_wall(f.now().after(secs(by)));
    for _ in 0..3 {
        sweep(f).await;
        f.advance(secs(1));
    }
    meanwhile().await;
    f.clock.set_wall(f.now().before(secs(by)));
    sweep(f).await;
}

/// A queue that keeps what ended for an hour, and has a failed task, one that is
/// done, and a caller's id.
async fn keeping(f: &Fixture) -> QueueName {
    let q = f
        .queue_with("q", |s| {
            s.keep_done = Some(Some(secs(HOUR)));
            s.keep_failed = Some(Some(secs(HOUR)));
            s.id_window = Some(secs(HOUR));
        })
        .await;
    f.enqueue(&q, task("1").with_id("a")).await;
    f.enqueue(&q, task("2")).await;
    let held = f.claim_held(&q, 2).await;
    f.end(&held[0], Outcome::Done).await;
    f.end(&held[1], Outcome::Fail("never".to_owned())).await;
    q
}

pub(super) async fn rule_10_a_moment_far_ahead_forgets_nothing(f: &mut Fixture) {
    let q = keeping(f).await;
    f.store.report_worker(report("w1", "host")).await.expect("a report");
    let before = (f.all().await, f.store.minutes(&q, secs(HOUR)).await.expect("minutes"));
    for by in [HOUR + MINUTE, YEAR] {
        ahead_for_three_seconds(f, by, async || {}).await;
        let after = (f.all().await, f.store.minutes(&q, secs(HOUR)).await.expect("minutes"));
        assert_eq!(before, after, "{by}");
        assert_eq!(f.store.workers().await.expect("workers").len(), 1);
        let again = f.put(&q, task("1").with_id("a")).await;
        assert!(matches!(again, PutAnswer::Duplicate { .. }), "its id is known: {again:?}");
    }
}

pub(super) async fn rule_10_a_clock_that_stays_is_believed(f: &mut Fixture) {
    let q = keeping(f).await;
    sweep(f).await;
    f.clock.set_wall(f.now().after(secs(YEAR)));
    sweep(f).await;
    assert_eq!(f.all().await.len(), 2);
    f.advance(secs(10 * MINUTE));
    let swept = f.store.sweep().await.expect("a sweep");
    assert_eq!((swept.pruned_done, swept.pruned_failed, swept.forgotten_ids), (1, 1, 1));
    assert!(f.all().await.is_empty());
    f.enqueue(&q, task("1").with_id("a")).await;
}

pub(super) async fn rule_10_minutes_ahead_of_the_clock_are_not_shown(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue_all(&q, plain(2)).await;
    let minutes = async || {
        let minutes = f.store.minutes(&q, secs(HOUR)).await.expect("minutes");
        minutes.iter().map(|minute| (minute.at, minute.put)).collect::<Vec<_>>()
    };
    let right = f.now().minute();
    for by in [2 * MINUTE, YEAR] {
        ahead_for_three_seconds(f, by, async || {
            f.enqueue_all(&q, plain(3)).await;
        })
        .await;
        assert_eq!(minutes().await, [(right, 2)], "{by}");
    }
    // When the clock gets there, it counts what happens then.
    f.advance(secs(2 * MINUTE));
    f.enqueue(&q, task("x")).await;
    let there = (right.after(secs(2 * MINUTE)), 1);
    assert_eq!(minutes().await, [(right, 2), there]);
}

pub(super) async fn rule_10_an_id_put_ahead_is_known_for_its_window(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.id_window = Some(secs(HOUR))).await;
    let put = || f.put(&q, task("1").with_id("a"));
    ahead_for_three_seconds(f, YEAR, async || {
        assert!(put().await.is_enqueued());
    })
    .await;
    f.advance(secs(HOUR - 1));
    sweep(f).await;
    assert!(matches!(put().await, PutAnswer::Duplicate { .. }));
    f.advance(secs(1));
    assert!(put().await.is_enqueued(), "and not for a year");
}

pub(super) async fn rule_10_a_window_begun_ahead_lasts_as_long_as_the_queue_says(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.unique_for = Some(Some(secs(HOUR)))).await;
    let put = || f.put(&q, task("1").keyed("a"));
    ahead_for_three_seconds(f, YEAR, async || {
        assert!(put().await.is_enqueued());
        let held = f.claim_one(&q).await;
        f.end(&held, Outcome::Done).await;
    })
    .await;
    f.advance(secs(HOUR - 1));
    sweep(f).await;
    assert!(matches!(put().await, PutAnswer::Duplicate { .. }));
    f.advance(secs(1));
    assert!(put().await.is_enqueued(), "and not for a year");
}

pub(super) async fn rule_10_a_worker_that_reported_ahead_is_not_alive_for_ever(f: &mut Fixture) {
    f.queue("q").await;
    ahead_for_three_seconds(f, YEAR, async || {
        f.store.report_worker(report("w1", "host")).await.expect("a report");
    })
    .await;
    f.advance(secs(20));
    let workers = f.store.workers().await.expect("workers");
    assert_eq!(workers[0].silent_for, secs(20));
    assert!(workers[0].since <= f.now());
    f.advance(secs(HOUR));
    sweep(f).await;
    assert!(f.store.workers().await.expect("workers").is_empty());
}

pub(super) async fn rule_10_a_word_published_ahead_grows_old(f: &mut Fixture) {
    f.queue("q").await;
    ahead_for_three_seconds(f, YEAR, async || {
        let led = f.store.campaign(MANAGER, &worker("ada"), secs(10)).await;
        let term = led.expect("an answer").term;
        let word = Assignment { term, shares: Vec::new(), published_at: Timestamp::EPOCH };
        f.store.publish_assignment(word).await.expect("an answer");
    })
    .await;
    let word = f.store.assignment().await.expect("an answer").expect("a word");
    assert_eq!(word.published_at, f.now(), "whoever follows it sees how old it is");
}

pub(super) async fn rule_10_numbers_rise_over_every_jump(f: &mut Fixture) {
    let q = f.queue("q").await;
    let right = f.now();
    let mut ids = Vec::new();
    for wall in [right, right.after(secs(YEAR)), right.before(secs(HOUR)), right] {
        f.clock.set_wall(wall);
        ids.extend(f.enqueue_all(&q, plain(2)).await);
        if f.kill().await {
            ids.push(f.enqueue(&q, task("x")).await);
        }
    }
    assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
    let pending = TaskFilter { state: Some(State::Pending), ..TaskFilter::default() };
    let listed: Vec<_> = f.list(pending).await.iter().map(|task| task.id).collect();
    assert_eq!(listed, ids, "none is lost, and lists go by them");
    // The time comes that the clock said.
    f.clock.set_wall(right.after(secs(2 * YEAR)));
    sweep(f).await;
    assert_eq!(f.stats(&q).await.ready, ids.len() as u64);
}
