//! Tasks of one put go eight to a statement where they say the same: nobody can tell.

use std::time::Duration;

use gristmill_core::{NewTask, Payload, PutAnswer, SettingsPatch, Start, Store as _, TaskId};

use crate::support::{Place, claim, declare, done, keyed, put, sound, task};

/// Some have keys, one of them said twice, one is too large, one says a group, one is
/// more urgent, and the last ones begin later.
fn mixed(largest: usize) -> Vec<NewTask> {
    let said = |n: usize| match n {
        3 | 14 => keyed("k"),
        15 => NewTask::new(Payload::raw(vec![b'x'; largest + 1])),
        24 => NewTask { group: Some("g".to_owned()), ..task("24") },
        25 => NewTask { priority: -1, ..task("25") },
        32.. => NewTask { start: Start::After(Duration::from_secs(60)), ..task(&n.to_string()) },
        _ => task(&n.to_string()),
    };
    (0..40).map(said).collect()
}

#[tokio::test]
async fn answers_order_and_payloads_are_those_of_tasks_put_one_by_one() {
    let (place, other) = (Place::new(), Place::new());
    let (store, one_by_one) = (place.open(), other.open());
    for store in [&store, &one_by_one] {
        declare(store, "q", SettingsPatch::default()).await;
    }
    let tasks = mixed(store.limits().payload_bytes);
    let mut answers = Vec::new();
    for task in tasks.clone() {
        answers.extend(put(&one_by_one, "q", vec![task]).await);
    }
    assert_eq!(put(&store, "q", tasks).await, answers);
    assert_eq!(answers[14].id(), Some(TaskId(4)), "a duplicate of the one before");
    assert!(matches!(answers[15], PutAnswer::Refused(_)));
    sound(&store).await;
    for (place, store) in [(&place, &store), (&other, &one_by_one)] {
        // The rest is not due.
        let claim = claim(store, "q", 100).await;
        assert_eq!(claim.tasks.len(), 30);
        done(store, &claim).await;
        place.clock.advance(Duration::from_secs(61));
    }
    let (late, expected) = (claim(&store, "q", 100).await, claim(&one_by_one, "q", 100).await);
    let told = |tasks: &[gristmill_core::ClaimedTask]| -> Vec<_> {
        tasks.iter().map(|task| (task.id, task.payload.clone(), task.run_at)).collect()
    };
    assert_eq!(told(&late.tasks), told(&expected.tasks));
    assert!(late.tasks.iter().any(|task| task.id == answers[39].id().unwrap()));
}

#[tokio::test]
async fn a_full_queue_takes_no_more_than_it_has_room_for() {
    let place = Place::new();
    let store = place.open();
    let settings = SettingsPatch { capacity: Some(Some(20)), ..SettingsPatch::default() };
    declare(&store, "q", settings).await;
    let answers = put(&store, "q", (0..30).map(|n| task(&n.to_string())).collect()).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_enqueued()).count(), 20);
    sound(&store).await;
}
