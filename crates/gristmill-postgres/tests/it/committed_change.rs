//! A committed change is followed by a run: puts that answered *duplicate* in a
//! transaction which commits late, and completions in one that stays open.

use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{
    ExtendAnswer, Extension, FollowUp, NewTask, Outcome, PutAnswer, SettingsPatch, SettleAnswer,
    Settlement, Store, StoreError, Unique,
};
use gristmill_pgserver::Database;
use gristmill_postgres::PostgresStore;
use gristmill_postgres::tokio_postgres::{Client, IsolationLevel, Transaction};

use crate::support::{
    application, claim, database_within, declare, done, keyed, name, put, request, settlements,
    stats, store, task,
};

/// Far longer than it takes, and far shorter than anybody should wait.
const SOON: Duration = Duration::from_secs(20);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, what).await.expect("nobody waits")
}

async fn with_queue(settings: SettingsPatch) -> (Database, Arc<PostgresStore>, Client) {
    let database = database_within().await;
    let store = store(&database.url()).await;
    declare(&store, "q", settings).await;
    let application = application(&database.url()).await;
    (database, store, application)
}

fn active() -> SettingsPatch {
    SettingsPatch { unique: Some(Unique::Active), ..SettingsPatch::default() }
}

/// Puts keys in the application's transaction; all are duplicates.
async fn put_duplicates(store: &PostgresStore, open: &Transaction<'_>, keys: &[&str]) {
    let tasks = keys.iter().map(|key| keyed_as(key, "later")).collect();
    let (report, guard) = store.put_in(open, &request("q", tasks)).await.unwrap();
    assert_eq!(report.duplicates(), keys.len(), "{report:?}");
    drop(guard);
}

fn keyed_as(key: &str, payload: &str) -> NewTask {
    NewTask { key: Some(key.to_owned()), ..task(payload) }
}

/// What a claim takes after everything that time brings was done.
async fn runs(store: &PostgresStore) -> Vec<String> {
    store.sweep().await.unwrap();
    let taken = claim(store, "q", 100).await;
    let mut keys: Vec<String> =
        taken.tasks.iter().map(|task| task.key.clone().unwrap_or_default()).collect();
    keys.sort();
    keys
}

#[tokio::test]
async fn rule_06_a_duplicate_that_commits_after_the_run_is_run_again() {
    for many in [false, true] {
        let (_database, store, mut application) = with_queue(SettingsPatch::default()).await;
        let keys: &[&str] = if many { &["1", "2", "3"] } else { &["1"] };
        put(&store, "q", keys.iter().map(|key| keyed(key)).collect()).await;
        let open = application.transaction().await.unwrap();
        put_duplicates(&store, &open, keys).await;
        let taken = soon(claim(&store, "q", 10)).await;
        assert_eq!(taken.tasks.len(), keys.len(), "an open transaction holds nobody up");
        assert!(soon(done(&store, &taken)).await.iter().all(SettleAnswer::is_recorded));
        open.commit().await.unwrap();
        assert_eq!(runs(&store).await, keys, "each change is seen by a run after it");
    }
}

#[tokio::test]
async fn rule_06_a_duplicate_that_commits_in_the_middle_of_the_run_is_run_again() {
    for settings in [SettingsPatch::default(), active()] {
        let (_database, store, mut application) = with_queue(settings).await;
        put(&store, "q", vec![keyed("1")]).await;
        let open = application.transaction().await.unwrap();
        put_duplicates(&store, &open, &["1"]).await;
        let taken = soon(claim(&store, "q", 10)).await;
        assert_eq!(taken.tasks.len(), 1);
        open.commit().await.unwrap();
        soon(store.sweep()).await.unwrap();
        soon(done(&store, &taken)).await;
        assert_eq!(runs(&store).await, ["1"], "the run had begun before the change");
    }
}

#[tokio::test]
async fn rule_06_a_duplicate_that_commits_before_the_run_is_not_run_twice() {
    for settings in [SettingsPatch::default(), active()] {
        for sweep in [false, true] {
            let (_database, store, mut application) = with_queue(settings.clone()).await;
            put(&store, "q", vec![keyed("1"), keyed("2")]).await;
            let open = application.transaction().await.unwrap();
            put_duplicates(&store, &open, &["1", "2"]).await;
            open.commit().await.unwrap();
            if sweep {
                store.sweep().await.unwrap();
            }
            let taken = claim(&store, "q", 10).await;
            assert_eq!(taken.tasks.len(), 2);
            done(&store, &taken).await;
            assert!(runs(&store).await.is_empty(), "both changes were seen");
        }
    }
}

#[tokio::test]
async fn rule_06_a_change_beside_a_task_in_flight_is_settled_after_it_or_stands_anew() {
    for late in [false, true] {
        let (_database, store, mut application) = with_queue(active()).await;
        put(&store, "q", vec![keyed("1")]).await;
        let taken = claim(&store, "q", 10).await;
        let mut open = Some(application.transaction().await.unwrap());
        put_duplicates(&store, open.as_ref().unwrap(), &["1"]).await;
        if !late {
            open.take().unwrap().commit().await.unwrap();
        }
        assert!(soon(done(&store, &taken)).await[0].is_recorded());
        if let Some(open) = open {
            open.commit().await.unwrap();
        }
        let expected: &[&str] = if late { &["1"] } else { &[] };
        assert_eq!(runs(&store).await, expected, "late: {late}");
    }
}

/// A snapshot that is older than the task's end must not answer from it.
#[tokio::test]
async fn rule_06_an_old_snapshot_never_answers_a_false_duplicate() {
    for settings in [SettingsPatch::default(), active()] {
        for isolation in [IsolationLevel::RepeatableRead, IsolationLevel::Serializable] {
            let (_database, store, mut application) = with_queue(settings.clone()).await;
            put(&store, "q", vec![keyed("1")]).await;
            let open = application.build_transaction().isolation_level(isolation).start().await;
            let open = open.unwrap();
            open.query_one("SELECT count(*) FROM gristmill.task", &[]).await.unwrap();
            let taken = claim(&store, "q", 1).await;
            done(&store, &taken).await;
            let answer = store.put_in(&open, &request("q", vec![keyed("1")])).await;
            assert!(matches!(answer, Err(StoreError::Busy(_))), "to be repeated: {answer:?}");
        }
    }
}

/// Follow-ups in the caller's transaction are puts in it like any other.
#[tokio::test]
async fn rule_06_a_follow_up_of_an_open_completion_is_run_after_it() {
    let (_database, store, mut application) = with_queue(SettingsPatch::default()).await;
    declare(&store, "first", SettingsPatch::default()).await;
    put(&store, "first", vec![task("1")]).await;
    put(&store, "q", vec![keyed("1")]).await;
    let first = claim(&store, "first", 1).await;
    let mut settled = settlements(&first, &Outcome::Done);
    settled[0].follow_ups = vec![FollowUp { queue: name("q"), task: keyed("1") }];
    let open = application.transaction().await.unwrap();
    let (answers, guard) = store.complete_in(&open, &settled).await.unwrap();
    let SettleAnswer::Recorded { follow_ups, .. } = &answers[0] else { panic!("{answers:?}") };
    assert!(matches!(follow_ups[0], PutAnswer::Duplicate { .. }), "{follow_ups:?}");
    let early = soon(claim(&store, "q", 1)).await;
    assert_eq!(early.tasks.len(), 1);
    soon(done(&store, &early)).await;
    open.commit().await.unwrap();
    guard.committed();
    assert_eq!(runs(&store).await, ["1"]);
}

/// The handler's transaction holds nothing of the claim it settles a task of.
#[tokio::test]
async fn an_open_completion_holds_no_neighbour_and_no_heartbeat() {
    let settings =
        SettingsPatch { lease: Some(Duration::from_secs(30)), ..SettingsPatch::default() };
    let (database, store, mut application) = with_queue(settings).await;
    put(&store, "q", vec![keyed("1"), keyed("2"), keyed("3")]).await;
    let taken = claim(&store, "q", 3).await;
    let mut settled = settlements(&taken, &Outcome::Done);
    let open = application.transaction().await.unwrap();
    let (answers, guard) = store.complete_in(&open, &settled[..1]).await.unwrap();
    assert!(answers[0].is_recorded());
    // Equal to the key that the open transaction is about to free.
    assert_eq!(soon(put(&store, "q", vec![keyed("1")])).await.enqueued(), 1);
    let others = settled.split_off(1);
    let answers = soon(store.settle(others)).await.unwrap();
    assert!(answers.iter().all(SettleAnswer::is_recorded), "{answers:?}");
    let long = Extension::new(taken.token, Duration::from_secs(3600));
    let extended = soon(store.extend(vec![long])).await.unwrap();
    assert!(matches!(extended[0], ExtendAnswer::Extended { .. }));
    let left = lease_left(&database);
    assert!(left > 3000, "the extension counts: {left}");
    soon(store.sweep()).await.unwrap();
    open.commit().await.unwrap();
    guard.committed();
    assert_eq!(runs(&store).await, ["1"], "the key is free");
    assert_eq!(stats(&store, "q").await.processing, 1, "only the last claim's");
}

/// For how many seconds the claim's lease holds, as readers see it.
fn lease_left(database: &Database) -> i64 {
    let left = "SELECT extract(epoch FROM max(until) - clock_timestamp())::bigint
                  FROM gristmill.shown WHERE state = 'processing'";
    database.psql(left).unwrap().parse().expect("a number")
}

/// A lease that ends while its completion is open is lost: the commit fails, and
/// so the effect does not happen beside the next attempt's.
#[tokio::test]
async fn rule_03_a_completion_whose_lease_ended_does_not_commit() {
    let settings =
        SettingsPatch { lease: Some(Duration::from_millis(100)), ..SettingsPatch::default() };
    let (_database, store, mut application) = with_queue(settings).await;
    application.batch_execute("CREATE TABLE effect (n integer)").await.unwrap();
    put(&store, "q", vec![keyed("1")]).await;
    let taken = claim(&store, "q", 1).await;
    let open = application.transaction().await.unwrap();
    open.execute("INSERT INTO effect VALUES (1)", &[]).await.unwrap();
    let settled = settlements(&taken, &Outcome::Done);
    let (answers, guard) = store.complete_in(&open, &settled).await.unwrap();
    assert!(answers[0].is_recorded(), "{answers:?}");
    let again = soon(async {
        loop {
            let again = claim(&store, "q", 1).await;
            if !again.tasks.is_empty() {
                return again;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let again = again.await;
    assert_eq!(again.tasks[0].attempt, 2, "nobody waits for the open transaction");
    let refused = open.commit().await.expect_err("the lease was lost");
    assert!(format!("{refused:?}").contains("lease"), "{refused:?}");
    drop(guard);
    let effects = application.query_one("SELECT count(*) FROM effect", &[]).await.unwrap();
    assert_eq!(effects.get::<_, i64>(0), 0, "the effect is the next attempt's");
    assert!(done(&store, &again).await[0].is_recorded());
}

#[tokio::test]
async fn a_completion_under_an_old_snapshot_goes_past_heartbeats() {
    for isolation in [IsolationLevel::RepeatableRead, IsolationLevel::Serializable] {
        let (_database, store, mut application) = with_queue(SettingsPatch::default()).await;
        put(&store, "q", vec![keyed("1")]).await;
        let taken = claim(&store, "q", 1).await;
        let open = application.build_transaction().isolation_level(isolation).start().await;
        let open = open.unwrap();
        open.query_one("SELECT count(*) FROM gristmill.task", &[]).await.unwrap();
        let long = Extension::new(taken.token, Duration::from_secs(3600));
        store.extend(vec![long.clone()]).await.unwrap();
        let settled = settlements(&taken, &Outcome::Done);
        let (answers, guard) = store.complete_in(&open, &settled).await.unwrap();
        assert!(answers[0].is_recorded(), "{answers:?}");
        store.extend(vec![long.clone()]).await.unwrap();
        open.commit().await.unwrap();
        guard.committed();
        let counts = stats(&store, "q").await;
        assert_eq!((counts.processing, counts.ready), (0, 0));
        assert_eq!(store.extend(vec![long]).await.unwrap(), [ExtendAnswer::LeaseLost]);
        assert_eq!(done(&store, &taken).await, [SettleAnswer::Gone], "which is success");
    }
}

/// A handler that puts its own key again as it completes.
#[tokio::test]
async fn a_completion_may_put_its_own_key_again() {
    for settings in [SettingsPatch::default(), active()] {
        let (_database, store, mut application) = with_queue(settings).await;
        put(&store, "q", vec![keyed("1")]).await;
        let taken = claim(&store, "q", 1).await;
        let again = FollowUp { queue: name("q"), task: keyed("1") };
        let settlement = Settlement {
            follow_ups: vec![again],
            ..Settlement::new(taken.tasks[0].id, taken.token, Outcome::Done)
        };
        let open = application.transaction().await.unwrap();
        let (answers, guard) = store.complete_in(&open, &[settlement]).await.unwrap();
        let SettleAnswer::Recorded { follow_ups, .. } = &answers[0] else { panic!("{answers:?}") };
        assert!(matches!(follow_ups[0], PutAnswer::Enqueued { .. }), "{follow_ups:?}");
        open.commit().await.unwrap();
        guard.committed();
        assert_eq!(runs(&store).await, ["1"]);
    }
}

/// A replaced task is held by the transaction that replaces it, and nobody else
/// is: neither who frees its key, nor a sweep, nor an operator.
#[tokio::test]
async fn a_replaced_task_holds_nobody_up() {
    let settings = SettingsPatch {
        on_duplicate: Some(gristmill_core::OnDuplicate::Replace),
        ..SettingsPatch::default()
    };
    let (_database, store, mut application) = with_queue(settings).await;
    put(&store, "q", vec![keyed("1")]).await;
    let taken = claim(&store, "q", 1).await;
    let waiting = put(&store, "q", vec![keyed("1")]).await;
    let PutAnswer::Enqueued { id } = waiting.answers[0] else { panic!("{waiting:?}") };
    let open = application.transaction().await.unwrap();
    let (report, guard) = store.put_in(&open, &request("q", vec![keyed("1")])).await.unwrap();
    assert!(matches!(report.answers[0], PutAnswer::Replaced { .. }), "{report:?}");
    assert!(soon(done(&store, &taken)).await[0].is_recorded(), "it frees the key of a held task");
    soon(store.sweep()).await.unwrap();
    let cancel = gristmill_core::Operation {
        action: gristmill_core::Action::Cancel,
        selection: gristmill_core::Selection::Ids(vec![id]),
        limit: 10,
        by: "operator".to_owned(),
        note: None,
        start: gristmill_core::Start::Now,
    };
    let cancelled = soon(store.operate(cancel)).await.unwrap();
    assert_eq!(cancelled.answers, [(id, gristmill_core::OperationAnswer::Held)]);
    open.commit().await.unwrap();
    guard.committed();
    assert_eq!(runs(&store).await, ["1"]);
}

/// Both puts of a key wait for each other only in the order of keys, unless a
/// caller puts crosswise in two transactions: then one of them is told to repeat.
#[tokio::test]
async fn crosswise_puts_end_as_a_deadlock_that_one_is_told_of() {
    let (database, store, mut one) = with_queue(SettingsPatch::default()).await;
    let mut two = application(&database.url()).await;
    let first = one.transaction().await.unwrap();
    let second = two.transaction().await.unwrap();
    store.put_in(&first, &request("q", vec![keyed("a")])).await.unwrap().1.committed();
    store.put_in(&second, &request("q", vec![keyed("b")])).await.unwrap().1.committed();
    let (b, a) = (request("q", vec![keyed("b")]), request("q", vec![keyed("a")]));
    let (answered, also) =
        soon(async { tokio::join!(crossing(&store, first, &b), crossing(&store, second, &a)) })
            .await;
    assert!(answered != also, "one of them: {answered} and {also}");
}

/// Whether the put was told to repeat; its transaction ends either way.
async fn crossing(
    store: &PostgresStore,
    open: Transaction<'_>,
    request: &gristmill_core::PutRequest,
) -> bool {
    let answer = store.put_in(&open, request).await;
    let told = matches!(answer, Err(StoreError::Busy(_)));
    assert!(told || answer.is_ok(), "{answer:?}");
    open.rollback().await.unwrap();
    told
}

/// Who looks is told of a transaction with puts in it that stays open.
#[tokio::test]
async fn old_transactions_with_puts_in_them_are_told() {
    let (database, store, mut application) = with_queue(SettingsPatch::default()).await;
    let mut idle = crate::support::application(&database.url()).await;
    let reader = idle.transaction().await.unwrap();
    reader.query_one("SELECT count(*) FROM gristmill.task", &[]).await.unwrap();
    let open = application.transaction().await.unwrap();
    store.put_in(&open, &request("q", vec![keyed("1")])).await.unwrap().1.committed();
    assert!(store.open_puts().await.unwrap().is_empty(), "it may commit at any moment");
    // The age is the server's; a store on a clock that is ahead sees it grown.
    let now = gristmill_core::Clock::now(&gristmill_core::SystemClock::default());
    let ahead = gristmill_core::ManualClock::at(now.after(Duration::from_secs(75)));
    let options =
        gristmill_postgres::Options { clock: Some(Arc::new(ahead)), ..Default::default() };
    let later = PostgresStore::open(&database.url(), options).await.unwrap();
    let told = later.open_puts().await.unwrap();
    assert_eq!(told.len(), 1, "the reader has none: {told:?}");
    assert!(told[0].contains("with puts or settlements in it is open for"), "{told:?}");
    let found = later.diagnose().await.unwrap();
    assert!(found.iter().any(|found| found.code == "open_puts"), "{found:?}");
    open.commit().await.unwrap();
    assert!(later.open_puts().await.unwrap().is_empty());
}
