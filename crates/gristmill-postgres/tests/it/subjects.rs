//! Queues bound to a table of the application.

use std::time::Duration;

use gristmill_core::{
    ExtendAnswer, Extension, Outcome, PutAnswer, Refusal, SettingsPatch, SettleAnswer, Store,
};

use crate::support::{
    application, bound, claim, database_within, declare, done, keyed, put, request, settlements,
    stats, store, task,
};

const ITEMS: &str = "CREATE TABLE item (id integer PRIMARY KEY, price integer);
                     INSERT INTO item VALUES (1, 10), (2, 20), (3, 30), (4, 40)";

#[tokio::test]
async fn a_deleted_subject_takes_its_tasks_along_in_every_state() {
    for end in ["DELETE FROM item", "TRUNCATE item"] {
        let database = database_within().await;
        database.psql(ITEMS).unwrap();
        let store = store(&database.url()).await;
        let keep = Some(Some(Duration::from_secs(60)));
        declare(&store, "q", SettingsPatch { keep_done: keep, ..bound("item", "id") }).await;
        // 1 done and kept, 2 failed, 3 processing with one blocked behind, 4 pending.
        put(&store, "q", vec![keyed("1"), keyed("2"), keyed("3"), keyed("4")]).await;
        let first = claim(&store, "q", 1).await;
        done(&store, &first).await;
        let second = claim(&store, "q", 1).await;
        let fail = Outcome::Fail("no".to_owned());
        store.settle(settlements(&second, &fail)).await.unwrap();
        let third = claim(&store, "q", 1).await;
        put(&store, "q", vec![keyed("3")]).await;
        assert_eq!(stats(&store, "q").await.total(), 4);

        database.psql(end).unwrap();
        let after = stats(&store, "q").await;
        assert_eq!((after.total(), after.done_kept, after.counters.subject_gone), (0, 0, 4));
        let extension = Extension::new(third.token, Duration::from_secs(9));
        assert_eq!(store.extend(vec![extension]).await.unwrap(), [ExtendAnswer::LeaseLost]);
        assert_eq!(done(&store, &third).await, [SettleAnswer::Gone]);
    }
}

#[tokio::test]
async fn a_put_holds_its_subject_and_is_refused_without_one() {
    let database = database_within().await;
    database.psql(ITEMS).unwrap();
    let store = store(&database.url()).await;
    declare(&store, "q", bound("item", "id")).await;
    let answers = put(&store, "q", vec![keyed("1"), keyed("9"), keyed("x"), task("0")]).await;
    assert!(answers.answers[0].is_enqueued(), "{answers:?}");
    for at in [1, 2] {
        let refused = &answers.answers[at];
        assert!(
            matches!(refused, PutAnswer::Refused(Refusal::NoSuchSubject { .. })),
            "{refused:?}"
        );
    }
    assert!(matches!(answers.answers[3], PutAnswer::Refused(Refusal::Invalid(_))));

    // While a put of it is open, the subject cannot go.
    let mut putting = application(&database.url()).await;
    let open = putting.transaction().await.unwrap();
    let (report, guard) = store.put_in(&open, &request("q", vec![keyed("2")])).await.unwrap();
    assert_eq!(report.enqueued(), 1);
    let deleting = application(&database.url()).await;
    deleting.batch_execute("SET lock_timeout = '200ms'").await.unwrap();
    deleting.batch_execute("DELETE FROM item WHERE id = 2").await.expect_err("it is held");
    open.commit().await.unwrap();
    drop(guard);
    deleting.batch_execute("DELETE FROM item WHERE id = 2").await.unwrap();
    assert_eq!(stats(&store, "q").await.total(), 1, "its task went with it");

    database.psql("DROP TABLE item").unwrap();
    let gone = put(&store, "q", vec![keyed("1")]).await;
    let refused = &gone.answers[0];
    assert!(matches!(refused, PutAnswer::Refused(Refusal::SubjectTableGone { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_changed_column_is_a_deletion_and_its_old_value_is_none() {
    let database = database_within().await;
    database.psql(ITEMS).unwrap();
    let store = store(&database.url()).await;
    declare(&store, "q", bound("item", "id")).await;
    put(&store, "q", vec![keyed("1"), keyed("2")]).await;
    database.psql("UPDATE item SET price = price + 1").unwrap();
    assert_eq!(stats(&store, "q").await.ready, 2);
    database.psql("UPDATE item SET id = 7 WHERE id = 1").unwrap();
    assert_eq!(stats(&store, "q").await.ready, 1);
}
