//! One bad row is one bad row: it is told, set aside, and hides or harms
//! nobody else.

use gristmill_core::{ListRequest, Order, SettingsPatch, State, Store, TaskFilter, TaskId};

use crate::support::{Place, claim, declare, done, put, task};

#[tokio::test]
async fn a_damaged_task_fails_alone_and_its_neighbours_run() {
    let place = Place::new();
    let store = place.open();
    declare(&store, "q", SettingsPatch::default()).await;
    put(&store, "q", (0..6).map(|n| task(&n.to_string())).collect()).await;
    let application = place.application();
    application
        .execute_batch(
            r#"UPDATE gristmill_task SET headers = '{"shop":17}' WHERE id = 2;
               UPDATE gristmill_task SET encoding = 7 WHERE id = 4;
               UPDATE gristmill_task SET history = 'no list' WHERE id IN (4, 5)"#,
        )
        .unwrap();
    let filter = TaskFilter::default();
    let page = ListRequest { filter, order: Order::Oldest, after: None, limit: 10 };
    let shown = store.list(page).await.unwrap().tasks;
    let said: Vec<Option<&str>> = shown.iter().map(|task| task.damaged.as_deref()).collect();
    let header = Some("its header 'shop' is no text");
    let both = Some("its encoding is 7, which is none; its history is no list");
    assert_eq!(said, [None, header, None, both, Some("its history is no list"), None]);

    let taken = claim(&store, "q", 9).await;
    let ids: Vec<i64> = taken.tasks.iter().map(|task| task.id.0).collect();
    assert_eq!((ids, taken.failed.clone()), (vec![1, 3, 5, 6], vec![TaskId(2), TaskId(4)]));
    let failed = store.get(TaskId(2)).await.unwrap().unwrap();
    let why = "stored data of this task is damaged: its header 'shop' is no text";
    assert_eq!((failed.state, failed.error.as_deref()), (State::Failed, Some(why)));
    // Nobody's odd name keeps a lease from ending.
    application.execute_batch("UPDATE gristmill_lease SET worker = 'me@host'").unwrap();
    assert!(done(&store, &taken).await.iter().all(gristmill_core::SettleAnswer::is_recorded));
    let found = store.check().await.unwrap();
    let named: Vec<&str> = found.iter().filter_map(|finding| finding.0.get(..7)).collect();
    assert_eq!(named, ["task 2:", "task 4:"], "they stand in failed: {found:?}");

    // A claim that got nothing else says to ask again.
    put(&store, "q", vec![task("bad"), task("good")]).await;
    application.execute_batch("UPDATE gristmill_task SET encoding = 9 WHERE id = 7").unwrap();
    let taken = claim(&store, "q", 1).await;
    assert_eq!((taken.tasks.len(), taken.next_due), (0, Some(std::time::Duration::ZERO)));
    assert_eq!(claim(&store, "q", 1).await.tasks[0].id, TaskId(8));
}
