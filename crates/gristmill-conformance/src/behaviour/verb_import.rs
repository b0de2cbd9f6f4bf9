//! Taking in tasks that stood in another store. Each behaviour makes them in
//! the store itself, reads them as a copy would, and imports them into another
//! of its queues.

use gristmill_core::{
    Action, Attempt, Import, ImportAnswer, ImportTask, Outcome, Payload, QueueName, Refusal,
    StandingPlace, State, StoreError, Task, TaskId, When, WorkerId,
};

use crate::fixture::Fixture;
use crate::handle::Handle;
use crate::shape::{Shape, secs, task};

/// Whether there is anything to try. Where the store says that it cannot, its
/// answer is tried by the first behaviour.
fn skips(f: &Fixture) -> bool {
    !f.imports()
}

fn as_import(task: Task, in_flight: bool) -> ImportTask {
    ImportTask { mark: format!("{}-{}", task.queue, task.id), in_flight, task }
}

async fn import(f: &Handle, to: &QueueName, tasks: Vec<ImportTask>) -> Vec<ImportAnswer> {
    let wanted = tasks.len();
    let answers = f.store.import(Import { queue: to.clone(), tasks }).await.expect("an import");
    assert_eq!(answers.len(), wanted, "one answer a task: {answers:?}");
    answers
}

async fn import_one(f: &Handle, to: &QueueName, task: ImportTask) -> TaskId {
    match import(f, to, vec![task]).await.remove(0) {
        ImportAnswer::Imported { id } => id,
        other => panic!("it was not imported but {other:?}"),
    }
}

/// The task as it should stand after its move.
fn moved(from: &Task, to: &QueueName, id: TaskId) -> Task {
    let mut moved = from.clone();
    (moved.id, moved.queue) = (id, to.clone());
    moved
}

pub(super) async fn verb_import_is_there_or_says_that_it_is_not(f: &mut Fixture) {
    let q = f.queue("q").await;
    let answer = f.store.import(Import { queue: q, tasks: Vec::new() }).await;
    if f.imports() {
        assert_eq!(answer, Ok(Vec::new()));
        let unknown = Import { queue: crate::shape::name("nobody"), tasks: Vec::new() };
        let error = f.store.import(unknown).await;
        assert!(matches!(error, Err(StoreError::UnknownQueue { .. })), "{error:?}");
    } else {
        assert!(matches!(answer, Err(StoreError::NotSupported(_))), "{answer:?}");
    }
}

pub(super) async fn verb_import_keeps_what_tasks_went_through(f: &mut Fixture) {
    if skips(f) {
        return;
    }
    let (q, r) = (f.queue_with("q", |s| s.max_attempts = Some(Some(3))).await, f.queue("r").await);
    let full = task("{\"n\":1}").keyed("k").in_group("g").of_source("s").with_header("trace", "t");
    let back = f.enqueue(&q, full.at_priority(-3)).await;
    let delayed = f.enqueue(&q, task("2").delayed(500)).await;
    let failed = f.enqueue(&q, task("3").keyed("f").at_priority(-2)).await;
    for id in [back, failed] {
        let held = f.claim_one(&q).await;
        assert_eq!(held.id, id);
        f.advance(secs(2));
        let outcome = if id == back {
            Outcome::Retry { at: When::After(secs(90)), reason: Some("later".to_owned()) }
        } else {
            Outcome::Fail("never".to_owned())
        };
        f.end(&held, outcome).await;
    }
    f.advance(secs(5));
    for id in [back, delayed, failed] {
        let before = f.the(id).await;
        let new = import_one(f, &r, as_import(before.clone(), id == back)).await;
        assert!(new > failed, "a number of its own");
        assert_eq!(f.the(new).await, moved(&before, &r, new));
    }
    let stats = f.stats(&r).await;
    assert_eq!((stats.ready, stats.delayed, stats.failed, stats.counters.put), (0, 2, 1, 3));
    assert_eq!((stats.counters.failed, stats.counters.claimed), (0, 0), "nothing happened here");
}

pub(super) async fn verb_import_keeps_order_and_runs_on_from_the_same_attempt(f: &mut Fixture) {
    if skips(f) {
        return;
    }
    let (q, r) = (f.queue("q").await, f.queue_with("r", |s| s.max_attempts = Some(Some(2))).await);
    let ids =
        f.enqueue_all(&q, vec![task("late"), task("urgent").at_priority(-1), task("x")]).await;
    let urgent = f.claim_one(&q).await;
    f.end(&urgent, Outcome::Retry { at: When::After(secs(0)), reason: None }).await;
    let mut tasks = Vec::new();
    for id in ids {
        tasks.push(as_import(f.the(id).await, false));
    }
    import(f, &r, tasks).await;
    let claimed = f.claim_held(&r, 3).await;
    let shown: Vec<_> = claimed.iter().map(|h| (text(&h.task.payload), h.task.attempt)).collect();
    assert_eq!(shown, [("urgent", 2), ("late", 1), ("x", 1)]);
    f.end(&claimed[0], Outcome::Error("again".to_owned())).await;
    assert_eq!(f.the(claimed[0].id).await.state, State::Failed, "its attempts are used up");
}

/// A payload's text.
fn text(payload: &Payload) -> &str {
    std::str::from_utf8(&payload.bytes).expect("a text")
}

pub(super) async fn verb_import_recognises_a_repeat_even_when_the_task_is_gone(f: &mut Fixture) {
    if skips(f) {
        return;
    }
    let q = f.queue("q").await;
    // Its callers' ids are forgotten at once; marks are not.
    let r = f.queue_with("r", |s| s.id_window = Some(secs(0))).await;
    let from = f.enqueue(&q, task("x")).await;
    let one = as_import(f.the(from).await, false);
    let id = import_one(f, &r, one.clone()).await;
    assert_eq!(import(f, &r, vec![one.clone()]).await, [ImportAnswer::Already { id }]);
    let held = f.claim_one(&r).await;
    f.end(&held, Outcome::Done).await;
    f.advance(secs(7 * 24 * 3600));
    f.store.sweep().await.expect("a sweep");
    for handle in f.handles().await {
        let again = import(&handle, &r, vec![one.clone()]).await;
        assert_eq!(again, [ImportAnswer::Already { id }]);
    }
    let mut other = one;
    other.task.payload = task("y").payload;
    let reused = ImportAnswer::Refused(Refusal::IdReused { first: id });
    assert_eq!(import(f, &r, vec![other]).await, [reused]);
    assert_eq!(f.stats(&r).await.total(), 0);
}

pub(super) async fn verb_import_gives_both_places_of_a_key_in_any_order(f: &mut Fixture) {
    if skips(f) {
        return;
    }
    let q = f.queue("q").await;
    let first = f.enqueue(&q, task("first").keyed("k")).await;
    let held = f.claim_one(&q).await;
    let second = f.enqueue(&q, task("second").keyed("k")).await;
    f.end(&held, Outcome::Release { at: None, started: true }).await;
    let both = [as_import(f.the(first).await, true), as_import(f.the(second).await, false)];
    for (name, order) in [("r", [0, 1]), ("s", [1, 0])] {
        let to = f.queue(name).await;
        let mut ids = [TaskId(0); 2];
        for at in order {
            ids[at] = import_one(f, &to, both[at].clone()).await;
        }
        let mut places = f.places(&to, "k").await;
        places.sort_by_key(|(id, _)| *id != ids[0]);
        assert_eq!(places, [(ids[0], StandingPlace::InFlight), (ids[1], StandingPlace::Waiting)]);
        let stats = f.stats(&to).await;
        assert_eq!((stats.ready, stats.blocked), (1, 1));
        let running = f.claim_one(&to).await;
        assert_eq!(running.id, ids[0], "the one in flight goes first");
        f.claim_none(&to).await;
        f.end(&running, Outcome::Done).await;
        assert_eq!(f.claim_one(&to).await.id, ids[1]);
    }
}

pub(super) async fn verb_import_merges_with_nothing(f: &mut Fixture) {
    if skips(f) {
        return;
    }
    let (q, r) = (
        f.queue("q").await,
        f.queue_with("r", |s| {
            s.on_duplicate = Some(gristmill_core::OnDuplicate::Replace);
        })
        .await,
    );
    let standing = f.enqueue(&r, task("here").keyed("k")).await;
    let from = f.enqueue(&q, task("there").keyed("k")).await;
    let one = as_import(f.the(from).await, false);
    let duplicate = ImportAnswer::Duplicate { id: standing };
    assert_eq!(import(f, &r, vec![one.clone()]).await, [duplicate]);
    assert_eq!(text(&f.the(standing).await.payload), "here");
    // A failed one stands beside whatever its key has.
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Fail("never".to_owned())).await;
    import_one(f, &r, as_import(f.the(from).await, false)).await;
    // Once the place is free the same task is taken: a refusal left no mark.
    f.operate_one(Action::Cancel, standing).await;
    let mut one = one;
    one.mark = "another".to_owned();
    import_one(f, &r, one.clone()).await;
    // Of a key that is unique while active, one stands in all.
    let s = f.queue("s").await;
    let waiting = f.enqueue(&s, task("w").keyed("k")).await;
    one.task.unique = gristmill_core::Unique::Active;
    (one.task.claims, one.task.attempts, one.in_flight) = (1, 1, true);
    assert_eq!(import(f, &s, vec![one]).await, [ImportAnswer::Duplicate { id: waiting }]);
}

pub(super) async fn verb_import_asks_for_no_room_and_refuses_what_cannot_stand(f: &mut Fixture) {
    if skips(f) {
        return;
    }
    f.limit(|limits| limits.payload_bytes = 8).await;
    let q = f.queue("q").await;
    let r = f.queue_with("r", |s| s.capacity = Some(Some(1))).await;
    f.enqueue(&r, task("full")).await;
    let id = f.enqueue(&q, task("x")).await;
    let fine = as_import(f.the(id).await, false);
    import_one(f, &r, fine.clone()).await;
    let mut large = fine.clone();
    large.mark = "large".to_owned();
    large.task.payload = task("123456789").payload;
    let mut running = fine;
    running.mark = "running".to_owned();
    running.task.state = State::Processing;
    let mut damaged = large.clone();
    (damaged.mark, damaged.task.payload) = ("damaged".to_owned(), task("x").payload);
    damaged.task.damaged = Some("its headers are none".to_owned());
    let answers = import(f, &r, vec![large, running, damaged]).await;
    let too_large = Refusal::PayloadTooLarge { bytes: 9, limit: 8 };
    assert_eq!(answers[0], ImportAnswer::Refused(too_large));
    assert!(matches!(&answers[1], ImportAnswer::Refused(Refusal::Invalid(_))), "{answers:?}");
    // What the other store cannot read would be lost on the way.
    let why = "stored data of this task is damaged: its headers are none".to_owned();
    assert_eq!(answers[2], ImportAnswer::Refused(Refusal::Invalid(why)));
    assert_eq!(f.stats(&r).await.total(), 2);
}

/// Stores with clients of other languages have workers of any name.
pub(super) async fn verb_import_keeps_whatever_a_worker_was_called(f: &mut Fixture) {
    if skips(f) {
        return;
    }
    let (q, r) = (f.queue("q").await, f.queue("r").await);
    f.enqueue(&q, task("x")).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Fail("never".to_owned())).await;
    let mut one = as_import(f.the(held.id).await, false);
    let long = "w".repeat(300);
    let names = ["me@host 1:4711", "", "-", "\\", "a\nb\tc", "ünï", &long];
    let last = one.task.history[0].clone();
    one.task.history = names
        .iter()
        .map(|name| Attempt { worker: WorkerId::stored(name), ..last.clone() })
        .collect();
    let wanted = one.task.history.clone();
    let id = import_one(f, &r, one).await;
    assert_eq!(f.the(id).await.history, wanted);
    if f.kill().await {
        assert_eq!(f.the(id).await.history, wanted);
    }
}

pub(super) async fn verb_import_that_races_imports_once(f: &mut Fixture) {
    if skips(f) {
        return;
    }
    let (q, r) = (f.queue("q").await, f.queue("r").await);
    let mut tasks = Vec::new();
    for n in 0..20 {
        let new = task(&n.to_string());
        let id = f.enqueue(&q, if n % 2 == 0 { new.keyed(&n.to_string()) } else { new }).await;
        tasks.push(as_import(f.the(id).await, false));
    }
    let handles = f.handles().await;
    let racing: Vec<_> = (0..4)
        .map(|n| {
            let (handle, r, tasks) = (handles[n % handles.len()].clone(), r.clone(), tasks.clone());
            tokio::spawn(async move { import(&handle, &r, tasks).await })
        })
        .collect();
    let mut imported = 0;
    for answers in racing {
        for answer in answers.await.expect("an import") {
            match answer {
                ImportAnswer::Imported { .. } => imported += 1,
                ImportAnswer::Already { .. } | ImportAnswer::Duplicate { .. } => {}
                ImportAnswer::Refused(why) => panic!("refused: {why}"),
            }
        }
    }
    assert_eq!((imported, f.stats(&r).await.ready), (20, 20));
}
