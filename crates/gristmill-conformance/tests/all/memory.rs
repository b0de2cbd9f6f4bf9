//! The suite over the memory store, and what only that store has: a bound on
//! everything in it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gristmill_conformance::{Harness, history};
use gristmill_core::memory::{MemoryOptions, MemoryStore};
use gristmill_core::policy::keeping;
use gristmill_core::stats::MINUTES_KEPT;
use gristmill_core::{
    Became, ClaimRequest, ClaimedTask, Declaration, Ending, FollowUp, Limits, ManualClock, NewTask,
    Outcome, Payload, PutAnswer, PutRequest, QueueName, Refusal, SettingsPatch, SettleAnswer,
    Settlement, Store, Token, WorkerId,
};

struct Memory;

#[async_trait]
impl Harness for Memory {
    fn imports(&self) -> bool {
        true
    }

    async fn open(&self, clock: Arc<ManualClock>, limits: Limits) -> Arc<dyn Store> {
        Arc::new(MemoryStore::new(MemoryOptions { clock, limits, ..MemoryOptions::default() }))
    }
}

gristmill_conformance::suite!(Memory);

/// Against itself: shows that equal stores agree, and that the histories meet
/// every answer.
#[test]
fn histories_agree() {
    let seen = history::agree(&Memory, history::cases() * 5);
    for word in history::Seen::WORDS {
        assert!(seen.count(word) > 0, "the histories never met '{word}': {seen:?}");
    }
}

/// A shorter time that somebody says may leave a hundred thousand at once.
#[tokio::test]
async fn a_sweep_forgets_so_many_minutes_and_no_more() {
    let clock = Arc::new(ManualClock::default());
    let limits = Limits { page: 10, ..Limits::default() };
    let options = MemoryOptions { clock: clock.clone(), limits, ..MemoryOptions::default() };
    let (store, queue) = (MemoryStore::new(options), QueueName::new("q").expect("a name"));
    store.declare_queue(Declaration::new(queue.clone())).await.expect("a queue");
    for n in 0..25 {
        let tasks = vec![NewTask::new(Payload::raw(vec![n]))];
        store.put(PutRequest { queue: queue.clone(), tasks, atomic: false }).await.expect("a put");
        clock.advance(Duration::from_secs(60));
    }
    clock.advance(MINUTES_KEPT);
    for left in [15, 5, 0] {
        store.sweep().await.expect("a sweep");
        let minutes = store.minutes(&queue, keeping::MOST).await.expect("minutes");
        assert_eq!(minutes.len(), left);
    }
}

#[tokio::test]
async fn a_full_memory_refuses_puts_of_any_queue() {
    let cases = [
        MemoryOptions { max_tasks: 4, ..MemoryOptions::default() },
        MemoryOptions { max_bytes: 4 * 10, ..MemoryOptions::default() },
    ];
    for options in cases {
        let store = MemoryStore::new(options);
        let mut answers = Vec::new();
        for name in ["one", "other"] {
            let queue = QueueName::new(name).expect("a name");
            store.declare_queue(Declaration::new(queue.clone())).await.expect("a queue");
            let tasks = vec![NewTask::new(Payload::raw(vec![0; 10])); 3];
            let put = store.put(PutRequest { queue, tasks, atomic: false }).await;
            answers.extend(put.expect("a put").answers);
        }
        let (fit, over) = answers.split_at(4);
        assert!(fit.iter().all(PutAnswer::is_enqueued), "{answers:?}");
        let full = Refusal::StoreFull { tasks: 4, bytes: 40 };
        assert!(over.iter().all(|answer| *answer == PutAnswer::Refused(full.clone())));
    }
}

/// Ids outlive their tasks, so without a bound of theirs they would grow for ever.
#[tokio::test]
async fn callers_ids_take_their_part_of_the_room() {
    let clock = Arc::new(ManualClock::default());
    let options = MemoryOptions { max_bytes: 2_000, clock: clock.clone(), ..Default::default() };
    let store = MemoryStore::new(options);
    let queue = QueueName::new("q").expect("a name");
    store.declare_queue(Declaration::new(queue.clone())).await.expect("a queue");
    let put = async |n: usize| {
        let task = NewTask { id: Some(format!("id {n}")), ..NewTask::new(Payload::json("1")) };
        let request = PutRequest { queue: queue.clone(), tasks: vec![task], atomic: false };
        store.put(request).await.expect("a put").answers.remove(0)
    };
    let cancel = gristmill_core::Operation {
        action: gristmill_core::Action::Cancel,
        selection: gristmill_core::Selection::Matching {
            filter: gristmill_core::TaskFilter::default(),
            after: None,
        },
        limit: 10,
        by: "me".to_owned(),
        note: None,
        start: gristmill_core::Start::Now,
    };
    let mut taken = 0;
    while put(taken).await.is_enqueued() {
        taken += 1;
        store.operate(cancel.clone()).await.expect("cancelled");
        assert!(taken < 1_000, "it has no bound");
    }
    assert!(matches!(put(taken).await, PutAnswer::Refused(Refusal::StoreFull { .. })));
    assert!(matches!(put(0).await, PutAnswer::Duplicate { .. }), "none is forgotten early");
    clock.advance(std::time::Duration::from_secs(24 * 3600));
    store.sweep().await.expect("a sweep");
    assert!(put(taken).await.is_enqueued(), "their time gives the room back");
}

/// Results outlive their tasks as well, and come with settlements, which nobody refuses for
/// room.
#[tokio::test]
async fn results_take_their_part_of_the_room() {
    let clock = Arc::new(ManualClock::default());
    let options = MemoryOptions { max_bytes: 2_000, clock: clock.clone(), ..Default::default() };
    let store = MemoryStore::new(options);
    let queue = QueueName::new("q").expect("a name");
    let hour = std::time::Duration::from_secs(3600);
    let settings = SettingsPatch { keep_result: Some(Some(hour)), ..SettingsPatch::default() };
    let declaration = Declaration { settings, ..Declaration::new(queue.clone()) };
    store.declare_queue(declaration).await.expect("a queue");
    let tasks = vec![NewTask::new(Payload::json("1")); 6];
    let put = PutRequest { queue: queue.clone(), tasks, atomic: false };
    store.put(put).await.expect("a put");
    let claim = async || {
        let token = Token::random().expect("a token");
        let request = ClaimRequest {
            queue: queue.clone(),
            max: 10,
            lease: Some(2 * hour),
            worker: WorkerId::new("w").expect("a name"),
            source: None,
            token,
        };
        (token, store.claim(request).await.expect("a claim").tasks)
    };
    let settle = async |token, task: &ClaimedTask, bytes| {
        let follow_up = FollowUp { queue: queue.clone(), task: NewTask::new(Payload::json("2")) };
        let result = (bytes > 0).then(|| Payload::raw(vec![b'x'; bytes]));
        let settlement = Settlement {
            result,
            follow_ups: vec![follow_up],
            ..Settlement::new(task.id, token, Outcome::Done)
        };
        store.settle(vec![settlement]).await.expect("settled").remove(0)
    };
    let became = |answer| match answer {
        SettleAnswer::Recorded { became, follow_ups } => (became, follow_ups.len()),
        other => panic!("it was not recorded but {other:?}"),
    };
    let (token, tasks) = claim().await;
    for task in &tasks[..3] {
        assert_eq!(became(settle(token, task, 600).await), (Became::Done, 1));
    }
    // The next one is one too many: it comes back, and nothing follows from it.
    let (over, put) = became(settle(token, &tasks[3], 600).await);
    assert!(matches!(over, Became::Pending { .. }) && put == 0, "{over:?}");
    let back = store.get(tasks[3].id).await.expect("a read").expect("it stands");
    let why = back.error.expect("an error");
    assert!(why.contains("no room for its result of 600 bytes"), "{why}");
    assert_eq!(
        store.endings(&[tasks[3].id]).await.expect("told")[0],
        Ending::Open { wanted: false }
    );
    // What fits is taken, and what returns nothing needs no room.
    assert_eq!(became(settle(token, &tasks[4], 200).await), (Became::Done, 1));
    assert_eq!(became(settle(token, &tasks[5], 0).await), (Became::Done, 1));
    // Their time gives the room back.
    clock.advance(hour);
    store.sweep().await.expect("a sweep");
    let (token, tasks) = claim().await;
    let again = tasks.iter().find(|task| task.id == back.id).expect("it runs again");
    assert_eq!(became(settle(token, again, 600).await), (Became::Done, 1));
}
