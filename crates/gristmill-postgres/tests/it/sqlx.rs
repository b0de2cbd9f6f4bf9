//! Putting and completing in the application's own transaction of sqlx.

use std::error::Error as _;
use std::time::Duration;

use gristmill_core::{
    FollowUp, NewTask, Outcome, PutAnswer, Refusal, SettingsPatch, SettleAnswer, Settlement, Start,
    Store, StoreError, Timestamp, Token,
};
use gristmill_postgres::PostgresStore;
use gristmill_postgres::sqlx_core::connection::Connection;
use gristmill_postgres::sqlx_core::query_scalar::query_scalar;
use gristmill_postgres::sqlx_postgres::{PgConnection, PgDatabaseError};

use crate::support::{
    claim, database_within, declare, done, keyed, name, put, request, settlements, stats, store,
    task,
};

async fn application(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("a connection")
}

async fn begun() -> (gristmill_pgserver::Database, std::sync::Arc<PostgresStore>, PgConnection) {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", SettingsPatch::default()).await;
    let application = application(&database.url()).await;
    (database, store, application)
}

#[tokio::test]
async fn a_put_stands_when_the_transaction_does() {
    let (_database, store, mut application) = begun().await;
    for keep in [false, true] {
        let mut transaction = application.begin().await.unwrap();
        let tasks = vec![task("1"), keyed("k"), keyed("k")];
        let (report, guard) =
            store.put_in_sqlx(&mut transaction, &request("q", tasks)).await.unwrap();
        assert_eq!((report.enqueued(), report.duplicates()), (2, 1));
        let first = report.answers[1].id();
        assert!(matches!(report.answers[2], PutAnswer::Duplicate { .. }), "{report:?}");
        assert_eq!(report.answers[2].id(), first, "the one that stands");
        assert_eq!(stats(&store, "q").await.ready, 0, "nobody sees it yet");
        if keep {
            transaction.commit().await.unwrap();
            guard.committed();
        } else {
            transaction.rollback().await.unwrap();
            drop(guard);
        }
        let taken = claim(&store, "q", 10).await;
        assert_eq!(taken.tasks.len(), if keep { 2 } else { 0 });
    }
}

/// Every column of a task arrives as it does over the store's own connections.
#[tokio::test]
async fn every_field_travels() {
    let (_database, store, mut application) = begun().await;
    let at = Timestamp::from_micros(1_700_000_000_123_456);
    let full = NewTask {
        key: Some("k".to_owned()),
        group: Some("g".to_owned()),
        source: Some("s".to_owned()),
        priority: -3,
        start: Start::At(at),
        headers: [("a".to_owned(), "b".to_owned())].into(),
        id: Some("mine".to_owned()),
        ..task("\u{0}\u{1}payload")
    };
    let later = NewTask { start: Start::After(Duration::from_secs(3_600)), ..task("later") };
    let mut transaction = application.begin().await.unwrap();
    let both = request("q", vec![full.clone(), later]);
    let (report, guard) = store.put_in_sqlx(&mut transaction, &both).await.unwrap();
    transaction.commit().await.unwrap();
    guard.committed();
    assert_eq!(report.enqueued(), 2, "{report:?}");
    let stood = store.get(report.answers[0].id().unwrap()).await.unwrap().unwrap();
    assert_eq!(
        (stood.key, stood.group, stood.source, stood.priority, stood.run_at),
        (full.key, full.group, full.source, full.priority, at)
    );
    assert_eq!((stood.payload, stood.headers), (full.payload, full.headers));
    assert_eq!(stats(&store, "q").await.delayed, 1);
}

#[tokio::test]
async fn many_go_in_one_put_and_each_is_answered() {
    const MANY: usize = 2_000;
    let (_database, store, mut application) = begun().await;
    let mut transaction = application.begin().await.unwrap();
    let mut tasks: Vec<NewTask> = (0..MANY).map(|n| keyed(&n.to_string())).collect();
    tasks.push(keyed("7"));
    let too_long = "x".repeat(2_000);
    tasks.push(keyed(&too_long));
    let (report, guard) = store.put_in_sqlx(&mut transaction, &request("q", tasks)).await.unwrap();
    transaction.commit().await.unwrap();
    guard.committed();
    assert_eq!((report.enqueued(), report.duplicates()), (MANY, 1));
    assert!(matches!(report.answers[MANY + 1], PutAnswer::Refused(_)), "{report:?}");
    assert_eq!(stats(&store, "q").await.ready, MANY as u64);
}

#[tokio::test]
async fn the_guard_wakes_a_waiter() {
    let (_database, store, mut application) = begun().await;
    let mut transaction = application.begin().await.unwrap();
    let mark = store.mark();
    let one = request("q", vec![task("1")]);
    let (_, guard) = store.put_in_sqlx(&mut transaction, &one).await.unwrap();
    transaction.commit().await.unwrap();
    guard.committed();
    let queues = [name("q")];
    let waited = store.wait(&queues, mark, Duration::from_secs(60));
    tokio::time::timeout(Duration::from_secs(5), waited).await.expect("woken").unwrap();
}

#[tokio::test]
async fn an_effect_and_its_completion_are_one() {
    let (_database, store, mut application) = begun().await;
    put(&store, "q", vec![task("1")]).await;
    let taken = claim(&store, "q", 1).await;
    let mut settled = settlements(&taken, &Outcome::Done);
    let follow_up = |queue: &str| FollowUp { queue: name(queue), task: keyed("next") };
    settled[0].follow_ups = vec![follow_up("q"), follow_up("unheard")];

    let mut transaction = application.begin().await.unwrap();
    let refused = store.complete_in_sqlx(&mut transaction, &settled).await;
    let Err(StoreError::Invalid(why)) = refused else { panic!("{refused:?}") };
    assert_eq!(&*why, "the follow-up to 'unheard' was refused: there is no queue 'unheard'");
    // The transaction is usable: without what was refused it is one step.
    settled[0].follow_ups.pop();
    let (answers, guard) = store.complete_in_sqlx(&mut transaction, &settled).await.unwrap();
    assert!(answers[0].is_recorded());
    transaction.rollback().await.unwrap();
    drop(guard);
    let undone = stats(&store, "q").await;
    assert_eq!((undone.processing, undone.ready), (1, 0), "undone with the effect");

    let mut transaction = application.begin().await.unwrap();
    let (answers, guard) = store.complete_in_sqlx(&mut transaction, &settled).await.unwrap();
    transaction.commit().await.unwrap();
    guard.committed();
    let SettleAnswer::Recorded { follow_ups, .. } = &answers[0] else { panic!("{answers:?}") };
    assert!(follow_ups[0].is_enqueued(), "{follow_ups:?}");
    assert_eq!(stats(&store, "q").await.ready, 1, "the follow-up came with it");
    assert_eq!(done(&store, &taken).await, [SettleAnswer::Gone], "which is success");
}

#[tokio::test]
async fn a_token_that_is_not_the_leases_settles_nothing() {
    let (_database, store, mut application) = begun().await;
    put(&store, "q", vec![task("1")]).await;
    let taken = claim(&store, "q", 1).await;
    let stale = Settlement::new(taken.tasks[0].id, Token::random().unwrap(), Outcome::Done);
    let mut transaction = application.begin().await.unwrap();
    let (answers, guard) = store.complete_in_sqlx(&mut transaction, &[stale]).await.unwrap();
    transaction.commit().await.unwrap();
    guard.committed();
    assert_eq!(answers, [SettleAnswer::LeaseLost]);
    assert_eq!(stats(&store, "q").await.processing, 1);
    assert!(done(&store, &taken).await[0].is_recorded(), "the holder can");
}

#[tokio::test]
async fn an_unknown_queue_is_an_answer_and_the_transaction_goes_on() {
    let (_database, store, mut application) = begun().await;
    let mut transaction = application.begin().await.unwrap();
    let lost = request("unheard", vec![task("1")]);
    let (report, guard) = store.put_in_sqlx(&mut transaction, &lost).await.unwrap();
    drop(guard);
    let why = report.first_refusal();
    assert!(matches!(why, Some(Refusal::UnknownQueue { .. })), "{report:?}");
    let two: i32 = query_scalar("SELECT 1 + 1").fetch_one(&mut *transaction).await.unwrap();
    assert_eq!(two, 2);
}

#[tokio::test]
async fn another_database_is_refused() {
    let (_here, store, _) = begun().await;
    let there = database_within().await;
    // Both came from one template, so the other store needs an id of its own.
    there.psql("UPDATE gristmill.meta SET store_id = gen_random_uuid()").unwrap();
    let mut application = application(&there.url()).await;
    let mut transaction = application.begin().await.unwrap();
    let one = request("q", vec![task("1")]);
    let answer = store.put_in_sqlx(&mut transaction, &one).await;
    assert!(matches!(answer, Err(StoreError::Invalid(_))), "{answer:?}");
    transaction.rollback().await.unwrap();
    // Where there is no store at all, that is told.
    there.psql("DROP SCHEMA gristmill CASCADE").unwrap();
    let mut transaction = application.begin().await.unwrap();
    let answer = store.put_in_sqlx(&mut transaction, &one).await;
    assert!(matches!(answer, Err(StoreError::NotAStore(_))), "{answer:?}");
    let error = answer.expect_err("an error");
    let cause = error.source().and_then(|cause| cause.downcast_ref::<PgDatabaseError>());
    assert!(cause.is_some_and(|said| ["3F000", "42P01"].contains(&said.code())), "{error:?}");
}
