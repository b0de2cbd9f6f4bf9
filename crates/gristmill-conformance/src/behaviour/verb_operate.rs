//! What operators do by hand: retry, resolve, discard and cancel, by ids and
//! by filter, in bounded steps.

use gristmill_core::{
    Action, Operation, OperationAnswer, Outcome, QueueName, Selection, Start, State, TaskFilter,
    TaskId,
};

use crate::fixture::Fixture;
use crate::shape::{Shape, plain, secs, task};

/// A task that failed with these words.
async fn failed(f: &Fixture, q: &QueueName, why: &str) -> TaskId {
    let id = f.enqueue(q, task("x").at_priority(-9)).await;
    let held = f.claim_one(q).await;
    f.end(&held, Outcome::Fail(why.to_owned())).await;
    id
}

pub(super) async fn verb_operate_retry_sends_a_failed_task_back(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = failed(f, &q, "never").await;
    let before = f.the(id).await;
    f.advance(secs(50));
    assert_eq!(f.operate_one(Action::Retry, id).await, OperationAnswer::Moved);
    let back = f.the(id).await;
    assert_eq!((back.state, back.run_at, back.failed_at), (State::Pending, f.now(), None));
    assert_eq!((back.created_at, back.claims), (before.created_at, 1));
    assert_eq!((back.resolved_by, back.resolved_at), (None, None));
    assert_eq!(back.history, before.history, "what happened stays on record");
    let note = back.note.expect("a note");
    assert_eq!((note.text.as_str(), note.by.as_str()), ("because", "operator"));
    let stats = f.stats(&q).await;
    assert_eq!((stats.failed, stats.ready, stats.counters.operator_retried), (0, 1, 1));
    assert_eq!(f.claim_one(&q).await.id, id);
}

pub(super) async fn verb_operate_retries_at_a_time(f: &mut Fixture) {
    let q = f.queue("q").await;
    let (by, note) = ("operator".to_owned(), None);
    let retry = |id, start| Operation {
        action: Action::Retry,
        selection: Selection::Ids(vec![id]),
        limit: 1,
        by: by.clone(),
        note: note.clone(),
        start,
    };
    let (hour, minute) = (f.now().after(secs(3_600)), secs(60));
    for (start, then) in [
        (Start::At(hour), hour),
        (Start::After(minute), f.now().after(minute)),
        // It is not put back before those that are due already.
        (Start::At(f.now().before(minute)), f.now()),
    ] {
        let id = failed(f, &q, "never").await;
        let report = f.store.operate(retry(id, start)).await.expect("a step");
        assert_eq!(report.answers, [(id, OperationAnswer::Moved)], "{start:?}");
        let back = f.the(id).await;
        assert_eq!((back.state, back.run_at), (State::Pending, then), "{start:?}");
    }
    let stats = f.stats(&q).await;
    assert_eq!((stats.delayed, stats.ready, stats.failed), (2, 1, 0));
    f.claim_one(&q).await;
    assert!(f.claim_held(&q, 5).await.is_empty(), "the others are not due");
    f.advance(secs(61));
    f.claim_one(&q).await;
    f.advance(secs(3_600));
    assert_eq!(f.stats(&q).await.counters.operator_retried, 3);
}

/// Its key's place is taken meanwhile: it waits there for both.
pub(super) async fn verb_operate_retries_a_blocked_one_at_a_time(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("x").keyed("k")).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Fail("never".to_owned())).await;
    f.enqueue(&q, task("y").keyed("k")).await;
    let running = f.claim_one(&q).await;
    let retry = Operation {
        action: Action::Retry,
        selection: Selection::Ids(vec![id]),
        limit: 1,
        by: "operator".to_owned(),
        note: None,
        start: Start::After(secs(30)),
    };
    let report = f.store.operate(retry).await.expect("a step");
    assert_eq!(report.answers, [(id, OperationAnswer::Moved)]);
    assert_eq!(f.stats(&q).await.blocked, 1);
    f.end(&running, Outcome::Done).await;
    let stats = f.stats(&q).await;
    assert_eq!((stats.blocked, stats.delayed, stats.ready), (0, 1, 0));
    assert!(f.claim_held(&q, 5).await.is_empty(), "it is not due");
    f.advance(secs(31));
    assert_eq!(f.claim_one(&q).await.id, id);
}

pub(super) async fn verb_operate_resolve_takes_off_the_failed_list(f: &mut Fixture) {
    let q = f.queue("q").await;
    let kept = f.queue_with("kept", |s| s.keep_done = Some(Some(secs(60)))).await;
    let gone = failed(f, &q, "never").await;
    assert_eq!(f.operate_one(Action::Resolve, gone).await, OperationAnswer::Moved);
    assert_eq!(f.get(gone).await, None);
    let id = failed(f, &kept, "never").await;
    assert_eq!(f.operate_one(Action::Resolve, id).await, OperationAnswer::Moved);
    let shown = f.the(id).await;
    assert_eq!((shown.state, shown.resolved_at), (State::Done, Some(f.now())));
    assert_eq!(shown.resolved_by.as_deref(), Some("operator"));
    for queue in [&q, &kept] {
        let stats = f.stats(queue).await;
        assert_eq!((stats.failed, stats.counters.resolved, stats.counters.done), (0, 1, 0));
    }
}

pub(super) async fn verb_operate_discard_deletes_a_failed_task(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.keep_done = Some(Some(secs(60)))).await;
    let id = failed(f, &q, "never").await;
    assert_eq!(f.operate_one(Action::Discard, id).await, OperationAnswer::Moved);
    assert_eq!(f.get(id).await, None);
    assert_eq!(f.stats(&q).await.counters.discarded, 1);
}

pub(super) async fn verb_operate_refuses_a_wrong_state(f: &mut Fixture) {
    let q = f.queue("q").await;
    let failed = failed(f, &q, "never").await;
    let pending = f.enqueue(&q, task("x").delayed(9)).await;
    let processing = f.enqueue(&q, task("x")).await;
    f.claim_one(&q).await;
    let before = f.all().await;
    for action in Action::ALL {
        for (id, state) in
            [(failed, State::Failed), (pending, State::Pending), (processing, State::Processing)]
        {
            if !action.applies_to(state) {
                let answer = f.operate_one(action, id).await;
                assert_eq!(answer, OperationAnswer::WrongState(state), "{action:?}");
            }
        }
        assert_eq!(f.operate_one(action, TaskId(9_999)).await, OperationAnswer::Gone);
    }
    assert_eq!(f.all().await, before, "nothing changed");
}

pub(super) async fn verb_operate_answers_in_the_order_of_ids(f: &mut Fixture) {
    let q = f.queue("q").await;
    let ids = f.enqueue_all(&q, plain(4)).await;
    let answers = f.operate(Action::Cancel, &[ids[2], ids[0], ids[3]]).await;
    let moved = OperationAnswer::Moved;
    assert_eq!(answers, [(ids[0], moved), (ids[2], moved), (ids[3], moved)]);
    assert_eq!(f.all().await.len(), 1);
}

fn matching(action: Action, filter: TaskFilter, after: Option<TaskId>) -> Operation {
    Operation {
        action,
        selection: Selection::Matching { filter, after },
        limit: 4,
        by: "operator".to_owned(),
        note: None,
        start: Start::Now,
    }
}

pub(super) async fn verb_operate_goes_through_all_matching_in_steps(f: &mut Fixture) {
    let (q, r) = (f.queue("q").await, f.queue("r").await);
    let mut wanted = Vec::new();
    for n in 0..11 {
        let why = if n % 2 == 0 { "timeout at host" } else { "bad data" };
        let id = failed(f, &q, why).await;
        if n % 2 == 0 {
            wanted.push(id);
        }
    }
    failed(f, &r, "timeout at host").await;
    f.enqueue_all(&q, plain(3)).await;
    let filter = TaskFilter {
        queue: Some(q.clone()),
        error_contains: Some("timeout".to_owned()),
        ..TaskFilter::default()
    };
    let mut moved = Vec::new();
    let mut after = None;
    for _ in 0..100 {
        let step = matching(Action::Retry, filter.clone(), after);
        let report = f.store.operate(step).await.expect("a step");
        assert!(report.answers.len() <= 4, "a bounded step");
        assert_eq!(report.moved(), report.answers.len());
        moved.extend(report.answers.iter().map(|(id, _)| *id));
        after = report.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((moved, after), (wanted, None));
    assert_eq!(f.stats(&q).await.failed, 5);
    assert_eq!(f.stats(&r).await.failed, 1);
}

pub(super) async fn verb_operate_cancels_by_key_and_passes_others_over(f: &mut Fixture) {
    let q = f.queue("q").await;
    let old = f.enqueue(&q, task("old").keyed("k")).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Fail("never".to_owned())).await;
    let running = f.enqueue(&q, task("running").keyed("k")).await;
    f.claim_one(&q).await;
    let waiting = f.enqueue(&q, task("waiting").keyed("k")).await;
    let other = f.enqueue(&q, task("other").keyed("other")).await;
    let filter = TaskFilter { key: Some("k".to_owned()), ..TaskFilter::default() };
    let report = f.store.operate(matching(Action::Cancel, filter, None)).await;
    let wanted = [(running, OperationAnswer::CancelRequested), (waiting, OperationAnswer::Moved)];
    assert_eq!(report.expect("a step").answers, wanted);
    let left: Vec<_> = f.all().await.iter().map(|task| task.id).collect();
    assert_eq!(left, [old, running, other]);
}

pub(super) async fn verb_operate_that_races_a_settlement_has_one_winner(f: &mut Fixture) {
    let q = f.queue("q").await;
    let handles = f.handles().await;
    for _ in 0..20 {
        f.enqueue(&q, task("x")).await;
        let held = f.claim_one(&q).await;
        let (one, two) = (f.handle(), handles[handles.len() - 1].clone());
        let (mine, id) = (held.clone(), held.id);
        let settling = tokio::spawn(async move { one.settle(&mine, Outcome::Done).await });
        let operating = tokio::spawn(async move { two.operate_one(Action::Cancel, id).await });
        let answer = settling.await.expect("a settlement");
        assert!(answer.is_recorded(), "the holder's word counts: {answer:?}");
        let asked = operating.await.expect("an operation");
        assert!(
            matches!(asked, OperationAnswer::CancelRequested | OperationAnswer::Gone),
            "{asked:?}"
        );
        assert_eq!(f.get(id).await, None);
    }
    assert_eq!(f.stats(&q).await.counters.done, 20);
}

pub(super) async fn verb_operate_leaves_alone_what_came_to_match_later(f: &mut Fixture) {
    let q = f.queue("q").await;
    let again = failed(f, &q, "broken").await;
    let stays = failed(f, &q, "broken").await;
    let waits = f.enqueue(&q, task("x").at_priority(9)).await;
    let filter = TaskFilter { stood_at: Some(f.now()), ..TaskFilter::default() };
    f.advance(secs(1));
    // One fails again, one for the first time, and one is put.
    assert_eq!(f.operate_one(Action::Retry, again).await, OperationAnswer::Moved);
    let held = f.claim_one(&q).await;
    assert_eq!(held.id, again);
    f.end(&held, Outcome::Fail("broken".to_owned())).await;
    failed(f, &q, "broken").await;
    f.enqueue(&q, task("x").at_priority(9)).await;
    for (action, meant) in [(Action::Discard, stays), (Action::Cancel, waits)] {
        let step = matching(action, filter.clone(), None);
        let report = f.store.operate(step).await.expect("a step");
        assert_eq!(report.answers, [(meant, OperationAnswer::Moved)], "{action:?}");
    }
}
