//! Rule 6's named exception, `unique_for`: for so long after the last put of a key another
//! one is a duplicate, also when its task is gone.

use gristmill_core::{
    Action, Ending, Fire, FireAnswer, Import, ImportAnswer, ImportTask, Missed, NewTask,
    OnDuplicate, Outcome, Overlap, Payload, PutAnswer, QueueName, Refusal, Rule,
    ScheduleDeclaration, ScheduleName, SettingsPatch, SettleAnswer, Settlement, Start, StoreError,
    TaskId, Unique,
};

use crate::fixture::Fixture;
use crate::handle::Handle;
use crate::shape::{Shape, secs, task};

/// A queue whose windows last a minute.
async fn throttled(f: &Handle, name: &str) -> QueueName {
    f.queue_with(name, |s| s.unique_for = Some(Some(secs(60)))).await
}

fn key() -> NewTask {
    task("x").keyed("k")
}

/// The duplicate of a task that is gone: its number is all there is to say.
const fn gone(id: TaskId) -> PutAnswer {
    PutAnswer::Duplicate { id, run_at: None, source: None }
}

fn of(answer: &PutAnswer) -> Option<TaskId> {
    matches!(answer, PutAnswer::Duplicate { .. }).then(|| answer.id()).flatten()
}

/// Puts a task of the key and runs it to its end.
async fn run(f: &Handle, q: &QueueName) -> TaskId {
    let id = f.enqueue(q, key()).await;
    let held = f.claim_one(q).await;
    f.end(&held, Outcome::Done).await;
    id
}

pub(super) async fn rule_06_window_a_put_within_it_is_a_duplicate_when_the_task_is_gone(
    f: &mut Fixture,
) {
    let q = throttled(f, "q").await;
    let id = run(f, &q).await;
    assert_eq!(f.get(id).await, None);
    for _ in 0..3 {
        assert_eq!(f.put(&q, key()).await, gone(id));
        f.advance(secs(19));
        f.store.sweep().await.expect("a sweep");
    }
    // What was a duplicate did not begin it anew.
    f.advance(secs(3));
    assert_eq!(f.store.sweep().await.expect("a sweep").forgotten_ids, 1, "swept when over");
    assert_ne!(f.enqueue(&q, key()).await, id);
    assert_eq!(f.stats(&q).await.counters.duplicate, 3);
}

pub(super) async fn rule_06_window_lasts_from_the_put_and_is_its_keys(f: &mut Fixture) {
    let (q, other) = (throttled(f, "q").await, f.queue("other").await);
    let id = f.enqueue(&q, key().of_source("shop")).await;
    f.advance(secs(30));
    let standing = f.the(id).await;
    let still = PutAnswer::Duplicate { id, run_at: Some(standing.run_at), source: standing.source };
    assert_eq!(f.put(&q, key()).await, still, "as without a window");
    let held = f.claim_one(&q).await;
    assert_eq!(f.put(&q, key()).await, still, "also while it runs");
    f.advance(secs(29));
    f.end(&held, Outcome::Done).await;
    assert_eq!(f.put(&q, key()).await, gone(id));
    f.enqueue(&q, task("x").keyed("K")).await;
    f.enqueue_all(&q, vec![task("x"), task("x")]).await;
    f.enqueue(&other, key()).await;
    // A minute after the put, not after the end.
    f.advance(secs(1));
    f.enqueue(&q, key()).await;
}

pub(super) async fn rule_06_window_leaves_the_places_as_they_are(f: &mut Fixture) {
    for unique in [Unique::Pending, Unique::Active] {
        f.renew().await;
        let q = throttled(f, "q").await;
        f.override_with(&q, |s| s.unique = Some(unique)).await;
        let waits = f.enqueue(&q, key().delayed(120)).await;
        f.advance(secs(90));
        assert_eq!(of(&f.put(&q, key()).await), Some(waits), "over, and it stands");
        f.advance(secs(30));
        let held = f.claim_one(&q).await;
        let second = f.put(&q, key()).await;
        if unique == Unique::Active {
            assert_eq!(of(&second), Some(held.id), "{unique}: it runs");
            f.end(&held, Outcome::Done).await;
            f.enqueue(&q, key()).await;
        } else {
            assert!(second.is_enqueued(), "{unique}: mid-run, after the window");
            // A task that failed is not what this window is of.
            f.end(&held, Outcome::Fail("never".to_owned())).await;
            let held = f.claim_one(&q).await;
            assert_eq!(Some(held.id), second.id());
            f.end(&held, Outcome::Done).await;
            assert_eq!(f.put(&q, key()).await, gone(held.id));
        }
    }
}

pub(super) async fn rule_06_window_ends_with_a_cancel_a_discard_and_a_failure(f: &mut Fixture) {
    let q = throttled(f, "q").await;
    f.override_with(&q, |s| s.max_attempts = Some(Some(1))).await;
    let failing = [
        Outcome::Fail("never".to_owned()),
        Outcome::Error("the only attempt".to_owned()),
        Outcome::Cancelled,
    ];
    for outcome in failing {
        f.enqueue(&q, key()).await;
        let held = f.claim_one(&q).await;
        f.end(&held, outcome).await;
    }
    let waits = f.enqueue(&q, key()).await;
    f.operate(Action::Cancel, &[waits]).await;
    let asked = f.enqueue(&q, key()).await;
    let held = f.claim_one(&q).await;
    f.operate(Action::Cancel, &[asked]).await;
    assert_eq!(of(&f.put(&q, key()).await), Some(asked), "not before it has ended");
    f.end(&held, Outcome::Done).await;
    assert_eq!(f.put(&q, key()).await, gone(asked), "it was done before it heard of that");
    f.advance(secs(60));
    f.enqueue(&q, key()).await;
    f.claim_one(&q).await;
    f.advance(secs(61));
    assert_eq!(f.reclaim().await, 1);
    let failed = f.enqueue(&q, key()).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Fail("never".to_owned())).await;
    f.operate(Action::Discard, &[failed]).await;
    f.enqueue(&q, key()).await;
}

pub(super) async fn rule_06_window_outlasts_retries_and_releases(f: &mut Fixture) {
    let q = throttled(f, "q").await;
    let id = f.enqueue(&q, key()).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Release { at: None, started: false }).await;
    assert_eq!(of(&f.put(&q, key()).await), Some(id));
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Error("once".to_owned())).await;
    assert_eq!(of(&f.put(&q, key()).await), Some(id));
    f.advance(secs(30));
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Done).await;
    assert_eq!(f.put(&q, key()).await, gone(id));
}

pub(super) async fn rule_06_window_holds_for_every_way_to_put(f: &mut Fixture) {
    let (q, steps) = (throttled(f, "q").await, f.queue("steps").await);
    // Many at once, with a repeat among them.
    let many = || ["a", "b", "a", "c"].map(|key| task("x").keyed(key)).to_vec();
    let answers = f.put_all(&q, many()).await;
    let enqueued: Vec<bool> = answers.iter().map(PutAnswer::is_enqueued).collect();
    assert_eq!(enqueued, [true, true, false, true]);
    for held in f.claim_held(&q, 10).await {
        f.end(&held, Outcome::Done).await;
    }
    let first: Vec<_> = answers.iter().filter_map(PutAnswer::id).collect();
    let again: Vec<_> = f.put_all(&q, many()).await.iter().map(of).collect();
    assert_eq!(again, first.iter().map(|id| Some(*id)).collect::<Vec<_>>());
    // All or nothing.
    let both = vec![task("x").keyed("new"), task("x").keyed("b")];
    let answers = f.put_as(&q, both, true).await;
    assert_eq!(answers[0], PutAnswer::Refused(Refusal::Undone { because: 1 }));
    assert_eq!(answers[1], gone(first[1]));
    f.enqueue(&q, task("x").keyed("new")).await;
    // Follow-ups.
    f.enqueue(&steps, task("x")).await;
    let held = f.claim_one(&steps).await;
    let put = f.settle_then(&held, Outcome::Done, &q, vec![task("x").keyed("c"), key()]).await;
    let SettleAnswer::Recorded { follow_ups, .. } = put else { panic!("{put:?}") };
    assert_eq!(follow_ups[0], gone(first[3]));
    assert!(follow_ups[1].is_enqueued());
    // Schedules.
    let name = ScheduleName::new("s").expect("a schedule's name");
    let declaration = ScheduleDeclaration {
        name: name.clone(),
        queue: q.clone(),
        rule: Rule::Every(secs(60)),
        zone: "UTC".to_owned(),
        payload: Some(Payload::json("{}")),
        options: Default::default(),
        missed: Missed::Once,
        overlap: Overlap::Allow,
    };
    f.store.declare_schedule(declaration).await.expect("a schedule");
    let tasks = vec![task("x").keyed("b"), task("x").keyed("d")];
    let fire = Fire { schedule: name, instant: f.now(), tasks, by_hand: true };
    let fired = f.store.fire(fire).await.expect("an answer");
    let FireAnswer::Fired(answers) = fired else { panic!("{fired:?}") };
    assert_eq!(answers[0], gone(first[1]));
    assert!(answers[1].is_enqueued());
}

pub(super) async fn rule_06_window_goes_on_over_an_import(f: &mut Fixture) {
    if !f.imports() {
        return;
    }
    let (q, r) = (f.queue("q").await, throttled(f, "r").await);
    let id = f.enqueue(&q, key()).await;
    f.advance(secs(40));
    let task = f.the(id).await;
    let import = ImportTask { mark: "one".to_owned(), in_flight: false, task };
    let import = Import { queue: r.clone(), tasks: vec![import] };
    let answers = f.store.import(import).await.expect("an import");
    let [ImportAnswer::Imported { id: new }] = answers[..] else { panic!("{answers:?}") };
    let held = f.claim_one(&r).await;
    f.end(&held, Outcome::Done).await;
    f.advance(secs(19));
    assert_eq!(f.put(&r, key()).await, gone(new), "a minute after it was put there");
    f.advance(secs(1));
    f.enqueue(&r, key()).await;
}

pub(super) async fn rule_06_window_of_a_put_that_came_to_nothing_is_none(f: &mut Fixture) {
    let q = throttled(f, "q").await;
    let answers = f.put_as(&q, vec![key(), task("bad").keyed("")], true).await;
    assert!(matches!(answers[0], PutAnswer::Refused(Refusal::Undone { because: 1 })));
    f.override_with(&q, |s| s.capacity = Some(Some(1))).await;
    let id = f.enqueue(&q, task("first").keyed("other")).await;
    let full = PutAnswer::Refused(Refusal::QueueFull { capacity: 1 });
    assert_eq!(f.put(&q, key()).await, full);
    assert_eq!(of(&f.put(&q, task("x").keyed("other")).await), Some(id), "before it is full");
    f.operate(Action::Cancel, &[id]).await;
    let id = run(f, &q).await;
    f.enqueue(&q, task("full again")).await;
    assert_eq!(f.put(&q, key()).await, gone(id), "a duplicate asks for no room");
    // One that an undone put would have begun anew is as it was.
    f.override_with(&q, |s| s.capacity = Some(None)).await;
    f.advance(secs(60));
    let answers = f.put_as(&q, vec![key(), task("bad").keyed("")], true).await;
    assert!(matches!(answers[0], PutAnswer::Refused(Refusal::Undone { because: 1 })));
    f.enqueue(&q, key()).await;
}

pub(super) async fn rule_06_window_survives_a_kill_and_is_one_for_all_handles(f: &mut Fixture) {
    let q = throttled(f, "q").await;
    let id = run(f, &q).await;
    if let Some(other) = f.another().await {
        assert_eq!(other.put(&q, key()).await, gone(id));
    }
    if f.kill().await {
        assert_eq!(f.put(&q, key()).await, gone(id));
        f.advance(secs(61));
        let failed = f.enqueue(&q, key()).await;
        let held = f.claim_one(&q).await;
        f.end(&held, Outcome::Fail("never".to_owned())).await;
        assert!(f.kill().await);
        assert_ne!(f.enqueue(&q, key()).await, failed, "its end survives as well");
    }
}

pub(super) async fn rule_06_window_is_as_long_as_the_queue_says(f: &mut Fixture) {
    let q = f.queue("q").await;
    run(f, &q).await;
    f.override_with(&q, |s| s.unique_for = Some(Some(secs(10)))).await;
    // What was put before had none.
    let id = run(f, &q).await;
    assert_eq!(f.put(&q, key()).await, gone(id));
    f.override_with(&q, |s| s.unique_for = Some(None)).await;
    run(f, &q).await;
    let wrong = [
        SettingsPatch { on_duplicate: Some(OnDuplicate::Replace), ..throttle(10) },
        SettingsPatch { on_duplicate: Some(OnDuplicate::Postpone), ..throttle(10) },
        throttle(0),
        throttle(400 * 24 * 3600),
    ];
    for patch in wrong {
        let error = f.store.override_queue(&q, patch, "operator").await.expect_err("refused");
        assert!(matches!(error, StoreError::Invalid(_)), "{error:?}");
        assert!(error.to_string().contains("unique_for"), "{error}");
    }
}

fn throttle(seconds: u64) -> SettingsPatch {
    SettingsPatch { unique_for: Some(Some(secs(seconds))), ..SettingsPatch::default() }
}

pub(super) async fn rule_06_window_tells_who_waits_what_is_known_of_the_task(f: &mut Fixture) {
    let q = throttled(f, "q").await;
    f.override_with(&q, |s| s.keep_result = Some(Some(secs(3600)))).await;
    let id = f.enqueue(&q, key()).await;
    let held = f.claim_one(&q).await;
    let settlement = Settlement::new(id, held.token, Outcome::Done);
    let value = Some(Payload::json("7".to_owned()));
    assert!(f.settle_full(Settlement { result: value.clone(), ..settlement }).await.is_recorded());
    let mut wanted = key();
    wanted.settings.set_wanted();
    assert_eq!(f.put(&q, wanted.clone()).await, gone(id));
    let known = f.store.endings(&[id]).await.expect("endings");
    assert_eq!(known, [Ending::Done { value }], "a throttle over what it came to");
    // Where nothing is kept there is nothing to tell, and nothing to wait for.
    f.override_with(&q, |s| s.keep_result = Some(None)).await;
    f.advance(secs(60));
    let id = run(f, &q).await;
    assert_eq!(f.put(&q, wanted).await, gone(id));
    assert_eq!(f.store.endings(&[id]).await.expect("endings"), [Ending::NotKnown]);
}

pub(super) async fn rule_06_window_lets_one_of_racing_puts_through(f: &mut Fixture) {
    let q = throttled(f, "q").await;
    for round in 0..4 {
        let handles = f.handles().await;
        let mut racing = Vec::new();
        for n in 0..24 {
            let (handle, q) = (handles[n % handles.len()].clone(), q.clone());
            racing.push(tokio::spawn(async move {
                if n % 6 == 5 {
                    // Whoever comes first is done at once, and its place free.
                    for held in handle.claim_held(&q, 1).await {
                        handle.end(&held, Outcome::Done).await;
                    }
                    None
                } else if n % 2 == 0 {
                    Some(handle.put(&q, key()).await)
                } else {
                    let mut answers = handle.put_all(&q, vec![key(), task("y")]).await;
                    Some(answers.remove(0))
                }
            }));
        }
        let mut answers = Vec::new();
        for racer in racing {
            answers.extend(racer.await.expect("a racer"));
        }
        let through = answers.iter().filter(|answer| answer.is_enqueued()).count();
        assert_eq!(through, 1, "round {round}: {answers:?}");
        assert!(answers.iter().all(|answer| answer.id() == answers[0].id()));
        for held in f.claim_held(&q, 100).await {
            f.end(&held, Outcome::Done).await;
        }
        f.advance(secs(61));
    }
}

pub(super) async fn rule_06_window_is_of_the_stores_time_and_not_the_tasks(f: &mut Fixture) {
    let q = throttled(f, "q").await;
    let at = Start::At(f.now().before(secs(3600)));
    let id = f.enqueue(&q, NewTask { start: at, ..key() }).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Done).await;
    assert_eq!(f.put(&q, key()).await, gone(id), "put now, whenever it was due");
}
