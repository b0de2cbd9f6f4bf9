//! One bad row is one bad row: it is told, set aside, and hides or harms
//! nobody else. Such rows come from whoever writes to the tables by hand, and
//! from SQL clients that say what the store's own never does.

use gristmill_core::{
    Action, ListRequest, NewTask, Operation, OperationAnswer, Order, Outcome, Selection,
    SettingsPatch, Settlement, Start, State, Store, Task, TaskFilter, TaskId, When,
};
use gristmill_pgserver::Database;
use gristmill_text::ControlPlane;

use crate::support::{
    claim, database_within, declare, keyed, name, put, settlements, stats, store, task,
};

/// What people wrote into a task, and what is said of it.
const DAMAGES: &[(&str, &str)] = &[
    ("headers = '{\"shop\": 17}'", "its header 'shop' is no text"),
    ("headers = '{\"a\": null, \"b\": \"b\"}'", "its header 'a' is no text"),
    ("headers = '[1, 2]'", "its headers are no object of texts"),
    ("headers = '\"text\"'", "its headers are no object of texts"),
    ("encoding = 7", "its encoding is 7, which is none"),
    (
        "encoding = -1, headers = '3'",
        "its encoding is -1, which is none; its headers are no object of texts",
    ),
];

fn page(state: Option<State>, limit: usize) -> ListRequest {
    let filter = TaskFilter { state, ..TaskFilter::default() };
    ListRequest { filter, order: Order::Oldest, after: None, limit }
}

async fn all(store: &dyn Store, state: Option<State>) -> Vec<Task> {
    store.list(page(state, 100)).await.unwrap().tasks
}

fn spoil(database: &Database, id: TaskId, damage: &str) {
    database.psql(&format!("UPDATE gristmill.task SET {damage} WHERE id = {id}")).unwrap();
}

#[tokio::test]
async fn a_damaged_task_fails_alone_and_its_neighbours_run() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    let once = SettingsPatch { max_attempts: Some(Some(1)), ..SettingsPatch::default() };
    declare(&store, "q", once).await;
    let tasks = (0..20).map(|n| task(&n.to_string())).collect();
    let ids: Vec<TaskId> =
        put(&store, "q", tasks).await.answers.iter().map(|answer| answer.id().unwrap()).collect();
    let spoilt: Vec<TaskId> = ids.iter().copied().skip(1).step_by(3).take(DAMAGES.len()).collect();
    for (id, (damage, _)) in spoilt.iter().zip(DAMAGES) {
        spoil(&database, *id, damage);
    }
    // A JSON null is as good as no headers.
    spoil(&database, ids[0], "headers = 'null'");

    let taken = claim(&store, "q", 20).await;
    let good: Vec<TaskId> = ids.iter().copied().filter(|id| !spoilt.contains(id)).collect();
    let handed: Vec<TaskId> = taken.tasks.iter().map(|task| task.id).collect();
    assert_eq!(handed, good, "every neighbour is handed out");
    assert_eq!(taken.failed, spoilt, "whoever claims is told");
    for (id, (_, why)) in spoilt.iter().zip(DAMAGES) {
        let failed = store.get(*id).await.unwrap().unwrap();
        assert_eq!((failed.state, failed.attempts), (State::Failed, 1));
        let said = format!("stored data of this task is damaged: {why}");
        assert_eq!(failed.error.as_deref(), Some(said.as_str()));
        assert_eq!(failed.damaged.as_deref(), Some(*why));
    }
    for answer in store.settle(settlements(&taken, &Outcome::Done)).await.unwrap() {
        assert!(answer.is_recorded());
    }
    let now = stats(&store, "q").await;
    assert_eq!((now.total(), now.failed, now.counters.done), (6, 6, 14));
}

#[tokio::test]
async fn a_claim_of_damaged_tasks_only_says_to_ask_again() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", vec![task("bad"), task("good")]).await;
    database.psql("UPDATE gristmill.task SET encoding = 9 WHERE id = 1").unwrap();
    let taken = claim(&store, "q", 1).await;
    assert!(taken.tasks.is_empty());
    assert_eq!(taken.next_due, Some(std::time::Duration::ZERO));
    assert_eq!(claim(&store, "q", 1).await.tasks[0].id, TaskId(2));
}

#[tokio::test]
async fn a_damaged_task_is_shown_with_what_can_be_read() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", (0..10).map(|n| task(&n.to_string())).collect()).await;
    let history = r#"history = '[{"worker": "w", "claimed_at": "2026-01-01T00:00:00Z",
        "ended_at": "2026-01-01T00:00:01Z", "end": "error", "error": "no"}, {"worker": 4},
        {"worker": "w", "claimed_at": "infinity", "ended_at": "2026-01-01T00:00:01Z", "end": "error"}]'"#;
    spoil(&database, TaskId(2), history);
    spoil(&database, TaskId(3), "history = '\"nothing\"', headers = '{\"a\": 1, \"b\": \"two\"}'");
    spoil(&database, TaskId(4), "run_at = 'infinity', created_at = '-infinity'");
    spoil(&database, TaskId(5), "payload = '\\xff00', encoding = 4");
    // What the table itself would not take can stand in a lease.
    database
        .psql(
            "UPDATE gristmill.task SET priority = -1 WHERE id = 6;
             SELECT id FROM gristmill.claim('q');
             UPDATE gristmill.lease SET tasks[1].payload = NULL, tasks[1].created_at = NULL",
        )
        .unwrap();
    let shown = all(&*store, None).await;
    let ids: Vec<i64> = shown.iter().map(|task| task.id.0).collect();
    assert_eq!(ids, (1..=10).collect::<Vec<_>>(), "nothing is hidden");
    let said: Vec<Option<&str>> = shown.iter().map(|task| task.damaged.as_deref()).collect();
    assert_eq!(said[0], None);
    assert!(said[1].unwrap().starts_with("attempt 2 of its history cannot be read: "), "{said:?}");
    assert_eq!((shown[1].history.len(), shown[1].history[0].error.as_deref()), (1, Some("no")));
    assert_eq!(said[2], Some("its history is no list; its header 'a' is no text"));
    assert_eq!(shown[2].headers.get("b").map(String::as_str), Some("two"));
    assert_eq!(said[3], None);
    assert_eq!(said[4], Some("its encoding is 4, which is none"));
    assert_eq!(&shown[4].payload.bytes[..], [0xff, 0]);
    assert!(said[5].unwrap().contains("its payload cannot be read"), "{said:?}");
    assert_eq!(said[6..], [None; 4]);
    for task in &shown {
        assert_eq!(store.get(task.id).await.unwrap().as_ref(), Some(task));
    }
    // A page that ends at a damaged row goes on behind it.
    let first = store.list(page(None, 3)).await.unwrap();
    assert_eq!((first.tasks.len(), first.next), (3, Some(TaskId(3))));
    assert_eq!(stats(&store, "q").await.counters.put, 10);
}

/// `worker` is a name for people, and SQL clients give any.
#[tokio::test]
async fn a_workers_name_is_shown_as_it_is() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    let long = "w".repeat(300);
    let names = ["worker@host1:4711", "", "ünï code", &long];
    put(&store, "q", names.iter().map(|name| task(name)).collect()).await;
    for (n, name) in names.iter().enumerate() {
        // As the SQL function has it, before it may have learnt to clean names.
        database
            .psql(&format!(
                "SELECT * FROM gristmill.claim('q');
                            UPDATE gristmill.lease SET worker = '{name}' WHERE open = '{{{}}}'",
                n + 1
            ))
            .unwrap();
    }
    let shown = all(&*store, Some(State::Processing)).await;
    let seen: Vec<&str> = shown.iter().map(|t| t.lease.as_ref().unwrap().worker.as_str()).collect();
    assert_eq!(seen, names);
    assert!(shown.iter().all(|task| task.damaged.is_none()), "a name is no damage");
    database
        .psql("SELECT gristmill.fail(l.open[1], l.token, 'no') FROM gristmill.lease l")
        .unwrap();
    let failed = all(&*store, Some(State::Failed)).await;
    let seen: Vec<&str> = failed.iter().map(|task| task.history[0].worker.as_str()).collect();
    assert_eq!(seen, names);
    let selection = Selection::Matching {
        filter: TaskFilter { queue: Some(name("q")), ..TaskFilter::default() },
        after: None,
    };
    let retry = Operation {
        action: Action::Retry,
        selection,
        limit: 100,
        by: "ada".to_owned(),
        note: None,
        start: gristmill_core::Start::Now,
    };
    let report = store.operate(retry).await.unwrap();
    assert!(report.answers.iter().all(|(_, answer)| *answer == OperationAnswer::Moved));
    assert_eq!((report.answers.len(), claim(&store, "q", 9).await.tasks.len()), (4, 4));
}

fn told(findings: Vec<gristmill_postgres::Finding>) -> Vec<String> {
    findings.into_iter().map(|finding| finding.0).collect()
}

#[tokio::test]
async fn a_check_of_a_store_at_work_finds_nothing() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    let hour = std::time::Duration::from_secs(3600);
    let kept = SettingsPatch { keep_done: Some(Some(hour)), ..SettingsPatch::default() };
    declare(&store, "q", kept).await;
    let slots = SettingsPatch { slots: Some(Some(2)), ..SettingsPatch::default() };
    declare(&store, "slotted", slots).await;
    let later = |key| NewTask { start: Start::After(hour), ..keyed(key) };
    put(&store, "q", ["a", "b", "c", "d"].map(keyed).to_vec()).await;
    put(&store, "slotted", vec![keyed("a"), task("x"), later("z")]).await;
    let held = claim(&store, "q", 3).await;
    // Behind those that are in flight, and beside them.
    put(&store, "q", vec![keyed("a"), later("b"), keyed("c"), task("x"), later("y")]).await;
    let at = When::After(hour);
    let ends = [Outcome::Done, Outcome::Fail("no".to_owned()), Outcome::Retry { at, reason: None }];
    for (task, end) in held.tasks.iter().zip(ends) {
        store.settle(vec![Settlement::new(task.id, held.token, end)]).await.unwrap();
    }
    claim(&store, "slotted", 1).await;
    assert_eq!(told(store.check().await.unwrap()), Vec::<String>::new());
}

#[tokio::test]
async fn a_check_names_every_row_that_does_not_fit() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", (0..6).map(|n| task(&n.to_string())).collect()).await;
    put(&store, "q", ["a", "b", "c"].map(keyed).to_vec()).await;
    for (id, damage) in [
        (1, "headers = '{\"shop\": 17}'"),
        (2, "encoding = 7"),
        (3, "history = '{}'"),
        (4, "queue = 77"),
        (7, "blocked = true"),
        (8, "in_flight = true"),
    ] {
        spoil(&database, TaskId(id), damage);
    }
    database
        .psql(
            "INSERT INTO gristmill.flight (queue, key, id) VALUES (10000, 'nobody', 99);
             INSERT INTO gristmill.failed SELECT * FROM gristmill.task WHERE id = 5;
             UPDATE gristmill.task SET in_flight = true, key = 'b' WHERE id = 9;
             INSERT INTO gristmill.document VALUES ('worker', 'w', 1, 'no report', now(), now());
             INSERT INTO gristmill.schedule (name, declared, decided_until, last_tasks, created_at)
             VALUES ('s', 'no declaration', now(), '{}', now());
             INSERT INTO gristmill.queue (number, name, declared, created_at)
             VALUES (20000, 'a b', '[]', now())",
        )
        .unwrap();
    let found = told(store.check().await.unwrap());
    for wanted in [
        "queue 'a b': stored data is damaged: a queue's name: ",
        "queue 'a b' keeps no counts",
        "schedule 's': stored data is damaged: ",
        "worker 'w': stored data is damaged: ",
        "task 1: its header 'shop' is no text",
        "task 2: its encoding is 7, which is none",
        "task 3: its history is no list",
        "task 4: its queue (77) does not exist, and no list shows it",
        "task 5: it stands in 2 places",
        "task 7: it is blocked and nobody has its key 'a' in flight",
        "task 8: 2 tasks have its key 'b' in flight",
        "task 8: it is in flight and does not hold the place of its key 'b'",
        "task 99: it holds the in-flight place of the key 'nobody' and is not in flight",
        "queue 'q' keeps 0 failed tasks in its counts and has 1",
        "queue 'q' keeps 0 blocked tasks in its counts and has 1",
    ] {
        assert!(found.iter().any(|said| said.starts_with(wanted)), "{wanted}: {found:#?}");
    }
    assert!(!found.iter().any(|said| said.starts_with("task 6")), "{found:#?}");
    // None of it hides what is well.
    assert_eq!(all(&*store, None).await.len(), 9, "task 5 is there twice, task 4 nowhere");
    assert_eq!(store.queues().await.unwrap().len(), 1);
    assert_eq!(store.stats().await.unwrap().len(), 1);
    assert_eq!(
        (store.workers().await.unwrap(), store.schedules().await.unwrap()),
        (vec![], vec![])
    );
}
