//! Queues bound to a table of the application.

use gristmill_core::{
    Became, Binding, ExtendAnswer, Extension, FollowUp, Outcome, PutAnswer, Refusal, SettingsPatch,
    SettleAnswer, Store, StoreError,
};

use crate::support::{
    Place, claim, declare, done, keyed, name, put, settlements, sound, stats, task,
};

fn bound(table: &str, column: &str) -> SettingsPatch {
    let bind = Binding { table: table.to_owned(), column: column.to_owned() };
    SettingsPatch { bind: Some(Some(bind)), ..SettingsPatch::default() }
}

const ITEMS: &str = "CREATE TABLE \"my \"\"items\" (\"the id\" INTEGER PRIMARY KEY, price INTEGER);
                     INSERT INTO \"my \"\"items\" VALUES (1, 10), (2, 20), (3, 30), (4, 40)";

#[tokio::test]
async fn a_deleted_subject_takes_its_tasks_along_in_every_state() {
    let place = Place::new();
    let application = place.application();
    application.execute_batch(ITEMS).unwrap();
    let store = place.open();
    let keep = Some(Some(std::time::Duration::from_secs(60)));
    declare(&store, "q", SettingsPatch { keep_done: keep, ..bound("my \"items", "the id") }).await;
    // 1 done and kept, 2 failed, 3 processing with one blocked behind, 4 pending.
    put(&store, "q", vec![keyed("1"), keyed("2"), keyed("3"), keyed("4")]).await;
    let first = claim(&store, "q", 1).await;
    done(&store, &first).await;
    let second = claim(&store, "q", 1).await;
    let fail = Outcome::Fail("no".to_owned());
    store.settle(settlements(&second, &fail)).await.unwrap();
    let third = claim(&store, "q", 1).await;
    put(&store, "q", vec![keyed("3")]).await;
    sound(&store).await;

    application.execute_batch("DELETE FROM \"my \"\"items\"").unwrap();
    sound(&store).await;
    let stats = stats(&store, "q").await;
    assert_eq!((stats.total(), stats.done_kept, stats.counters.subject_gone), (0, 0, 4));
    let extension = Extension::new(third.token, std::time::Duration::from_secs(9));
    let lost = vec![third.tasks[0].id];
    let told = ExtendAnswer::Extended { cancelled: Vec::new(), lost };
    assert_eq!(store.extend(vec![extension.clone()]).await.unwrap(), [told]);
    assert_eq!(store.extend(vec![extension]).await.unwrap(), [ExtendAnswer::LeaseLost]);
    assert_eq!(done(&store, &third).await, [SettleAnswer::Gone]);
}

#[tokio::test]
async fn the_deletion_is_the_applications_transaction() {
    let place = Place::new();
    let mut application = place.application();
    application.execute_batch(ITEMS).unwrap();
    let store = place.open();
    declare(&store, "q", bound("my \"items", "the id")).await;
    put(&store, "q", vec![keyed("1")]).await;
    let transaction = application.transaction().unwrap();
    transaction.execute_batch("DELETE FROM \"my \"\"items\"").unwrap();
    transaction.rollback().unwrap();
    assert_eq!(stats(&store, "q").await.ready, 1);
    application.execute_batch("UPDATE \"my \"\"items\" SET price = 0").unwrap();
    assert_eq!(stats(&store, "q").await.ready, 1);
    application
        .execute_batch(
            "UPDATE \"my \"\"items\" SET \"the id\" = 9 WHERE price = 0 AND \"the id\" = 1",
        )
        .unwrap();
    assert_eq!(stats(&store, "q").await.ready, 0);
    sound(&store).await;
}

/// The row may come yet: the policy repeats the task. Without a key there is
/// nothing that could come.
#[tokio::test]
async fn a_follow_up_without_a_subject_keeps_its_task_from_being_done() {
    let place = Place::new();
    let application = place.application();
    application.execute_batch(ITEMS).unwrap();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    declare(&store, "items", bound("my \"items", "the id")).await;
    put(&store, "q", vec![task("1"), task("2"), task("3")]).await;
    let taken = claim(&store, "q", 3).await;
    let mut endings = settlements(&taken, &Outcome::Done);
    for (ending, next) in endings.iter_mut().zip([keyed("7"), task("1"), keyed("1")]) {
        ending.follow_ups.push(FollowUp { queue: name("items"), task: next });
    }
    let answers = store.settle(endings).await.unwrap();
    let became: Vec<&str> = answers
        .iter()
        .map(|answer| match answer {
            SettleAnswer::Recorded { became: Became::Pending { .. }, .. } => "pending",
            SettleAnswer::Recorded { became: Became::Failed, .. } => "failed",
            SettleAnswer::Recorded { became: Became::Done, .. } => "done",
            _ => "not recorded",
        })
        .collect();
    assert_eq!(became, ["pending", "failed", "done"]);
    let back = store.get(taken.tasks[0].id).await.unwrap().unwrap();
    let why = "the follow-up to 'items' was refused: my \"items has no row with the id = '7'";
    assert_eq!(back.error.as_deref(), Some(why));
    assert_eq!(stats(&store, "items").await.ready, 1);
    sound(&store).await;
}

#[tokio::test]
async fn a_put_needs_a_subject() {
    let place = Place::new();
    let application = place.application();
    application.execute_batch(ITEMS).unwrap();
    let store = place.open();
    declare(&store, "q", bound("my \"items", "the id")).await;
    let answers = put(&store, "q", vec![task("1"), keyed("7"), keyed("01"), keyed("1")]).await;
    assert!(matches!(&answers[0], PutAnswer::Refused(Refusal::Invalid(_))));
    for wrong in &answers[1..3] {
        assert!(matches!(wrong, PutAnswer::Refused(Refusal::NoSuchSubject { .. })), "{wrong:?}");
    }
    let PutAnswer::Refused(why) = &answers[2] else { unreachable!("looked at above") };
    assert!(why.to_string().ends_with("the column's spelling of this key is '1'"), "{why}");
    assert!(answers[3].is_enqueued());
    application.execute_batch("DROP TABLE \"my \"\"items\"").unwrap();
    let answers = put(&store, "q", vec![keyed("2")]).await;
    assert!(matches!(&answers[0], PutAnswer::Refused(Refusal::SubjectTableGone { .. })));
    let found = store.check().await.unwrap();
    assert!(found.iter().any(|f| f.0.contains("does not exist")), "{found:?}");

    // Made again, it lacks its triggers until the next put gives them back.
    application.execute_batch(ITEMS).unwrap();
    assert!(put(&store, "q", vec![keyed("2")]).await[0].is_enqueued());
    application.execute_batch("DELETE FROM \"my \"\"items\"").unwrap();
    assert_eq!(stats(&store, "q").await.total(), 0);
    sound(&store).await;
}

#[tokio::test]
async fn a_binding_to_nothing_is_refused_and_can_be_taken_back() {
    let place = Place::new();
    let application = place.application();
    application.execute_batch(ITEMS).unwrap();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    for (table, column) in [("nothing", "id"), ("my \"items", "nothing")] {
        let error = store.override_queue(&name("q"), bound(table, column), "me").await.unwrap_err();
        assert!(matches!(&error, StoreError::Invalid(said) if said.contains("nothing")), "{error}");
    }
    store.override_queue(&name("q"), bound("my \"items", "the id"), "me").await.unwrap();
    store.reset_queue(&name("q"), "me").await.unwrap();
    put(&store, "q", vec![keyed("77")]).await;
    application.execute_batch("DELETE FROM \"my \"\"items\"").unwrap();
    let triggers = "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'";
    let left: i64 = application.query_row(triggers, [], |row| row.get(0)).unwrap();
    assert_eq!((left, stats(&store, "q").await.ready), (0, 1));
    sound(&store).await;
}

#[tokio::test]
async fn a_text_subject_is_found_by_its_text() {
    let place = Place::new();
    let application = place.application();
    application
        .execute_batch(
            "CREATE TABLE feed (url TEXT UNIQUE); INSERT INTO feed VALUES ('a b'), ('042')",
        )
        .unwrap();
    let store = place.open();
    declare(&store, "q", bound("feed", "url")).await;
    let answers = put(&store, "q", vec![keyed("a b"), keyed("042"), keyed("42")]).await;
    assert!(answers[0].is_enqueued() && answers[1].is_enqueued());
    assert!(!answers[2].is_enqueued());
    application.execute_batch("DELETE FROM feed WHERE url = '042'").unwrap();
    assert_eq!(stats(&store, "q").await.ready, 1);
    sound(&store).await;
}
