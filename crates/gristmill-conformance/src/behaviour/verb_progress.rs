//! How far running attempts are: told with an extension under the lease, shown to who
//! looks, and over with the attempt.

use gristmill_core::{
    Action, Checkpoint, CheckpointAnswer, ExtendAnswer, Extension, Kept, OperationAnswer, Outcome,
    Progress, State, TaskId, TaskProgress, Timestamp, Token,
};

use crate::fixture::Fixture;
use crate::handle::{Handle, Held};
use crate::shape::{secs, task};

/// What is told of tasks under one token.
fn extension<'a>(token: Token, told: impl IntoIterator<Item = (TaskId, &'a str)>) -> Extension {
    let progress = told.into_iter().map(|(id, said)| {
        let progress = said.parse().expect("how far it is");
        TaskProgress { id, progress }
    });
    Extension { token, lease: secs(60), progress: progress.collect() }
}

async fn extend(f: &Handle, extension: Extension) -> ExtendAnswer {
    f.store.extend(vec![extension]).await.expect("an extension").remove(0)
}

async fn tell(f: &Handle, held: &Held, said: &str) -> ExtendAnswer {
    extend(f, extension(held.token, [(held.id, said)])).await
}

fn extended() -> ExtendAnswer {
    ExtendAnswer::Extended { cancelled: Vec::new(), lost: Vec::new() }
}

/// How far a task is, and since when that is known.
async fn shown(f: &Handle, id: TaskId) -> Option<(String, Timestamp)> {
    let said = f.the(id).await.lease?.progress?;
    Some((said.progress.to_string(), said.at))
}

async fn said(f: &Handle, id: TaskId) -> Option<String> {
    shown(f, id).await.map(|(said, _)| said)
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

pub(super) async fn verb_progress_shows_what_was_said_last(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.lease = Some(secs(60))).await;
    let id = f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    assert_eq!(said(f, id).await, None, "nothing was said");
    let first = f.now();
    assert_eq!(tell(f, &held, "1/10 rows").await, extended());
    assert_eq!(shown(f, id).await, Some(("1/10 rows".to_owned(), first)));
    f.advance(secs(20));
    assert_eq!(tell(f, &held, "2/10").await, extended());
    let second = f.now();
    assert_eq!(shown(f, id).await, Some(("2/10".to_owned(), second)), "in place of the first");
    let lease = f.the(id).await.lease.expect("a lease");
    assert_eq!(lease.until, second.after(secs(60)), "it is more time as well");
    f.advance(secs(20));
    assert_eq!(f.extend(held.token, secs(60)).await, extended());
    assert_eq!(shown(f, id).await, Some(("2/10".to_owned(), second)), "no news change nothing");
    let listed = f.all().await.remove(0).lease.expect("a lease").progress.expect("progress");
    assert_eq!((listed.progress.percent(), listed.at), (Some(20), second), "as it is listed");
    f.end(&held, Outcome::Done).await;
    assert_eq!(f.store.get(id).await, Ok(None));
}

pub(super) async fn verb_progress_under_a_stale_token_is_not_shown(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.lease = Some(secs(60))).await;
    let id = f.enqueue(&q, task("a")).await;
    let first = f.claim_one(&q).await;
    f.advance(secs(61));
    assert_eq!(tell(f, &first, "1").await, extended(), "nobody took it");
    f.advance(secs(61));
    f.reclaim().await;
    assert_eq!(tell(f, &first, "2").await, ExtendAnswer::LeaseLost, "taken back");
    assert_eq!(said(f, id).await, None);
    let second = f.claim_one(&q).await;
    assert_eq!(said(f, id).await, None, "the next attempt has said nothing");
    assert_eq!(tell(f, &first, "3").await, ExtendAnswer::LeaseLost, "another has it");
    let stranger = extension(f.token(), [(id, "4")]);
    assert_eq!(extend(f, stranger).await, ExtendAnswer::LeaseLost);
    assert_eq!(said(f, id).await, None);
    // Somebody else's lease is no way to speak of it either, nor is there a way to speak
    // of what was never there.
    let other = f.enqueue(&q, task("b")).await;
    let beside = f.claim_one(&q).await;
    let nobody = TaskId(id.0 + 1_000);
    let told = extension(beside.token, [(id, "5"), (nobody, "6"), (other, "7")]);
    assert_eq!(extend(f, told).await, extended());
    assert_eq!((said(f, id).await, said(f, other).await), (None, some("7")));
    assert_eq!(tell(f, &second, "8").await, extended());
    assert_eq!(said(f, id).await, some("8"));
}

pub(super) async fn verb_progress_ends_with_its_attempt(f: &mut Fixture) {
    let q = f
        .queue_with("q", |s| {
            s.max_attempts = Some(None);
            s.keep_done = Some(Some(secs(3600)));
        })
        .await;
    let id = f.enqueue(&q, task("a").clone()).await;
    for end in [
        Outcome::Error("wrong".to_owned()),
        Outcome::Release { at: None, started: true },
        Outcome::TimedOut(secs(1)),
        Outcome::Fail("no".to_owned()),
    ] {
        f.advance(secs(7200));
        let held = f.claim_one(&q).await;
        assert_eq!(said(f, id).await, None, "before {end:?}");
        tell(f, &held, "1/2").await;
        assert_eq!(said(f, id).await, some("1/2"));
        f.end(&held, end.clone()).await;
        assert_eq!(said(f, id).await, None, "after {end:?}");
    }
    assert_eq!(f.operate_one(Action::Retry, id).await, OperationAnswer::Moved);
    let held = f.claim_one(&q).await;
    tell(f, &held, "2/2").await;
    f.advance(secs(3600));
    f.reclaim().await;
    assert_eq!(said(f, id).await, None, "after a lease that ran out");
    let held = f.claim_one(&q).await;
    assert_eq!(said(f, id).await, None);
    tell(f, &held, "2/2").await;
    f.end(&held, Outcome::Done).await;
    let kept = f.the(id).await;
    assert_eq!((kept.state, kept.lease), (State::Done, None));
}

pub(super) async fn verb_progress_is_of_each_task_by_itself(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.max_attempts = Some(None)).await;
    let ids = f.enqueue_all(&q, vec![task("a"), task("b"), task("c")]).await;
    let token = f.claim(&q, 3).await.token;
    let all =
        async |f: &Handle| [said(f, ids[0]).await, said(f, ids[1]).await, said(f, ids[2]).await];
    extend(f, extension(token, [(ids[2], "3"), (ids[0], "1"), (ids[0], "one")])).await;
    assert_eq!(all(f).await, [some("one"), None, some("3")], "the last word of each");
    let both = vec![
        extension(token, [(ids[1], "2"), (ids[2], "three")]),
        extension(f.token(), [(ids[0], "stale")]),
        extension(token, [(ids[1], "two")]),
    ];
    let answers = f.store.extend(both).await.expect("extensions");
    assert_eq!(answers, [extended(), ExtendAnswer::LeaseLost, extended()]);
    assert_eq!(all(f).await, [some("one"), some("two"), some("three")], "those beside stay");
    let settle =
        |id: TaskId| gristmill_core::Settlement::new(id, token, Outcome::Error("wrong".to_owned()));
    f.store.settle(vec![settle(ids[1])]).await.expect("settled");
    extend(f, extension(token, [(ids[1], "late"), (ids[0], "uno")])).await;
    assert_eq!(all(f).await, [some("uno"), None, some("three")], "one of them ended");
    f.advance(secs(7200));
    // Their lease ran out as well.
    f.reclaim().await;
    assert_eq!(all(f).await, [None, None, None]);
}

pub(super) async fn verb_progress_stays_while_the_task_is_written(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    tell(f, &held, "1/2 before").await;
    let state = Kept::from(b"here".to_vec());
    let checkpoint = Checkpoint { id, token: held.token, state };
    let kept = f.store.checkpoint(vec![checkpoint]).await.expect("a checkpoint");
    assert_eq!(kept, [CheckpointAnswer::Kept]);
    assert_eq!(f.operate_one(Action::Cancel, id).await, OperationAnswer::CancelRequested);
    for handle in f.handles().await {
        assert_eq!(said(&handle, id).await, some("1/2 before"));
    }
    if f.kill().await {
        assert_eq!(said(f, id).await, some("1/2 before"), "as far as its lease");
    }
}

pub(super) async fn verb_progress_is_seen_by_other_processes(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    let handles = f.handles().await;
    for (nth, pair) in handles.iter().cycle().take(5).collect::<Vec<_>>().windows(2).enumerate() {
        let (one, other) = (pair[0], pair[1]);
        let held = one.claim_one(&q).await;
        tell(one, &held, &format!("{nth}/9")).await;
        assert_eq!(said(other, id).await, Some(format!("{nth}/9")));
        other.end(&held, Outcome::Release { at: None, started: false }).await;
        assert_eq!(said(one, id).await, None);
    }
}

pub(super) async fn verb_progress_is_kept_as_it_is_said_and_no_longer(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    let long = "ä".repeat(4_000);
    for progress in [
        Progress::new(u64::MAX, Some(u64::MAX), ""),
        Progress::new(0, Some(0), "\"quoted\", {braced} 'and' \\back\\"),
        Progress::new(7, None, "two\nlines\0and\ttabs"),
        Progress::new(0, None, "🦀 ß %s $1 :name ?"),
        Progress::new(3, Some(1), &long),
    ] {
        let told = TaskProgress { id, progress: progress.clone() };
        let told = Extension { token: held.token, lease: secs(60), progress: vec![told] };
        assert_eq!(extend(f, told).await, extended());
        let shown = f.the(id).await.lease.and_then(|lease| lease.progress);
        assert_eq!(shown.map(|shown| shown.progress), Some(progress));
    }
    let shown = said(f, id).await.expect("progress");
    assert!(shown.len() < 300, "a long message is cut: {}", shown.len());
}

pub(super) async fn verb_progress_does_not_prolong_by_a_length_that_is_none(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("a")).await;
    let held = f.claim_one(&q).await;
    let mut wrong = extension(held.token, [(id, "1")]);
    wrong.lease = secs(0);
    assert!(f.store.extend(vec![wrong]).await.is_err());
    assert_eq!(said(f, id).await, None, "all of it or nothing");
}
