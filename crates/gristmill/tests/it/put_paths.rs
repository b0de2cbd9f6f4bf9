//! The same is said about a task on every way it takes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gristmill::port::ListRequest;
use gristmill::schedule::{Finding, SCHEDULE_HEADER, Scheduler};
use gristmill::sqlite::rusqlite::Connection;
use gristmill::testing::TestMill;
use gristmill::worker::Worker;
use gristmill::{
    Backoff, Context, Error, IntoPut, Mill, Payload, Put, Task, TaskType, Timestamp, Unbound,
};
use serde::{Deserialize, Serialize};

use crate::schedule::timed;
use crate::{Mail, mills};

const HOUR: Duration = Duration::from_secs(3600);

/// Everything that can be said, about one mail.
fn said(to: &str) -> Put<Unbound> {
    let put = Put::of(Mail::to(to)).key(to).group("g").source("s").priority(-3).delay(HOUR);
    let put = put.timeout(HOUR).max_attempts(7).backoff(OWN);
    put.header("tenant", "acme")
}

const OWN: Backoff =
    Backoff { base: Duration::from_millis(10), cap: Duration::from_secs(9), jitter: false };

async fn all(mill: &Mill) -> Vec<Task> {
    let request = ListRequest { limit: 1_000, ..ListRequest::default() };
    mill.inspect().list(request).await.unwrap().tasks
}

/// Whether all of it arrived.
fn assert_said(task: &Task, to: &str) {
    assert_eq!(task.key.as_deref(), Some(to));
    assert_eq!((task.group.as_deref(), task.source.as_deref()), (Some("g"), Some("s")));
    assert_eq!(task.priority, -3);
    assert_eq!(task.headers["tenant"], "acme");
    let own = &task.settings;
    assert_eq!((own.timeout(), own.max_attempts()), (Some(HOUR), Some(Some(7))));
    assert_eq!(own.backoff(), Some(OWN));
    assert!(task.run_at >= task.created_at.after(HOUR), "{task:?}");
}

#[tokio::test]
async fn alone_in_bulk_and_in_a_transaction() {
    for (mill, _folder) in mills().await {
        mill.put(said("alone")).id("mine").await.unwrap();
        let again = mill.put(said("alone")).id("mine").await.unwrap();
        assert!(!again.is_enqueued());
        mill.put_all(["b1", "b2"].map(said)).run().await.unwrap();
        let mut names = vec!["alone", "b1", "b2"];
        if let Some(sqlite) = mill.sqlite() {
            let mut connection = Connection::open(sqlite.path()).unwrap();
            let mut transaction = connection.transaction().unwrap();
            let put = mill.put(said("t1")).within(&mut transaction).await.unwrap();
            assert!(put.answer().is_enqueued());
            let puts = mill.put_all(["t2", "t3"].map(said)).within(&mut transaction).now().unwrap();
            transaction.commit().unwrap();
            put.committed();
            assert_eq!(puts.committed().enqueued(), 2);
            names.extend(["t1", "t2", "t3"]);
        }
        let tasks = all(&mill).await;
        assert_eq!(tasks.len(), names.len());
        tasks.iter().zip(names).for_each(|(task, to)| assert_said(task, to));
    }
}

#[tokio::test]
async fn as_a_follow_up() {
    let mill = TestMill::new();
    mill.declare::<Mail>().await.unwrap();
    mill.put(Mail::to("first")).await.unwrap();
    let worker = Worker::new(&mill).handle(|mail: Mail, context: Context| async move {
        if mail.to == "first" { context.follow_up(said("later")) } else { Ok(()) }
    });
    assert_eq!(mill.run_until_idle(&worker).await.unwrap().done, 1, "the other one is delayed");
    assert_said(&all(&mill).await[0], "later");
}

#[tokio::test]
async fn by_a_schedule_and_by_a_finder() {
    for t in timed().await {
        let every = t.mill.schedule("s").every(HOUR).puts(said("scheduled"));
        let find = |finding: Finding| async move {
            finding.put(said("found")).await?;
            finding.put_all(["f1", "f2"].map(said)).run().await?;
            assert_eq!(finding.found(), 3);
            Ok::<(), Error>(())
        };
        let finder = t.mill.schedule("f").every(HOUR).finder("mails", find);
        let mut scheduler = t.scheduler().schedule(every).schedule(finder);
        scheduler.run_due().await.unwrap();
        t.clock.advance(HOUR);
        scheduler.run_due().await.unwrap();
        let mut tasks = t.tasks().await;
        tasks.sort_by_key(|task| task.key.clone());
        let keys: Vec<_> = tasks.iter().filter_map(|task| task.key.as_deref()).collect();
        assert_eq!(keys, ["f1", "f2", "found", "scheduled"]);
        for task in &tasks {
            assert_said(task, task.key.as_deref().unwrap());
        }
        assert_eq!(tasks[3].headers[SCHEDULE_HEADER], "s");
    }
}

#[tokio::test]
async fn a_schedule_says_when_and_repeats_no_id() {
    let mill = TestMill::new();
    mill.declare::<Mail>().await.unwrap();
    for (put, why) in [
        (Put::of(Mail::to("a")).id("mine"), "has no id"),
        (Put::of(Mail::to("a")).at(Timestamp::EPOCH), "leave out `at`"),
    ] {
        let declared = mill.schedule("s").every(HOUR).puts(put).await;
        assert!(declared.unwrap_err().to_string().contains(why));
    }
}

#[derive(Serialize, Deserialize)]
struct Price {
    item: i64,
}

impl TaskType for Price {
    const QUEUE: &'static str = "prices";

    fn key(&self) -> Option<String> {
        Some(self.item.to_string())
    }
}

/// A queue that is bound to a table takes only tasks whose key is a row.
#[tokio::test]
async fn a_schedule_fires_into_a_bound_queue() {
    let t = timed().await.pop().unwrap();
    let connection = Connection::open(t.mill.sqlite().unwrap().path()).unwrap();
    connection.execute_batch("CREATE TABLE item (id INTEGER PRIMARY KEY)").unwrap();
    connection.execute("INSERT INTO item VALUES (7)", []).unwrap();
    t.mill.declare::<Price>().bind("item", "id").await.unwrap();
    let every = t.mill.schedule("s").every(HOUR).puts(Price { item: 7 });
    let mut scheduler = Scheduler::new(&t.mill).clock(t.clock.clone()).schedule(every);
    scheduler.run_due().await.unwrap();
    t.clock.advance(HOUR);
    assert_eq!(scheduler.run_due().await.map(|_| scheduler.report().fired).unwrap(), 1);
    assert_eq!(t.tasks().await[0].key.as_deref(), Some("7"));
    // By hand, and the one that stands is the one of its key.
    t.mill.fire_schedule("s").await.unwrap();
    assert_eq!(t.tasks().await.len(), 1);
}

/// A flush is of one queue; the others wait for theirs.
#[tokio::test]
async fn a_bulk_put_goes_to_several_queues() {
    for (mill, _folder) in mills().await {
        mill.declare::<Price>().await.unwrap();
        let mixed = (0..500).map(|n| match n % 3 {
            0 => Put::of(Price { item: n }),
            1 => Mail::to(n).into_put(),
            _ => Put::raw("mails", Payload::json(format!("{{\"to\":\"{n}\"}}"))),
        });
        let report = mill.put_all(mixed).flush(60).run().await.unwrap();
        assert_eq!((report.enqueued, report.tasks()), (500, 500));
        assert_eq!(mill.inspect().queue("prices").await.unwrap().ready, 167);
        assert_eq!(mill.inspect().queue("mails").await.unwrap().ready, 333);
        let tasks = all(&mill).await;
        for queue in ["prices", "mails"] {
            let of = tasks.iter().filter(|task| task.queue.as_str() == queue);
            let numbers: Vec<i64> = of
                .map(|task| {
                    let digits = String::from_utf8_lossy(&task.payload.bytes).into_owned();
                    digits.chars().filter(char::is_ascii_digit).collect::<String>()
                })
                .map(|digits| digits.parse().unwrap())
                .collect();
            assert!(numbers.is_sorted(), "in the order they came: {numbers:?}");
        }
    }
}

#[tokio::test]
async fn the_answers_of_a_transaction_come_in_the_order_of_its_tasks() {
    let (mill, _folder) = mills().await.pop().unwrap();
    mill.declare::<Price>().await.unwrap();
    let mut connection = Connection::open(mill.sqlite().unwrap().path()).unwrap();
    let transaction = connection.transaction().unwrap();
    let mixed = [
        Put::of(Price { item: 1 }),
        Put::of(Mail::to("a")),
        Put::of(Price { item: 1 }),
        Put::of(Mail::to("b")),
    ];
    let put = mill.put_all(mixed).within(&transaction).now().unwrap();
    let is_new: Vec<bool> = put.answer().answers.iter().map(|a| a.is_enqueued()).collect();
    assert_eq!(is_new, [true, true, false, true]);
}

#[tokio::test]
async fn a_hook_sees_every_task_before_it_is_put() {
    for (mill, _folder) in mills().await {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let seeing = seen.clone();
        let mill = mill.on_put(move |queue, task| {
            seeing.lock().unwrap().push(queue.to_owned());
            task.headers.insert("tenant".to_owned(), "acme".to_owned());
        });
        mill.put(Mail::to("a")).await.unwrap();
        mill.put_all([Mail::to("b")]).run().await.unwrap();
        mill.schedule("s").every(HOUR).puts(Mail::to("c")).await.unwrap();
        mill.fire_schedule("s").await.unwrap();
        let worker =
            Worker::new(&mill).drain(true).handle(|mail: Mail, context: Context| async move {
                if mail.to == "a" { context.follow_up(said("d")) } else { Ok(()) }
            });
        worker.run(std::future::pending()).await.unwrap();
        assert_eq!(seen.lock().unwrap().len(), 4);
        assert_eq!(all(&mill).await[0].headers["tenant"], "acme");
    }
}
