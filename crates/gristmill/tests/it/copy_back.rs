//! Moving a store back and forth by copying: each task runs once wherever it
//! stands, and schedules fire in the store that is worked on.

use std::collections::BTreeMap;
use std::time::Duration;

use gristmill::port::{Fire, FireAnswer, NewTask, Outcome, ScheduleName, Timestamp};
use gristmill::{Mill, QueueName, TaskPayload, TaskType};
use gristmill_pgserver::{Database, Server};

use crate::Mail;
use crate::copy::{claim, settle};

const KINDS: [&str; 4] = ["memory", "sqlite", "files", "postgres"];

/// A store of each kind, and what has to outlive it.
struct Place {
    mill: Mill,
    _folder: tempfile::TempDir,
    _database: Option<Database>,
}

impl Place {
    async fn of(kind: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let within = |name: &str| folder.path().join(name).display().to_string();
        let mut database = None;
        let url = match kind {
            "memory" => "memory:".to_owned(),
            "sqlite" => format!("sqlite://{}", within("test.db")),
            "files" => format!("files://{}", within("spool")),
            _ => {
                let made = || Server::shared()?.database("back", |_| Ok(()));
                let made = tokio::task::spawn_blocking(made).await.unwrap().unwrap();
                database.insert(made).url()
            }
        };
        let mill = Mill::open(&url).await.unwrap();
        Place { mill, _folder: folder, _database: database }
    }
}

fn mails() -> QueueName {
    QueueName::new(Mail::QUEUE).unwrap()
}

/// How often each task ran.
#[derive(Debug, Default)]
struct Ran(BTreeMap<String, u32>);

impl Ran {
    /// Runs so many tasks to their end.
    async fn work(&mut self, mill: &Mill, tasks: usize) -> usize {
        let claimed = claim(mill, &mails(), tasks).await;
        for task in &claimed.tasks {
            let text = String::from_utf8(task.payload.bytes.to_vec()).unwrap();
            *self.0.entry(text).or_default() += 1;
        }
        settle(mill, &claimed, Outcome::Done).await;
        claimed.tasks.len()
    }
}

/// Fires the schedule now, as a scheduler would.
async fn fire(mill: &Mill, round: u32, there: &str) {
    let fire = Fire {
        schedule: ScheduleName::new("tick").unwrap(),
        instant: Timestamp::from_micros(now()),
        tasks: vec![NewTask::new(Mail::to(format!("tick {round} {there}")).to_payload().unwrap())],
        by_hand: false,
    };
    let answer = mill.store().fire(fire).await.unwrap();
    assert!(matches!(answer, FireAnswer::Fired(_)), "{there} in round {round}: {answer:?}");
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_micros()).unwrap()
}

/// There and back three times: everything ran once, and nothing was left.
async fn there_and_back(one: &Mill, other: &Mill) {
    one.declare::<Mail>().await.unwrap();
    one.schedule("tick").every(Duration::from_secs(3600)).puts(Mail::to("x")).await.unwrap();
    one.put(Mail::to("broken")).await.unwrap();
    let broken = claim(one, &mails(), 1).await;
    settle(one, &broken, Outcome::Fail("no such host".to_owned())).await;
    one.put_all((0..12).map(|n| Mail::to(format!("first {n}")))).run().await.unwrap();
    let (mut ran, mut put) = (Ran::default(), 12);
    for round in 0..3 {
        for (from, to, there) in [(one, other, "there"), (other, one, "back")] {
            ran.work(from, 1).await;
            let report = from.copy_to(to).run().await.unwrap();
            assert_eq!(report.left(), 0);
            // A copy that is repeated brings nothing new.
            let again = from.copy_to(to).run().await.unwrap();
            assert_eq!((again.imported(), again.left()), (0, 0), "{there} in round {round}");
            assert_eq!(ran.work(from, 9).await, 0, "the source rests");
            assert_eq!(ran.work(to, 1).await, 1, "{there} in round {round}");
            to.put(Mail::to(format!("put {round} {there}"))).await.unwrap();
            fire(to, round, there).await;
            put += 2;
            let stats = to.inspect().queue("mails").await.unwrap();
            assert_eq!((stats.failed, stats.paused), (1, false), "{there} in round {round}");
        }
    }
    while ran.work(one, 10).await > 0 {}
    assert_eq!(ran.0.len(), put, "{ran:?}");
    assert!(ran.0.values().all(|times| *times == 1), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_task_runs_once_on_the_way_there_and_back() {
    for from in KINDS {
        for to in KINDS {
            let (one, other) = (Place::of(from).await, Place::of(to).await);
            there_and_back(&one.mill, &other.mill).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_passed_through_three_stores_comes_back_once() {
    let places = [Place::of("sqlite").await, Place::of("files").await, Place::of("sqlite").await];
    let [a, b, c] = places.each_ref().map(|place| &place.mill);
    a.declare::<Mail>().await.unwrap();
    // In one flush, so that they have one time of birth, and the same numbers
    // in each new store.
    a.put_all((0..4).map(Mail::to)).run().await.unwrap();
    for (from, to) in [(a, b), (b, c), (c, b), (b, a)] {
        from.copy_to(to).run().await.unwrap();
        assert_eq!(to.inspect().queue("mails").await.unwrap().ready, 4);
    }
    let mut ran = Ran::default();
    ran.work(a, 10).await;
    assert_eq!(ran.0.values().copied().collect::<Vec<_>>(), [1; 4]);
}

#[tokio::test]
async fn what_a_producer_put_into_the_source_later_is_not_taken_out() {
    let (one, other) = (Place::of("sqlite").await, Place::of("memory").await);
    let (one, other) = (&one.mill, &other.mill);
    one.declare::<Mail>().await.unwrap();
    one.put(Mail::to("early")).await.unwrap();
    one.copy_to(other).run().await.unwrap();
    one.put(Mail::to("late")).await.unwrap();
    other.copy_to(one).run().await.unwrap();
    let mut ran = Ran::default();
    ran.work(one, 10).await;
    assert_eq!(ran.0.into_values().collect::<Vec<_>>(), [1, 1]);
}

#[tokio::test]
async fn a_target_whose_tasks_did_not_all_go_away_is_refused() {
    let (one, other) = (Place::of("sqlite").await, Place::of("memory").await);
    let (one, other) = (&one.mill, &other.mill);
    one.declare::<Mail>().await.unwrap();
    other.declare::<Mail>().await.unwrap();
    one.put(Mail::to("here")).key("k").await.unwrap();
    other.put(Mail::to("there")).key("k").await.unwrap();
    assert_eq!(one.copy_to(other).run().await.unwrap().left(), 1);
    let refused = other.copy_to(one).run().await;
    let said = refused.map(drop).unwrap_err().to_string();
    assert!(said.contains("may stand nowhere else"), "{said}");
    assert!(!other.inspect().queue("mails").await.unwrap().paused, "nothing was changed");
    assert_eq!(one.inspect().queue("mails").await.unwrap().ready, 1);
    // A doctor does not advise what would run it twice.
    let found = one.doctor().await.unwrap();
    let code: Vec<_> = found.iter().map(|diagnosis| diagnosis.code).collect();
    assert_eq!(code, ["copied_away"]);
}

#[tokio::test]
async fn half_a_copy_is_not_taken_for_all_of_it() {
    let (one, other) = (Place::of("sqlite").await, Place::of("sqlite").await);
    let (one, other) = (&one.mill, &other.mill);
    other.declare::<Mail>().await.unwrap();
    other.put(Mail::to("came")).await.unwrap();
    // As a copy that was killed midway leaves it.
    other.store().pause_queue(&mails(), true, "gristmill copy into it").await.unwrap();
    let refused = other.copy_to(one).run().await;
    let said = refused.map(drop).unwrap_err().to_string();
    assert!(said.contains("has not all its tasks"), "{said}");
    assert_eq!(other.doctor().await.unwrap()[0].code, "half_copied");
}

#[tokio::test]
async fn a_pause_by_hand_comes_along_both_ways() {
    let (one, other) = (Place::of("sqlite").await, Place::of("memory").await);
    let (one, other) = (&one.mill, &other.mill);
    one.declare::<Mail>().await.unwrap();
    one.put(Mail::to("rests")).await.unwrap();
    one.store().pause_queue(&mails(), true, "ada").await.unwrap();
    for (from, to) in [(one, other), (other, one)] {
        from.copy_to(to).run().await.unwrap();
        let queue = to.store().queues().await.unwrap().remove(0);
        assert_eq!((queue.paused, queue.paused_by.as_deref()), (true, Some("ada")));
        assert_eq!(to.inspect().queue("mails").await.unwrap().ready, 1);
    }
}
