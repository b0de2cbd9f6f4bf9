//! Puts of nothing but payloads and keys are plain statements. They answer, count and
//! refuse as the function does, also many at once, whose keys are taken to be new.

use gristmill_core::{
    NewTask, OnDuplicate, PutAnswer, PutReport, PutRequest, Refusal, SettingsPatch, Store,
};
use gristmill_postgres::PostgresStore;

use crate::support::{
    application, bound, claim, database_within, declare, done, keyed, put, request, stats, store,
    task,
};

/// More than those whose keys are looked for first.
const MANY: usize = 40;

fn keys(from: usize, tasks: usize) -> Vec<NewTask> {
    (from..from + tasks).map(|n| keyed(&format!("k{n}"))).collect()
}

/// The same by the function: a priority is more than a plain statement knows of.
async fn by_function(store: &PostgresStore, queue: &str, tasks: Vec<NewTask>) -> PutReport {
    let tasks = tasks.into_iter().map(|task| NewTask { priority: 1, ..task }).collect();
    put(store, queue, tasks).await
}

/// What kind of answer each is, and for which of the standing tasks.
fn kinds(report: &PutReport, first: &PutReport) -> Vec<(&'static str, Option<usize>)> {
    let nth = |id| first.answers.iter().position(|answer| answer.id() == Some(id));
    let kind = |answer: &PutAnswer| match answer {
        PutAnswer::Enqueued { .. } => ("enqueued", None),
        PutAnswer::Duplicate { id, .. } => ("duplicate", nth(*id)),
        PutAnswer::Replaced { id } => ("replaced", nth(*id)),
        PutAnswer::Refused(_) => ("refused", None),
    };
    report.answers.iter().map(kind).collect()
}

#[tokio::test]
async fn plain_puts_answer_and_count_as_the_function_does() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    for (queue, tasks) in [("few", 4), ("many", MANY)] {
        let other = format!("{queue}-by-function");
        for queue in [queue, &other] {
            declare(&store, queue, SettingsPatch::default()).await;
        }
        let (first, second) = (keys(0, tasks), keys(tasks / 2, tasks));
        // A key twice, tasks without one, and one whose forerunner is in flight.
        let mixed = vec![task("a"), keyed("new"), keyed("new"), keyed("k0"), task("b")];
        let mut all = Vec::new();
        for (by_function_too, queue) in [(false, queue), (true, other.as_str())] {
            let put = async |tasks: Vec<NewTask>| {
                if by_function_too {
                    by_function(&store, queue, tasks).await
                } else {
                    put(&store, queue, tasks).await
                }
            };
            let standing = put(first.clone()).await;
            let mut told = kinds(&standing, &standing);
            told.extend(kinds(&put(second.clone()).await, &standing));
            let held = claim(&store, queue, 1).await;
            assert_eq!(held.tasks[0].key.as_deref(), Some("k0"));
            told.extend(kinds(&put(mixed.clone()).await, &standing));
            let before = stats(&store, queue).await;
            done(&store, &held).await;
            let after = stats(&store, queue).await;
            all.push((
                told,
                [before, after].map(|stats| {
                    let c = stats.counters;
                    (stats.ready, stats.blocked, stats.processing, c.put, c.duplicate, c.refused)
                }),
            ));
        }
        assert_eq!(all[0], all[1], "{queue}");
        assert_eq!(all[0].1[0].1, 1, "one waits for its forerunner");
    }
    assert!(store.diagnose().await.unwrap().is_empty(), "nothing is amiss");
}

/// One task without a key has a statement of its own.
#[tokio::test]
async fn one_task_by_itself_is_counted_and_refused_as_others_are() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    for by_function_too in [false, true] {
        let queue = if by_function_too { "by-function" } else { "plain" };
        let small = SettingsPatch { capacity: Some(Some(2)), ..SettingsPatch::default() };
        declare(&store, queue, small).await;
        let mut ids = Vec::new();
        for payload in ["a", "b"] {
            let tasks = vec![task(payload)];
            let report = match by_function_too {
                true => by_function(&store, queue, tasks).await,
                false => put(&store, queue, tasks).await,
            };
            ids.push(report.answers[0].id().expect("there is room"));
        }
        let full = put(&store, queue, vec![task("c")]).await;
        assert!(
            matches!(full.answers[0], PutAnswer::Refused(Refusal::QueueFull { .. })),
            "{full:?}"
        );
        let now = stats(&store, queue).await;
        assert_eq!((now.ready, now.counters.put, now.counters.refused), (2, 2, 1), "{queue}");
        let held = claim(&store, queue, 5).await;
        assert_eq!(held.tasks.iter().map(|task| task.id).collect::<Vec<_>>(), ids);
        done(&store, &held).await;
    }
    assert!(store.diagnose().await.unwrap().is_empty(), "nothing is amiss");
}

#[tokio::test]
async fn a_duplicate_among_many_says_what_stands_for_it() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    let sourced = NewTask { source: Some("mine".to_owned()), ..keyed("k7") };
    let standing = put(&store, "q", vec![sourced]).await.answers[0].id().unwrap();
    for tasks in [3, MANY] {
        let report = put(&store, "q", keys(5, tasks)).await;
        let PutAnswer::Duplicate { id, run_at, source } = &report.answers[2] else {
            panic!("{report:?}");
        };
        assert_eq!((*id, source.as_deref()), (standing, Some("mine")));
        assert!(run_at.is_some());
        assert_eq!(report.enqueued(), if tasks == 3 { 2 } else { MANY - 3 });
    }
    // After one in vain the function is asked, and answers the same.
    assert_eq!(put(&store, "q", keys(5, MANY)).await.enqueued(), 0);
    assert_eq!(put(&store, "q", keys(100, MANY)).await.enqueued(), MANY);
}

#[tokio::test]
async fn tasks_of_a_plain_put_run_in_the_order_they_were_put_in() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    let key = |n: usize| format!("{}", (n * 7919) % 1009);
    for tasks in [8, 200] {
        let mixed = (0..tasks).map(|n| match n % 3 {
            0 => task(&key(n)),
            _ => keyed(&key(n)),
        });
        assert_eq!(put(&store, "q", mixed.collect()).await.enqueued(), tasks);
        let held = claim(&store, "q", tasks).await;
        let payloads: Vec<_> = held
            .tasks
            .iter()
            .map(|task| String::from_utf8(task.payload.bytes.to_vec()).unwrap())
            .collect();
        assert_eq!(payloads, (0..tasks).map(key).collect::<Vec<_>>());
        done(&store, &held).await;
    }
}

#[tokio::test]
async fn queues_that_need_more_are_left_to_the_function() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    let client = application(&database.url()).await;
    client.batch_execute("CREATE TABLE item (id integer PRIMARY KEY)").await.unwrap();
    client.batch_execute("INSERT INTO item VALUES (1)").await.unwrap();
    declare(&store, "bound", bound("item", "id")).await;
    let answers = put(&store, "bound", vec![keyed("1"), keyed("2")]).await.answers;
    assert!(matches!(answers[0], PutAnswer::Enqueued { .. }), "{answers:?}");
    assert!(matches!(answers[1], PutAnswer::Refused(Refusal::NoSuchSubject { .. })), "{answers:?}");

    let small = SettingsPatch { capacity: Some(Some(3)), ..SettingsPatch::default() };
    declare(&store, "small", small).await;
    let report = put(&store, "small", vec![task("a"), task("b")]).await;
    assert_eq!(report.enqueued(), 2);
    let answers = put(&store, "small", vec![task("c"), task("d")]).await.answers;
    assert!(matches!(answers[0], PutAnswer::Enqueued { .. }), "{answers:?}");
    assert_eq!(answers[1], PutAnswer::Refused(Refusal::QueueFull { capacity: 3 }));

    let replace =
        SettingsPatch { on_duplicate: Some(OnDuplicate::Replace), ..SettingsPatch::default() };
    declare(&store, "replacing", replace).await;
    put(&store, "replacing", vec![keyed("k")]).await;
    let answers = put(&store, "replacing", vec![keyed("k")]).await.answers;
    assert!(matches!(answers[0], PutAnswer::Replaced { .. }), "{answers:?}");

    let unknown = put(&store, "smal", vec![task("x")]).await.answers;
    let suggestion = Some("small".to_owned());
    let name = "smal".to_owned();
    assert_eq!(unknown, [PutAnswer::Refused(Refusal::UnknownQueue { name, suggestion })]);
    // One that is declared since is found.
    declare(&store, "smal", SettingsPatch::default()).await;
    assert_eq!(put(&store, "smal", vec![task("x")]).await.enqueued(), 1);

    let one = PutRequest { atomic: true, ..request("smal", vec![keyed("k")]) };
    assert_eq!(store.put(one.clone()).await.unwrap().enqueued(), 1);
    assert!(matches!(store.put(one).await.unwrap().answers[0], PutAnswer::Duplicate { .. }));
}

/// A plan that was made for an empty table is kept, and used when it is full.
#[tokio::test]
async fn keyed_puts_never_read_a_table_from_end_to_end() {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    let client = application(&database.url()).await;
    for table in ["task", "flight"] {
        client.batch_execute(&format!("VACUUM ANALYZE gristmill.{table}")).await.unwrap();
    }
    for n in 0..20 {
        put(&store, "q", vec![keyed(&format!("k{n}"))]).await;
        put(&store, "q", keys(1_000 * (n + 1), MANY)).await;
    }
    // A connection tells its counts when it ends.
    store.close().await.unwrap();
    let read = "SELECT coalesce(sum(seq_scan), 0)::bigint,
                       count(*) FILTER (WHERE pg_stat_get_tuples_inserted(relid) > 0)
                  FROM pg_stat_user_tables
                 WHERE schemaname = 'gristmill' AND relname IN ('task', 'flight')";
    let (mut scans, mut told) = (0i64, 0i64);
    for _ in 0..1_000 {
        let row = client.query_one(read, &[]).await.unwrap();
        (scans, told) = (row.get(0), row.get(1));
        if told > 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(told > 0, "the counts are there");
    // Opening a store may have read the empty ones.
    assert!(scans < 5, "{scans} scans in 40 puts");
}
