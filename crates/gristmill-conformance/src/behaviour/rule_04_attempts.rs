//! Rule 4, attempts: what counts, what does not, how many there are, and when
//! the next one comes.

use gristmill_core::{
    Action, AttemptEnd, Backoff, Became, OperationAnswer, Outcome, SettleAnswer, State, When,
};

use crate::fixture::Fixture;
use crate::handle::Held;
use crate::shape::{secs, task};

fn error() -> Outcome {
    Outcome::Error("wrong".to_owned())
}

/// Settles and says what became of the task.
async fn becomes(f: &Fixture, held: &Held, outcome: Outcome) -> Became {
    match f.settle(held, outcome).await {
        SettleAnswer::Recorded { became, .. } => became,
        other => panic!("it was not recorded: {other:?}"),
    }
}

pub(super) async fn rule_04_attempts_and_claims_grow_with_each_claim(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    assert_eq!((f.the(id).await.attempts, f.the(id).await.claims), (0, 0));
    for n in 1..=5 {
        let held = f.claim_one(&q).await;
        assert_eq!((held.task.attempt, held.task.claims), (n, n));
        assert_eq!(held.task.returns(), n - 1);
        let shown = f.the(id).await;
        assert_eq!((shown.attempts, shown.claims, shown.state), (n, n, State::Processing));
        assert_eq!(shown.claimed_at, Some(f.now()));
        f.end(&held, error()).await;
        f.advance(secs(3600));
    }
}

pub(super) async fn rule_04_five_attempts_unless_set(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    for n in 1..=5 {
        let held = f.claim_one(&q).await;
        let became = becomes(f, &held, error()).await;
        assert_eq!(became == Became::Failed, n == 5, "attempt {n}: {became:?}");
        f.advance(secs(3600));
    }
    let failed = f.the(id).await;
    assert_eq!(failed.state, State::Failed);
    assert_eq!(failed.failed_at, Some(f.now().before(secs(3600))));
    assert_eq!(failed.error.as_deref(), Some("wrong"));
    assert_eq!(failed.history.len(), 5);
    f.claim_none(&q).await;
    let counters = f.stats(&q).await.counters;
    assert_eq!((counters.retried, counters.failed, counters.claimed), (4, 1, 5));
}

pub(super) async fn rule_04_one_attempt_where_the_queue_says_so(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.max_attempts = Some(Some(1))).await;
    let used_up = [
        error(),
        Outcome::TimedOut(secs(900)),
        Outcome::Retry { at: When::After(secs(1)), reason: None },
    ];
    for outcome in used_up {
        f.enqueue(&q, task("a")).await;
        let held = f.claim_one(&q).await;
        assert_eq!(becomes(f, &held, outcome).await, Became::Failed);
        assert!(f.the(held.id).await.error.is_some(), "a failed task says why");
    }
}

pub(super) async fn rule_04_unlimited_attempts_never_end(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.max_attempts = Some(None)).await;
    let id = f.enqueue(&q, task("a")).await;
    for n in 1..=40 {
        let held = f.claim_one(&q).await;
        assert_eq!(held.task.attempt, n);
        f.end(&held, error()).await;
        f.advance(secs(3600));
    }
    assert_eq!(f.the(id).await.state, State::Pending);
}

pub(super) async fn rule_04_fail_is_for_good_at_once(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    let became = becomes(f, &held, Outcome::Fail("not readable".to_owned())).await;
    assert_eq!(became, Became::Failed);
    let failed = f.the(held.id).await;
    assert_eq!(failed.error.as_deref(), Some("not readable"));
    assert_eq!(failed.history[0].end, AttemptEnd::Fail);
    f.advance(secs(24 * 3600));
    f.claim_none(&q).await;
}

pub(super) async fn rule_04_a_retry_comes_when_the_handler_says_and_counts(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    let at = f.now().after(secs(90));
    let reason = Some("rate limited".to_owned());
    let became = becomes(f, &held, Outcome::Retry { at: When::At(at), reason }).await;
    assert_eq!(became, Became::Pending { run_at: at });
    f.advance(secs(89));
    f.claim_none(&q).await;
    f.advance(secs(1));
    assert_eq!(f.claim_one(&q).await.task.attempt, 2);
    let shown = f.the(id).await;
    assert_eq!(shown.history[0].end, AttemptEnd::Retry);
    assert_eq!(shown.history[0].error.as_deref(), Some("rate limited"));
}

pub(super) async fn rule_04_an_error_waits_twice_as_long_each_time(f: &mut Fixture) {
    let exact = Backoff { base: secs(2), cap: secs(10), jitter: false };
    let q = f.queue_with("q", |s| {
        s.backoff = Some(exact);
        s.max_attempts = Some(None);
    });
    let q = q.await;
    f.enqueue(&q, task("a")).await;
    for wait in [2, 4, 8, 10, 10] {
        let held = f.claim_one(&q).await;
        let run_at = f.now().after(secs(wait));
        assert_eq!(becomes(f, &held, error()).await, Became::Pending { run_at });
        f.advance(secs(wait));
    }
}

pub(super) async fn rule_04_jitter_spreads_the_waits_below_the_longest(f: &mut Fixture) {
    let q = f.queue_with("q", |s| {
        s.backoff = Some(Backoff { base: secs(100), cap: secs(3600), jitter: true });
    });
    let q = q.await;
    f.enqueue_all(&q, crate::shape::plain(50)).await;
    let mut waits = Vec::new();
    for held in f.claim_held(&q, 50).await {
        match becomes(f, &held, error()).await {
            Became::Pending { run_at } => waits.push(run_at.since(f.now())),
            other => panic!("{other:?}"),
        }
    }
    assert!(waits.iter().all(|wait| *wait <= secs(100)), "{waits:?}");
    waits.sort();
    waits.dedup();
    assert!(waits.len() > 40, "a crowd does not come back at once: {waits:?}");
}

pub(super) async fn rule_04_a_release_takes_the_attempt_back(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    let run_at = f.the(id).await.run_at;
    // Never started: free however often.
    for n in 1..=30 {
        let held = f.claim_one(&q).await;
        assert_eq!((held.task.attempt, held.task.claims), (1, n), "claims never fall");
        let became = becomes(f, &held, Outcome::Release { at: None, started: false }).await;
        assert_eq!(became, Became::Pending { run_at }, "in its old place");
        assert_eq!(f.the(id).await.attempts, 0);
        f.advance(secs(1));
    }
    assert_eq!(f.stats(&q).await.counters.released, 30);
}

pub(super) async fn rule_04_a_started_task_is_released_freely_twenty_times(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.max_attempts = Some(Some(2))).await;
    let id = f.enqueue(&q, task("a")).await;
    let release = || Outcome::Release { at: None, started: true };
    for _ in 0..20 {
        let held = f.claim_one(&q).await;
        assert_eq!(held.task.attempt, 1);
        f.end(&held, release()).await;
    }
    let held = f.claim_one(&q).await;
    assert_eq!(held.task.attempt, 1);
    f.end(&held, release()).await;
    assert_eq!(f.the(id).await.attempts, 1, "the one after them counts");
    let held = f.claim_one(&q).await;
    assert_eq!((held.task.attempt, held.task.claims), (2, 22));
    assert_eq!(becomes(f, &held, release()).await, Became::Failed);
}

pub(super) async fn rule_04_a_release_may_name_a_time(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    let at = Some(When::After(secs(30)));
    let became = becomes(f, &held, Outcome::Release { at, started: true }).await;
    assert_eq!(became, Became::Pending { run_at: f.now().after(secs(30)) });
    f.claim_none(&q).await;
    f.advance(secs(30));
    f.claim_one(&q).await;
}

pub(super) async fn rule_04_a_timeout_is_an_error_with_its_own_name(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    let became = becomes(f, &held, Outcome::TimedOut(secs(900))).await;
    assert!(matches!(became, Became::Pending { .. }), "{became:?}");
    let shown = f.the(held.id).await;
    assert_eq!(shown.attempts, 1);
    assert_eq!(shown.history[0].end, AttemptEnd::TimedOut);
    assert!(shown.error.is_some_and(|error| error.contains("timed out")));
}

pub(super) async fn rule_04_the_time_of_the_attempt_before_is_kept(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    let first = f.the(id).await.run_at;
    let held = f.claim_one(&q).await;
    assert_eq!(held.task.prev_run_at, None);
    let at = When::After(secs(10));
    f.end(&held, Outcome::Retry { at, reason: None }).await;
    let second = f.the(id).await.run_at;
    f.advance(secs(10));
    let held = f.claim_one(&q).await;
    assert_eq!((held.task.run_at, held.task.prev_run_at), (second, Some(first)));
    // A release is no attempt: the one before stays the one before.
    f.end(&held, Outcome::Release { at: Some(at), started: true }).await;
    f.advance(secs(10));
    assert_eq!(f.claim_one(&q).await.task.prev_run_at, Some(first));
}

pub(super) async fn rule_04_an_operators_retry_counts_anew(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.max_attempts = Some(Some(2))).await;
    let id = f.enqueue(&q, task("a")).await;
    for round in 0..3 {
        for n in 1..=2 {
            let held = f.claim_one(&q).await;
            assert_eq!((held.task.attempt, held.task.claims), (n, 2 * round + n));
            f.end(&held, error()).await;
            f.advance(secs(3600));
        }
        assert_eq!(f.the(id).await.state, State::Failed);
        assert_eq!(f.operate_one(Action::Retry, id).await, OperationAnswer::Moved);
        let back = f.the(id).await;
        assert_eq!((back.state, back.attempts, back.expiries), (State::Pending, 0, 0));
        assert_eq!((back.failed_at, back.run_at), (None, f.now()));
    }
}

pub(super) async fn rule_04_the_history_keeps_the_last_ten(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.max_attempts = Some(None)).await;
    let id = f.enqueue(&q, task("a")).await;
    for n in 1..=13 {
        let held = f.claim_one(&q).await;
        f.advance(secs(1));
        f.end(&held, Outcome::Error(format!("error {n}"))).await;
        f.advance(secs(3600));
    }
    let shown = f.the(id).await;
    let errors: Vec<_> = shown.history.iter().filter_map(|a| a.error.clone()).collect();
    let wanted: Vec<_> = (4..=13).map(|n| format!("error {n}")).collect();
    assert_eq!(errors, wanted, "oldest first");
    for attempt in &shown.history {
        assert_eq!(attempt.worker.as_str(), "w1");
        assert_eq!(attempt.ended_at.since(attempt.claimed_at), secs(1));
        assert_eq!(attempt.end, AttemptEnd::Error);
    }
    assert_eq!(shown.error.as_deref(), Some("error 13"));
}

pub(super) async fn rule_04_errors_are_cut_to_four_kibibytes(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    // The borders fall inside the two bytes of an 'é'; a NUL cannot be kept as
    // text.
    let long = format!("\0first {} last", "é".repeat(5_000));
    f.end(&held, Outcome::Error(long.clone())).await;
    let kept = f.the(held.id).await.error.expect("an error");
    assert_eq!(kept, f.store.limits().cut_error(&long));
    assert!(kept.len() <= 4096 && !kept.contains('\0'), "{} bytes", kept.len());
    // What went wrong stands at the beginning or at the end, and that something
    // is missing between them is said.
    assert!(kept.starts_with("\u{fffd}first é") && kept.ends_with("é last"), "{kept}");
    assert!(kept.contains(" bytes left out]"), "{kept}");
    assert_eq!(f.the(held.id).await.history[0].error.as_ref(), Some(&kept));
}
