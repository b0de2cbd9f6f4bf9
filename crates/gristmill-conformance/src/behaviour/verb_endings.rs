//! What came of a task: its end, and what its handler returned, for as long as its
//! queue keeps it and whoever waits for it needs.

use std::time::{Duration, Instant};

use gristmill_core::{
    Action, Became, Ending, FollowUp, Import, ImportAnswer, ImportTask, NewTask, OperationAnswer,
    Outcome, Payload, PutAnswer, QueueName, SettleAnswer, Settlement, TaskId,
};

use crate::fixture::Fixture;
use crate::handle::{Handle, Held};
use crate::shape::{Shape, millis, name, secs, task};

/// Far longer than a hint may take, far shorter than a behaviour may.
const LONG: Duration = Duration::from_secs(10);

fn json(text: &str) -> Payload {
    Payload::json(text.to_owned())
}

fn done(text: &str) -> Ending {
    Ending::Done { value: Some(json(text)) }
}

const NOTHING: Ending = Ending::Done { value: None };

fn failed(error: &str) -> Ending {
    Ending::Failed { error: error.to_owned() }
}

fn wanted(mut task: NewTask) -> NewTask {
    task.settings.set_wanted();
    task
}

async fn ending(f: &Handle, id: TaskId) -> Ending {
    let mut endings = f.store.endings(&[id]).await.expect("endings");
    assert_eq!(endings.len(), 1, "one answer each: {endings:?}");
    endings.remove(0)
}

async fn finish(f: &Handle, held: &Held, value: &str) -> SettleAnswer {
    let settlement = Settlement::new(held.id, held.token, Outcome::Done);
    f.settle_full(Settlement { result: Some(json(value)), ..settlement }).await
}

/// Puts a task, runs it, and gives its id.
async fn run(f: &Handle, queue: &QueueName, new: NewTask, value: Option<&str>) -> TaskId {
    let id = f.enqueue(queue, new).await;
    let held = f.claim_one(queue).await;
    assert_eq!(ending(f, id).await, Ending::Open { wanted: held.task.settings.is_wanted() });
    match value {
        Some(value) => assert!(finish(f, &held, value).await.is_recorded()),
        None => f.end(&held, Outcome::Done).await,
    }
    id
}

pub(super) async fn verb_endings_keep_nothing_that_nobody_asked_for(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = run(f, &q, task("a"), Some("1")).await;
    assert_eq!(ending(f, id).await, Ending::NotKnown);
    assert_eq!(ending(f, TaskId(id.0 + 1_000)).await, Ending::NotKnown, "there never was one");
    assert_eq!(f.store.endings(&[]).await, Ok(Vec::new()));
    let many = vec![id; f.store.limits().page + 1];
    assert!(f.store.endings(&many).await.is_err(), "more than a page");
}

pub(super) async fn verb_endings_are_kept_as_long_as_the_queue_says(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.keep_result = Some(Some(secs(100)))).await;
    let value = run(f, &q, task("a"), Some("{\"sum\": 3}")).await;
    let none = run(f, &q, task("b"), None).await;
    assert_eq!(ending(f, value).await, done("{\"sum\": 3}"), "kept as it was given");
    assert_eq!(ending(f, none).await, NOTHING);
    assert_eq!(f.store.get(value).await, Ok(None), "the task itself is gone");
    assert_eq!(f.stats(&q).await.done_kept, 0);
    f.advance(secs(99));
    f.store.sweep().await.expect("a sweep");
    let both = f.store.endings(&[none, value]).await.expect("endings");
    assert_eq!(both, [NOTHING, done("{\"sum\": 3}")], "in the order in which they were asked for");
    f.advance(secs(1));
    assert_eq!(ending(f, value).await, Ending::NotKnown, "also before anybody swept");
    let swept = f.store.sweep().await.expect("a sweep");
    assert_eq!(swept.forgotten_endings, 2);
    assert_eq!(f.store.sweep().await.expect("a sweep").forgotten_endings, 0);
}

pub(super) async fn verb_endings_go_with_the_done_task(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.keep_done = Some(Some(secs(1000)))).await;
    let value = run(f, &q, task("a"), Some("7")).await;
    let none = run(f, &q, task("b"), None).await;
    assert_eq!([ending(f, value).await, ending(f, none).await], [done("7"), NOTHING]);
    f.advance(secs(999));
    f.store.sweep().await.expect("a sweep");
    assert_eq!([ending(f, value).await, ending(f, none).await], [done("7"), NOTHING]);
    f.advance(secs(2));
    f.store.sweep().await.expect("a sweep");
    let gone = [ending(f, value).await, ending(f, none).await];
    assert_eq!(gone, [Ending::NotKnown, Ending::NotKnown]);
    // Said apart, what is returned goes before its task.
    f.override_with(&q, |s| s.keep_result = Some(Some(secs(10)))).await;
    let value = run(f, &q, task("c"), Some("8")).await;
    assert_eq!(ending(f, value).await, done("8"));
    f.advance(secs(11));
    f.store.sweep().await.expect("a sweep");
    assert_eq!(ending(f, value).await, NOTHING);
}

pub(super) async fn verb_endings_of_wanted_tasks_are_kept_ten_minutes(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.keep_failed = Some(Some(secs(1)))).await;
    let mut all = vec![
        (run(f, &q, wanted(task("a")), Some("1")).await, done("1")),
        (run(f, &q, wanted(task("b")), None).await, NOTHING),
    ];
    // Cancelled while it waits, and while it runs.
    let waits = f.enqueue(&q, wanted(task("c"))).await;
    assert_eq!(ending(f, waits).await, Ending::Open { wanted: true });
    assert_eq!(f.operate_one(Action::Cancel, waits).await, OperationAnswer::Moved);
    all.push((waits, Ending::Cancelled));
    let runs = f.enqueue(&q, wanted(task("d"))).await;
    let held = f.claim_one(&q).await;
    assert_eq!(f.operate_one(Action::Cancel, runs).await, OperationAnswer::CancelRequested);
    f.end(&held, Outcome::Cancelled).await;
    all.push((runs, Ending::Cancelled));
    // Failed: as long as it stands, and after that.
    let mut fail = Vec::new();
    for action in [None, Some(Action::Discard), Some(Action::Resolve)] {
        let id = f.enqueue(&q, wanted(task("e"))).await;
        let held = f.claim_one(&q).await;
        f.end(&held, Outcome::Fail("no such host".to_owned())).await;
        assert_eq!(ending(f, id).await, failed("no such host"));
        if let Some(action) = action {
            assert_eq!(f.operate_one(action, id).await, OperationAnswer::Moved);
        }
        fail.push(id);
    }
    f.advance(secs(2));
    f.store.sweep().await.expect("a sweep");
    all.extend(fail.into_iter().zip([failed("no such host"), Ending::Discarded, NOTHING]));
    f.advance(secs(595));
    f.store.sweep().await.expect("a sweep");
    for (id, is) in &all {
        assert_eq!(ending(f, *id).await, *is, "{id}");
    }
    f.advance(secs(10));
    f.store.sweep().await.expect("a sweep");
    for (id, _) in all {
        assert_eq!(ending(f, id).await, Ending::NotKnown, "{id}");
    }
}

pub(super) async fn verb_endings_of_others_are_not_kept_when_operators_end_them(f: &mut Fixture) {
    let q = f.queue("q").await;
    let waits = f.enqueue(&q, task("a")).await;
    f.operate_one(Action::Cancel, waits).await;
    let id = f.enqueue(&q, task("b")).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Fail("no".to_owned())).await;
    assert_eq!(ending(f, id).await, failed("no"), "it stands and tells");
    f.operate_one(Action::Discard, id).await;
    assert_eq!([ending(f, waits).await, ending(f, id).await], [Ending::NotKnown, Ending::NotKnown]);
}

pub(super) async fn verb_endings_may_be_wanted_by_a_duplicate(f: &mut Fixture) {
    let q = f.queue("q").await;
    let r = f.queue_with("r", |s| s.unique = Some(gristmill_core::Unique::Active)).await;
    let waiting = f.enqueue(&q, task("a").keyed("k")).await;
    let running = f.enqueue(&r, task("a").keyed("k")).await;
    let second = f.claim_one(&r).await;
    for (queue, id) in [(&q, waiting), (&r, running)] {
        assert_eq!(ending(f, id).await, Ending::Open { wanted: false });
        let answer = f.put(queue, wanted(task("b").keyed("k"))).await;
        assert_eq!(answer.id(), Some(id), "{answer:?}");
        assert_eq!(ending(f, id).await, Ending::Open { wanted: true });
    }
    let first = f.claim_one(&q).await;
    for held in [first, second] {
        assert!(finish(f, &held, "5").await.is_recorded());
        assert_eq!(ending(f, held.id).await, done("5"));
    }
    // By its caller's id, too; and of one that is replaced.
    let s =
        f.queue_with("s", |s| s.on_duplicate = Some(gristmill_core::OnDuplicate::Replace)).await;
    let first = f.enqueue(&s, task("a").keyed("k").with_id("i")).await;
    let replaced = f.put(&s, wanted(task("c").keyed("k"))).await;
    assert_eq!(replaced, PutAnswer::Replaced { id: first });
    assert_eq!(ending(f, first).await, Ending::Open { wanted: true });
}

pub(super) async fn verb_endings_are_wanted_on_every_path(f: &mut Fixture) {
    let (q, r) = (f.queue("q").await, f.queue("r").await);
    f.enqueue(&q, task("x")).await;
    let held = f.claim_one(&q).await;
    let follow_up = FollowUp { queue: r.clone(), task: wanted(task("next")) };
    let settlement = Settlement::new(held.id, held.token, Outcome::Done);
    let settlement = Settlement { follow_ups: vec![follow_up], ..settlement };
    let SettleAnswer::Recorded { follow_ups, .. } = f.settle_full(settlement).await else {
        panic!("it was not recorded");
    };
    let mut ids: Vec<TaskId> = follow_ups.iter().filter_map(PutAnswer::id).collect();
    ids.extend(f.enqueue_all(&r, vec![wanted(task("b")), wanted(task("c").keyed("k"))]).await);
    let atomic = f.put_as(&r, vec![wanted(task("d")), wanted(task("e"))], true).await;
    ids.extend(atomic.iter().filter_map(PutAnswer::id));
    if f.imports() {
        let task = f.the(ids[0]).await;
        let import = ImportTask { mark: "mark".to_owned(), in_flight: false, task };
        let import = Import { queue: r.clone(), tasks: vec![import] };
        match f.store.import(import).await.expect("an import").remove(0) {
            ImportAnswer::Imported { id } => ids.push(id),
            other => panic!("it was not imported but {other:?}"),
        }
    }
    for id in &ids {
        assert_eq!(ending(f, *id).await, Ending::Open { wanted: true }, "{id}");
    }
    assert!(ids.len() >= 5, "{ids:?}");
    for held in f.claim_held(&r, 10).await {
        assert!(held.task.settings.is_wanted(), "its worker is told");
        assert!(finish(f, &held, "9").await.is_recorded());
    }
    for id in ids {
        assert_eq!(ending(f, id).await, done("9"), "{id}");
    }
}

pub(super) async fn verb_endings_of_a_batch_are_each_ones_own(f: &mut Fixture) {
    let q = f.queue("q").await;
    let tasks = vec![task("a"), wanted(task("b")), task("c"), wanted(task("d")), task("e")];
    let ids = f.enqueue_all(&q, tasks).await;
    let claim = f.claim(&q, 5).await;
    let settlements = ids.iter().enumerate().map(|(nth, id)| {
        let settlement = Settlement::new(*id, claim.token, Outcome::Done);
        Settlement { result: (nth != 3).then(|| json(&nth.to_string())), ..settlement }
    });
    let answers = f.store.settle(settlements.collect()).await.expect("settled");
    assert!(answers.iter().all(SettleAnswer::is_recorded), "{answers:?}");
    let all = f.store.endings(&ids).await.expect("endings");
    let none = Ending::NotKnown;
    assert_eq!(all, [none.clone(), done("1"), none.clone(), NOTHING, none]);
    assert_eq!(f.stats(&q).await.counters.done, 5);
    // Plainly done, in one call with one that is wanted and one that comes back.
    let tasks = vec![task("a"), wanted(task("b")), wanted(task("c"))];
    let ids = f.enqueue_all(&q, tasks).await;
    let claim = f.claim(&q, 3).await;
    let outcomes = [Outcome::Done, Outcome::Done, Outcome::Error("later".to_owned())];
    let settlements = ids.iter().zip(outcomes);
    let settlements =
        settlements.map(|(id, outcome)| Settlement::new(*id, claim.token, outcome)).collect();
    f.store.settle(settlements).await.expect("settled");
    let all = f.store.endings(&ids).await.expect("endings");
    assert_eq!(all, [Ending::NotKnown, NOTHING, Ending::Open { wanted: true }]);
}

pub(super) async fn verb_endings_have_a_limit(f: &mut Fixture) {
    let q = f.queue("q").await;
    let full = "x".repeat(64 << 10);
    let id = run(f, &q, wanted(task("a")), Some(&full)).await;
    assert_eq!(ending(f, id).await, done(&full));
    let id = f.enqueue(&q, wanted(task("b"))).await;
    let held = f.claim_one(&q).await;
    let settlement = Settlement {
        result: Some(json(&format!("{full}x"))),
        follow_ups: vec![FollowUp { queue: q.clone(), task: task("next") }],
        ..Settlement::new(held.id, held.token, Outcome::Done)
    };
    match f.settle_full(settlement).await {
        SettleAnswer::Recorded { became: Became::Failed, follow_ups } => {
            assert_eq!(follow_ups, [], "without a done nothing follows");
        }
        other => panic!("no repeating makes it smaller: {other:?}"),
    }
    let why = "the result has 65537 bytes and 65536 are allowed";
    assert_eq!(ending(f, id).await, failed(why));
    assert_eq!(f.stats(&q).await.total(), 1, "nothing followed");
}

pub(super) async fn verb_endings_are_fenced(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, wanted(task("a"))).await;
    let first = f.claim_one(&q).await;
    f.advance(secs(61));
    f.store.reclaim().await.expect("reclaimed");
    let second = f.claim_one(&q).await;
    assert_eq!(finish(f, &first, "stale").await, SettleAnswer::LeaseLost);
    assert_eq!(ending(f, id).await, Ending::Open { wanted: true }, "nothing of it is kept");
    assert!(finish(f, &second, "fresh").await.is_recorded());
    assert!(!finish(f, &first, "stale").await.is_recorded());
    assert!(!finish(f, &second, "repeated").await.is_recorded());
    assert_eq!(ending(f, id).await, done("fresh"));
    // Only what is done returns something.
    let id = f.enqueue(&q, wanted(task("b"))).await;
    let held = f.claim_one(&q).await;
    let settlement = Settlement::new(held.id, held.token, Outcome::Fail("no".to_owned()));
    f.settle_full(Settlement { result: Some(json("1")), ..settlement }).await;
    assert_eq!(ending(f, id).await, failed("no"));
}

pub(super) async fn verb_endings_come_when_the_last_attempt_ends(f: &mut Fixture) {
    let q = f
        .queue_with("q", |s| {
            s.max_attempts = Some(Some(2));
            s.lease = Some(secs(60));
        })
        .await;
    let id = f.enqueue(&q, wanted(task("a"))).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Error("once".to_owned())).await;
    assert_eq!(ending(f, id).await, Ending::Open { wanted: true }, "it comes back");
    f.advance(secs(7200));
    f.claim_one(&q).await;
    f.advance(secs(61));
    f.store.reclaim().await.expect("reclaimed");
    assert!(matches!(ending(f, id).await, Ending::Failed { .. }), "its lease ran out");
    // An operator's retry opens it again.
    assert_eq!(f.operate_one(Action::Retry, id).await, OperationAnswer::Moved);
    assert_eq!(ending(f, id).await, Ending::Open { wanted: true });
    let held = f.claim_one(&q).await;
    assert!(finish(f, &held, "2").await.is_recorded());
    assert_eq!(ending(f, id).await, done("2"));
}

pub(super) async fn verb_endings_are_wanted_for_as_long_as_a_task_stands(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, wanted(task("a").delayed(100_000))).await;
    for _ in 0..24 {
        f.advance(secs(4000));
        f.store.sweep().await.expect("a sweep");
    }
    assert_eq!(ending(f, id).await, Ending::Open { wanted: true });
    f.advance(secs(4001));
    let held = f.claim_one(&q).await;
    assert!(finish(f, &held, "1").await.is_recorded());
    assert_eq!(ending(f, id).await, done("1"));
}

pub(super) async fn verb_endings_survive_a_kill(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.keep_result = Some(Some(secs(100)))).await;
    let open = f.enqueue(&q, wanted(task("a").delayed(50))).await;
    let kept = run(f, &q, task("b"), Some("1")).await;
    let raw = f.enqueue(&q, wanted(task("c"))).await;
    let held = f.claim_one(&q).await;
    let bytes = Payload::raw(vec![0, 200, 7]);
    let settlement = Settlement::new(held.id, held.token, Outcome::Done);
    f.settle_full(Settlement { result: Some(bytes.clone()), ..settlement }).await;
    if !f.kill().await {
        return;
    }
    let all = f.store.endings(&[open, kept, raw]).await.expect("endings");
    let raw = Ending::Done { value: Some(bytes) };
    assert_eq!(all, [Ending::Open { wanted: true }, done("1"), raw]);
    f.advance(secs(50));
    let held = f.claim_one(&q).await;
    assert!(finish(f, &held, "2").await.is_recorded());
    assert_eq!(ending(f, open).await, done("2"));
}

/// Asserts that a wait on `waiter` ends early through what `end` does.
async fn woken(waiter: &Handle, end: impl Future<Output = ()>) -> Duration {
    let mark = waiter.store.mark();
    let started = Instant::now();
    let (answer, ()) = tokio::join!(waiter.store.wait_ended(mark, LONG), end);
    answer.expect("a wait");
    let took = started.elapsed();
    assert!(took < LONG, "it waited {took:?}");
    took
}

pub(super) async fn verb_endings_wake_who_waits(f: &mut Fixture) {
    let q = f.queue("q").await;
    for outcome in [Outcome::Done, Outcome::Fail("no".to_owned())] {
        f.enqueue(&q, wanted(task("a"))).await;
        let held = f.claim_one(&q).await;
        woken(f, async { f.end(&held, outcome).await }).await;
    }
    let id = f.enqueue(&q, wanted(task("a"))).await;
    woken(f, async {
        f.operate_one(Action::Cancel, id).await;
    })
    .await;
    // What came between the mark and the wait is not missed.
    f.enqueue(&q, wanted(task("a"))).await;
    let held = f.claim_one(&q).await;
    let mark = f.store.mark();
    f.end(&held, Outcome::Done).await;
    let started = Instant::now();
    f.store.wait_ended(mark, LONG).await.expect("a wait");
    assert!(started.elapsed() < LONG, "it waited {:?}", started.elapsed());
    // And it ends with its time.
    let started = Instant::now();
    f.store.wait_ended(f.store.mark(), millis(50)).await.expect("a wait");
    assert!(started.elapsed() < LONG, "it waited {:?}", started.elapsed());
}

pub(super) async fn verb_endings_wake_who_waits_in_another_process(f: &mut Fixture) {
    let q = f.queue("q").await;
    let Some(other) = f.another().await else {
        return;
    };
    let mut waits = Vec::new();
    for nth in 0..9 {
        let id = other.enqueue(&name("q"), wanted(task("x"))).await;
        let held = f.claim_one(&q).await;
        let took = woken(&other, async {
            assert!(finish(f, &held, &nth.to_string()).await.is_recorded());
        });
        waits.push(took.await);
        assert_eq!(ending(&other, id).await, done(&nth.to_string()));
    }
    // The middle one, for a busy machine delays some.
    waits.sort_unstable();
    assert!(waits[4] < millis(250), "{waits:?}");
}
