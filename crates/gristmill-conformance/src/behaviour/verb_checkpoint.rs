//! What a handler keeps for the next attempt of its task: under the lease, through
//! everything that happens to the task, and no longer than it.

use gristmill_core::{
    Action, Checkpoint, CheckpointAnswer, Import, ImportAnswer, ImportTask, Kept, OnDuplicate,
    OperationAnswer, Outcome, PutAnswer, Refusal, State, TaskId, Token, When,
};

use crate::fixture::Fixture;
use crate::handle::{Handle, Held};
use crate::shape::{Shape, secs, task};

fn kept(text: &str) -> Option<Kept> {
    Some(Kept::from(text.as_bytes().to_vec()))
}

fn checkpoint(id: TaskId, token: Token, text: &str) -> Checkpoint {
    Checkpoint { id, token, state: Kept::from(text.as_bytes().to_vec()) }
}

async fn keep_all(f: &Handle, all: Vec<Checkpoint>) -> Vec<CheckpointAnswer> {
    let wanted = all.len();
    let answers = f.store.checkpoint(all).await.expect("checkpoints");
    assert_eq!(answers.len(), wanted, "one answer each: {answers:?}");
    answers
}

async fn keep(f: &Handle, held: &Held, text: &str) -> CheckpointAnswer {
    keep_all(f, vec![checkpoint(held.id, held.token, text)]).await.remove(0)
}

fn error() -> Outcome {
    Outcome::Error("wrong".to_owned())
}

pub(super) async fn verb_checkpoint_gives_the_next_attempt_what_was_kept(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    assert_eq!(held.task.checkpoint, None, "nobody kept anything");
    assert_eq!(keep(f, &held, "page 1").await, CheckpointAnswer::Kept);
    assert_eq!(keep(f, &held, "page 2").await, CheckpointAnswer::Kept);
    assert_eq!(f.the(id).await.checkpoint, kept("page 2"), "the last one, while it runs");
    f.end(&held, error()).await;
    assert_eq!(f.the(id).await.checkpoint, kept("page 2"), "when it is back");
    assert_eq!(f.all().await[0].checkpoint, kept("page 2"), "as it is listed");
    f.advance(secs(3600));
    let held = f.claim_one(&q).await;
    assert_eq!(held.task.checkpoint, kept("page 2"), "as its next handler gets it");
    assert_eq!(held.task.payload, task("a").payload, "beside its payload");
    assert_eq!(keep(f, &held, "page 3").await, CheckpointAnswer::Kept);
    f.end(&held, Outcome::Done).await;
    assert_eq!(f.store.get(id).await, Ok(None));
    assert_eq!(f.stats(&q).await.total(), 0);
}

pub(super) async fn verb_checkpoint_stays_through_every_way_back(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.max_attempts = Some(None)).await;
    let id = f.enqueue(&q, task("a").keyed("k")).await;
    let held = f.claim_one(&q).await;
    keep(f, &held, "here").await;
    let ways = [
        error(),
        Outcome::TimedOut(secs(1)),
        Outcome::Retry { at: When::After(secs(1)), reason: None },
        Outcome::Release { at: None, started: false },
        Outcome::Release { at: None, started: true },
    ];
    f.end(&held, error()).await;
    for way in ways {
        f.advance(secs(7200));
        let held = f.claim_one(&q).await;
        assert_eq!(held.task.checkpoint, kept("here"), "before {way:?}");
        f.end(&held, way).await;
    }
    f.advance(secs(7200));
    f.claim_one(&q).await;
    f.advance(secs(3600));
    f.store.reclaim().await.expect("reclaimed");
    assert_eq!(f.the(id).await.checkpoint, kept("here"), "after a lease that ran out");
    assert_eq!(f.claim_one(&q).await.task.checkpoint, kept("here"));
}

pub(super) async fn verb_checkpoint_under_a_stale_token_is_refused(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.lease = Some(secs(60))).await;
    let id = f.enqueue(&q, task("a")).await;
    let first = f.claim_one(&q).await;
    assert_eq!(keep(f, &first, "first").await, CheckpointAnswer::Kept);
    f.advance(secs(61));
    assert_eq!(keep(f, &first, "late").await, CheckpointAnswer::Kept, "nobody took it");
    f.store.reclaim().await.expect("reclaimed");
    assert_eq!(keep(f, &first, "stale").await, CheckpointAnswer::LeaseLost, "taken back");
    let second = f.claim_one(&q).await;
    assert_eq!(second.task.checkpoint, kept("late"));
    assert_eq!(keep(f, &first, "stale").await, CheckpointAnswer::LeaseLost, "another has it");
    let stranger = checkpoint(id, f.token(), "stranger");
    assert_eq!(keep_all(f, vec![stranger]).await, [CheckpointAnswer::LeaseLost]);
    assert_eq!(f.the(id).await.checkpoint, kept("late"), "nothing of it was kept");
    f.end(&second, error()).await;
    assert_eq!(keep(f, &second, "settled").await, CheckpointAnswer::LeaseLost);
    assert_eq!(f.the(id).await.checkpoint, kept("late"));
    f.advance(secs(3600));
    let third = f.claim_one(&q).await;
    f.end(&third, Outcome::Done).await;
    assert_eq!(keep(f, &third, "done").await, CheckpointAnswer::Gone);
    let never = checkpoint(TaskId(id.0 + 1_000), third.token, "never");
    assert_eq!(keep_all(f, vec![never]).await, [CheckpointAnswer::Gone]);
}

pub(super) async fn verb_checkpoint_keeps_each_by_itself(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue_all(&q, vec![task("a"), task("b"), task("c")]).await;
    let claim = f.claim(&q, 3).await;
    let ids: Vec<TaskId> = claim.tasks.iter().map(|task| task.id).collect();
    let all = vec![
        checkpoint(ids[2], claim.token, "of c"),
        checkpoint(ids[1], f.token(), "stale"),
        checkpoint(ids[0], claim.token, "first of a"),
        checkpoint(ids[0], claim.token, "last of a"),
    ];
    let answers = keep_all(f, all).await;
    assert_eq!(
        answers,
        [
            CheckpointAnswer::Kept,
            CheckpointAnswer::LeaseLost,
            CheckpointAnswer::Kept,
            CheckpointAnswer::Kept
        ]
    );
    let shown = [f.the(ids[0]).await, f.the(ids[1]).await, f.the(ids[2]).await];
    let shown = shown.map(|task| task.checkpoint);
    assert_eq!(shown, [kept("last of a"), None, kept("of c")]);
    // Some of the claim done, one back: only what is over goes.
    for (id, outcome) in [(ids[0], Outcome::Done), (ids[2], error()), (ids[1], Outcome::Done)] {
        let settlement = gristmill_core::Settlement::new(id, claim.token, outcome);
        f.store.settle(vec![settlement]).await.expect("settled");
    }
    assert_eq!(f.the(ids[2]).await.checkpoint, kept("of c"));
    assert_eq!(keep_all(f, Vec::new()).await, []);
}

pub(super) async fn verb_checkpoint_of_nothing_forgets_it(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    keep(f, &held, "here").await;
    assert_eq!(keep(f, &held, "").await, CheckpointAnswer::Kept);
    assert_eq!(f.the(id).await.checkpoint, None);
    f.end(&held, error()).await;
    f.advance(secs(3600));
    assert_eq!(f.claim_one(&q).await.task.checkpoint, None);
}

pub(super) async fn verb_checkpoint_has_a_limit(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    let full = "x".repeat(64 << 10);
    assert_eq!(keep(f, &held, &full).await, CheckpointAnswer::Kept);
    match keep(f, &held, &format!("{full}x")).await {
        CheckpointAnswer::Refused(Refusal::Invalid(why)) => {
            assert!(why.contains("65537") && why.contains("65536"), "{why}");
        }
        other => panic!("it is too large: {other:?}"),
    }
    assert_eq!(f.the(id).await.checkpoint, kept(&full), "the one before stays");
    f.end(&held, error()).await;
    f.advance(secs(3600));
    assert_eq!(f.claim_one(&q).await.task.checkpoint, kept(&full));
}

pub(super) async fn verb_checkpoint_stays_with_a_failed_task_until_it_is_retried_fresh(
    f: &mut Fixture,
) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    for (action, wanted) in [(Action::Retry, kept("here")), (Action::RetryFresh, None)] {
        let held = f.claim_one(&q).await;
        keep(f, &held, "here").await;
        f.end(&held, Outcome::Fail("no".to_owned())).await;
        assert_eq!(f.the(id).await.checkpoint, kept("here"), "for who looks at it");
        assert_eq!(f.operate_one(action, id).await, OperationAnswer::Moved);
        let again = f.the(id).await;
        assert_eq!((again.state, again.attempts), (State::Pending, 0), "{action:?}");
        assert_eq!(again.checkpoint, wanted, "{action:?}");
        let held = f.claim_one(&q).await;
        assert_eq!(held.task.checkpoint, wanted, "{action:?}");
        f.end(&held, Outcome::Release { at: None, started: false }).await;
    }
}

pub(super) async fn verb_checkpoint_goes_with_its_task(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.keep_done = Some(Some(secs(3600)))).await;
    // Done and kept, resolved and kept.
    for action in [None, Some(Action::Resolve)] {
        let id = f.enqueue(&q, task("a")).await;
        let held = f.claim_one(&q).await;
        keep(f, &held, "here").await;
        match action {
            None => f.end(&held, Outcome::Done).await,
            Some(action) => {
                f.end(&held, Outcome::Fail("no".to_owned())).await;
                assert_eq!(f.operate_one(action, id).await, OperationAnswer::Moved);
            }
        }
        let over = f.the(id).await;
        assert_eq!((over.state, over.checkpoint), (State::Done, None), "{action:?}");
        assert_eq!(keep(f, &held, "more").await, CheckpointAnswer::LeaseLost);
    }
    // Discarded, and cancelled while it waits for its next attempt.
    for (end, action) in [
        (Outcome::Fail("no".to_owned()), Action::Discard),
        (Outcome::Error("later".to_owned()), Action::Cancel),
    ] {
        let id = f.enqueue(&q, task("a")).await;
        let held = f.claim_one(&q).await;
        keep(f, &held, "here").await;
        f.end(&held, end).await;
        assert_eq!(f.operate_one(action, id).await, OperationAnswer::Moved);
        assert_eq!(f.store.get(id).await, Ok(None));
        assert_eq!(keep(f, &held, "more").await, CheckpointAnswer::Gone);
    }
}

pub(super) async fn verb_checkpoint_survives_a_kill(f: &mut Fixture) {
    let q = f.queue("q").await;
    let ids = f.enqueue_all(&q, vec![task("runs"), task("back")]).await;
    let claim = f.claim(&q, 2).await;
    let all = ids.iter().map(|id| checkpoint(*id, claim.token, "here")).collect();
    keep_all(f, all).await;
    let back = gristmill_core::Settlement::new(ids[1], claim.token, error());
    f.store.settle(vec![back]).await.expect("settled");
    if !f.kill().await {
        return;
    }
    for id in &ids {
        assert_eq!(f.the(*id).await.checkpoint, kept("here"));
    }
    f.advance(secs(7200));
    f.store.reclaim().await.expect("reclaimed");
    for _ in 0..2 {
        assert_eq!(f.claim_one(&q).await.task.checkpoint, kept("here"));
    }
}

pub(super) async fn verb_checkpoint_is_seen_by_other_processes(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    let handles = f.handles().await;
    for (nth, pair) in handles.iter().cycle().take(5).collect::<Vec<_>>().windows(2).enumerate() {
        let (one, other) = (pair[0], pair[1]);
        let text = format!("page {nth}");
        let held = one.claim_one(&q).await;
        assert_eq!(keep(one, &held, &text).await, CheckpointAnswer::Kept);
        assert_eq!(other.the(id).await.checkpoint, kept(&text));
        one.end(&held, error()).await;
        f.advance(secs(3600));
        let again = other.claim_one(&q).await;
        assert_eq!(again.task.checkpoint, kept(&text));
        assert_eq!(keep(one, &held, "stale").await, CheckpointAnswer::LeaseLost);
        other.end(&again, Outcome::Release { at: None, started: false }).await;
    }
}

pub(super) async fn verb_checkpoint_moves_with_an_import(f: &mut Fixture) {
    if !f.imports() {
        return;
    }
    let (q, r) = (f.queue("q").await, f.queue("r").await);
    let ids = f.enqueue_all(&q, vec![task("back"), task("failed")]).await;
    let claim = f.claim(&q, 2).await;
    keep_all(f, ids.iter().map(|id| checkpoint(*id, claim.token, "here")).collect()).await;
    for (id, outcome) in ids.iter().zip([error(), Outcome::Fail("no".to_owned())]) {
        let settlement = gristmill_core::Settlement::new(*id, claim.token, outcome);
        f.store.settle(vec![settlement]).await.expect("settled");
    }
    for id in ids {
        let task = f.the(id).await;
        let import = ImportTask { mark: format!("mark-{id}"), in_flight: false, task };
        let import = Import { queue: r.clone(), tasks: vec![import] };
        match f.store.import(import).await.expect("an import").remove(0) {
            ImportAnswer::Imported { id } => assert_eq!(f.the(id).await.checkpoint, kept("here")),
            other => panic!("it was not imported but {other:?}"),
        }
    }
    f.advance(secs(3600));
    assert_eq!(f.claim_one(&r).await.task.checkpoint, kept("here"));
}

pub(super) async fn verb_checkpoint_of_other_data_is_forgotten(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.on_duplicate = Some(OnDuplicate::Replace)).await;
    let id = f.enqueue(&q, task("a").keyed("k")).await;
    let held = f.claim_one(&q).await;
    keep(f, &held, "of a").await;
    f.end(&held, Outcome::Fail("no".to_owned())).await;
    assert_eq!(f.operate_one(Action::Retry, id).await, OperationAnswer::Moved);
    assert_eq!(f.put(&q, task("b").keyed("k")).await, PutAnswer::Replaced { id });
    assert_eq!(f.the(id).await.checkpoint, None, "it was about other data");
    assert_eq!(f.claim_one(&q).await.task.checkpoint, None);
}
