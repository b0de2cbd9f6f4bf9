//! Rule 4, the part on what one task says for itself: its timeout, attempts and
//! backoff hold in place of its queue's, for as long as it stands.

use gristmill_core::{
    Action, Backoff, Became, FollowUp, Import, ImportAnswer, ImportTask, NewTask, OnDuplicate,
    OperationAnswer, Outcome, PutAnswer, PutRequest, Refusal, SettleAnswer, Settlement, State,
    TaskSettings,
};

use crate::fixture::Fixture;
use crate::handle::Held;
use crate::shape::{Shape, millis, secs, task};

fn error() -> Outcome {
    Outcome::Error("wrong".to_owned())
}

/// A wait of exactly that many seconds, then twice that, up to the longest.
fn exactly(base: u64, cap: u64) -> Backoff {
    Backoff { base: secs(base), cap: secs(cap), jitter: false }
}

fn own(say: impl FnOnce(&mut TaskSettings)) -> TaskSettings {
    let mut own = TaskSettings::default();
    say(&mut own);
    own
}

/// Everything that can be said.
fn whole() -> TaskSettings {
    own(|own| {
        own.set_timeout(millis(1_500));
        own.set_max_attempts(Some(2));
        own.set_backoff(exactly(3, 5));
    })
}

fn with(task: NewTask, settings: TaskSettings) -> NewTask {
    NewTask { settings, ..task }
}

async fn becomes(f: &Fixture, held: &Held, outcome: Outcome) -> Became {
    match f.settle(held, outcome).await {
        SettleAnswer::Recorded { became, .. } => became,
        other => panic!("it was not recorded: {other:?}"),
    }
}

pub(super) async fn rule_04_a_tasks_own_attempts_decide_when_it_fails(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.max_attempts = Some(Some(2))).await;
    let once = own(|own| own.set_max_attempts(Some(1)));
    let always = own(|own| own.set_max_attempts(None));
    for (settings, fails_at) in
        [(once, Some(1)), (TaskSettings::default(), Some(2)), (always, None)]
    {
        let id = f.enqueue(&q, with(task("a"), settings)).await;
        for attempt in 1..=fails_at.unwrap_or(7) {
            let held = f.claim_one(&q).await;
            assert_eq!((held.id, held.task.attempt), (id, attempt));
            let became = becomes(f, &held, error()).await;
            assert_eq!(became == Became::Failed, Some(attempt) == fails_at, "attempt {attempt}");
            f.advance(secs(3600));
        }
        if fails_at.is_none() {
            assert_eq!(f.the(id).await.state, State::Pending, "it has no limit");
        }
    }
}

pub(super) async fn rule_04_a_tasks_own_attempts_count_expired_leases(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.lease = Some(secs(60))).await;
    let id = f.enqueue(&q, with(task("a"), own(|own| own.set_max_attempts(Some(1))))).await;
    let usual = f.enqueue(&q, task("b")).await;
    let _held = f.claim(&q, 2).await;
    f.advance(secs(61));
    f.store.reclaim().await.expect("reclaimed");
    assert_eq!(f.the(id).await.state, State::Failed, "its one attempt is used up");
    assert_eq!(f.the(usual).await.state, State::Pending, "its neighbour has four left");
}

pub(super) async fn rule_04_a_tasks_own_backoff_decides_when_it_runs_again(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.backoff = Some(exactly(100, 1_000))).await;
    let usual = f.enqueue(&q, task("usual")).await;
    let id = f.enqueue(&q, with(task("a"), own(|own| own.set_backoff(exactly(3, 5))))).await;
    let held = f.claim(&q, 2).await;
    for id in [usual, id] {
        let settlement = Settlement::new(id, held.token, error());
        f.store.settle(vec![settlement]).await.expect("settled");
    }
    assert_eq!(f.the(usual).await.run_at, f.now().after(secs(100)));
    assert_eq!(f.the(id).await.run_at, f.now().after(secs(3)));
    f.advance(secs(3));
    let held = f.claim_one(&q).await;
    let became = becomes(f, &held, Outcome::TimedOut(secs(1))).await;
    assert_eq!(became, Became::Pending { run_at: f.now().after(secs(5)) }, "the longest wait");
}

pub(super) async fn rule_04_a_tasks_own_backoff_holds_for_expired_leases(f: &mut Fixture) {
    let q = f
        .queue_with("q", |s| {
            s.lease = Some(secs(60));
            s.backoff = Some(exactly(1_000, 1_000));
        })
        .await;
    let id = f.enqueue(&q, with(task("a"), own(|own| own.set_backoff(exactly(7, 7))))).await;
    for _ in 0..2 {
        f.claim_one(&q).await;
        f.advance(secs(61));
        f.store.reclaim().await.expect("reclaimed");
    }
    assert_eq!(f.the(id).await.run_at, f.now().after(secs(7)), "from the second one on");
}

pub(super) async fn rule_04_own_settings_stay_with_the_task(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.keep_done = Some(Some(secs(3600)))).await;
    let id = f.enqueue(&q, with(task("a").keyed("k"), whole())).await;
    assert_eq!(f.the(id).await.settings, whole(), "as it stands");
    assert_eq!(f.all().await[0].settings, whole(), "as it is listed");
    let held = f.claim_one(&q).await;
    assert_eq!(held.task.settings, whole(), "as its handler gets it");
    assert_eq!(f.the(id).await.settings, whole(), "while it runs");
    f.end(&held, error()).await;
    assert_eq!(f.the(id).await.settings, whole(), "when it is back");
    f.advance(secs(3));
    let lost = f.claim_one(&q).await;
    assert_eq!(lost.task.settings, whole(), "as the next handler gets it");
    f.advance(secs(3600));
    f.store.reclaim().await.expect("reclaimed");
    let failed = f.the(id).await;
    assert_eq!((failed.state, &failed.settings), (State::Failed, &whole()));
    assert_eq!(f.operate(Action::Retry, &[id]).await, [(id, OperationAnswer::Moved)]);
    assert_eq!(f.the(id).await.settings, whole(), "an operator's retry keeps them");
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Done).await;
    assert_eq!(f.the(id).await.settings, whole(), "a kept one shows them");
    let plain = f.enqueue(&q, task("b")).await;
    assert!(f.the(plain).await.settings.is_empty());
}

pub(super) async fn rule_04_own_settings_survive_a_kill(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, with(task("a"), whole())).await;
    let back = f.enqueue(&q, with(task("b").at_priority(-1), whole())).await;
    let held = f.claim_one(&q).await;
    assert_eq!(held.id, back);
    f.end(&held, error()).await;
    if !f.kill().await {
        return;
    }
    for id in [id, back] {
        assert_eq!(f.the(id).await.settings, whole());
    }
    f.advance(secs(4));
    assert_eq!(f.claim(&q, 1).await.tasks[0].settings, whole());
}

pub(super) async fn rule_04_own_settings_come_on_every_way(f: &mut Fixture) {
    let (q, r) = (f.queue("q").await, f.queue("r").await);
    // Beside neighbours that say nothing, with keys and without.
    let many = vec![
        task("plain"),
        with(task("said"), whole()),
        with(task("keyed").keyed("a"), own(|own| own.set_max_attempts(None))),
        task("plain keyed").keyed("b"),
    ];
    let wanted: Vec<TaskSettings> = many.iter().map(|task| task.settings.clone()).collect();
    let ids = f.enqueue_all(&q, many.clone()).await;
    for (id, wanted) in ids.iter().zip(&wanted) {
        assert_eq!(&f.the(*id).await.settings, wanted);
    }
    // All or nothing, and under a caller's id.
    let tasks = vec![with(task("1").with_id("i"), whole()), with(task("2"), whole())];
    let request = PutRequest { queue: r.clone(), tasks, atomic: true };
    let report = f.store.put(request).await.expect("a put");
    for answer in report.answers {
        assert_eq!(f.the(answer.id().expect("an id")).await.settings, whole());
    }
    // As a follow-up.
    let held = f.claim_one(&q).await;
    let follow_up = FollowUp { queue: r, task: with(task("next"), whole()) };
    let settlement = Settlement {
        follow_ups: vec![follow_up],
        ..Settlement::new(held.id, held.token, Outcome::Done)
    };
    match f.store.settle(vec![settlement]).await.expect("settled").remove(0) {
        SettleAnswer::Recorded { follow_ups, .. } => {
            let id = follow_ups[0].id().expect("it stands");
            assert_eq!(f.the(id).await.settings, whole());
        }
        other => panic!("it was not recorded: {other:?}"),
    }
}

pub(super) async fn rule_04_own_settings_move_with_an_import(f: &mut Fixture) {
    if !f.imports() {
        return;
    }
    let (q, r) = (f.queue("q").await, f.queue("r").await);
    let waits = f.enqueue(&q, with(task("1"), whole())).await;
    let failed = f.enqueue(&q, with(task("2").at_priority(-1), whole())).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Fail("never".to_owned())).await;
    for id in [waits, failed] {
        let task = f.the(id).await;
        let import = ImportTask { mark: format!("mark-{id}"), in_flight: false, task };
        let import = Import { queue: r.clone(), tasks: vec![import] };
        match f.store.import(import).await.expect("an import").remove(0) {
            ImportAnswer::Imported { id } => assert_eq!(f.the(id).await.settings, whole()),
            other => panic!("it was not imported but {other:?}"),
        }
    }
}

pub(super) async fn rule_04_a_replaced_task_takes_the_new_settings(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.on_duplicate = Some(OnDuplicate::Replace)).await;
    let id = f.enqueue(&q, with(task("1").keyed("k"), whole())).await;
    let other = own(|own| own.set_timeout(secs(9)));
    let answer = f.put(&q, with(task("2").keyed("k"), other.clone())).await;
    assert_eq!(answer, PutAnswer::Replaced { id });
    assert_eq!(f.the(id).await.settings, other);
    let answer = f.put(&q, task("3").keyed("k")).await;
    assert_eq!(answer, PutAnswer::Replaced { id });
    assert!(f.the(id).await.settings.is_empty(), "it says nothing, so its queue's hold again");
}

pub(super) async fn rule_04_settings_that_no_task_can_have_are_refused(f: &mut Fixture) {
    let q = f.queue("q").await;
    let long = secs(367 * 24 * 3600);
    let wrong = [
        (own(|own| own.set_timeout(secs(0))), "timeout"),
        (own(|own| own.set_timeout(long)), "timeout"),
        (own(|own| own.set_max_attempts(Some(0))), "max_attempts"),
        (own(|own| own.set_backoff(Backoff { base: long, ..exactly(1, 1) })), "backoff.base"),
        (own(|own| own.set_backoff(Backoff { cap: long, ..exactly(1, 1) })), "backoff.cap"),
    ];
    for (settings, field) in wrong {
        match f.put(&q, with(task("a"), settings)).await {
            PutAnswer::Refused(Refusal::Invalid(why)) => {
                assert!(why.starts_with(field), "{field}: {why}");
            }
            other => panic!("{field}: {other:?}"),
        }
    }
    assert_eq!(f.stats(&q).await.total(), 0);
}
