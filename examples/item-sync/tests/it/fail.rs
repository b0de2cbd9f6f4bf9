//! Failing: recorded at once or after five attempts, and what an operator can
//! do about it then.

use std::time::Duration;

use gristmill::port::{Action, Backoff, SettingsPatch, State};
use gristmill::{QueueName, Timestamp};

use crate::shop::{Shop, until};
use crate::webhook::Webhook;

#[test]
fn the_first_failure_is_kept_with_error_and_time() {
    let shop = Shop::new();
    shop.sync(&[(1, 100)]);
    let webhook = Webhook::nobody();
    let ran = shop.ok(&["work", "--drain", "--webhook", &webhook]);
    assert!(ran.stdout.contains("3 done, 1 not done"), "{ran:?}");
    let failed = shop.tasks("NEW_ITEM", State::Failed);
    let [task] = failed.as_slice() else { panic!("{failed:?}") };
    assert!(task.error.as_deref().is_some_and(|error| error.contains(&webhook)), "{task:?}");
    assert!(task.failed_at.is_some_and(|at| at >= task.created_at && at > Timestamp::EPOCH));
    assert_eq!((task.attempts, task.history.len()), (1, 1));

    // It stays until somebody looks at it, whatever else runs.
    shop.ok(&["work", "--drain"]);
    assert_eq!(shop.standing("NEW_ITEM"), (0, 0, 1));
    assert!(shop.notices().is_empty());
}

#[test]
fn an_answer_that_is_no_success_is_a_failure() {
    let shop = Shop::new();
    shop.sync(&[(1, 100)]);
    let webhook = Webhook::start();
    let worker = shop.start(&["work", "--drain", "--webhook", &webhook.url]);
    webhook.next().answer(503);
    assert!(worker.end().ok);
    let failed = shop.tasks("NEW_ITEM", State::Failed);
    assert!(failed[0].error.as_deref().is_some_and(|e| e.ends_with("answered 503")), "{failed:?}");
}

#[test]
fn with_retries_a_task_is_tried_five_times() {
    let shop = Shop::new();
    shop.sync(&[(1, 100)]);
    // An operator shortens the waits; nothing else is changed for the test.
    let short = Backoff { base: Duration::from_millis(1), ..Backoff::default() };
    let patch = SettingsPatch { backoff: Some(short), ..SettingsPatch::default() };
    let queue = QueueName::new("NEW_ITEM").expect("a name");
    shop.mill(|mill| async move {
        mill.store().override_queue(&queue, patch, "the test").await.expect("changed");
    });
    let webhook = Webhook::nobody();
    until("the fifth attempt fails", || {
        shop.ok(&["work", "--drain", "--retries", "--webhook", &webhook]);
        let (pending, processing, failed) = shop.standing("NEW_ITEM");
        assert_eq!((pending + failed, processing), (1, 0), "it waits, or it has failed");
        failed == 1
    });
    let failed = shop.tasks("NEW_ITEM", State::Failed);
    assert_eq!((failed[0].attempts, failed[0].history.len()), (5, 5));
    assert_eq!(shop.stats("NEW_ITEM").counters.retried, 4);
}

#[test]
fn a_retry_that_helps_leaves_nothing_behind() {
    let shop = Shop::new();
    shop.sync(&[(1, 100)]);
    let webhook = Webhook::nobody();
    shop.ok(&["work", "--drain", "--retries", "--webhook", &webhook]);
    let waiting = shop.tasks("NEW_ITEM", State::Pending);
    assert_eq!((waiting[0].attempts, waiting[0].failed_at), (1, None));
    assert!(waiting[0].error.is_some(), "what went wrong is seen meanwhile");
    until("the second attempt succeeds", || {
        shop.ok(&["work", "--drain", "--retries"]);
        shop.standing("NEW_ITEM") == (0, 0, 0)
    });
    assert_eq!(shop.notices().len(), 1);
}

#[test]
fn failures_are_retried_or_discarded_by_hand() {
    let shop = Shop::new();
    shop.sync(&[(1, 100), (2, 100)]);
    shop.ok(&["work", "--drain", "--webhook", &Webhook::nobody()]);
    assert_eq!(shop.operate(Action::Retry, "NEW_ITEM").moved(), 2);
    assert_eq!(shop.standing("NEW_ITEM"), (2, 0, 0));
    shop.ok(&["work", "--drain"]);
    assert_eq!((shop.standing("NEW_ITEM"), shop.notices().len()), ((0, 0, 0), 2));

    shop.sync(&[(3, 100)]);
    shop.ok(&["work", "--drain", "--webhook", &Webhook::nobody()]);
    assert_eq!(shop.operate(Action::Discard, "NEW_ITEM").moved(), 1);
    assert_eq!(shop.standing("NEW_ITEM"), (0, 0, 0));
}

#[test]
fn a_webhook_must_be_one_and_a_log_have_a_folder() {
    let shop = Shop::new();
    for url in ["ftp://a/", "nowhere", "http://a:b/"] {
        let ran = shop.run(&["work", "--drain", "--webhook", url]);
        assert!(!ran.ok && ran.stderr.contains(url), "{ran:?}");
    }
    for (log, why) in [("gone/new.log", "no folder 'gone'"), (".", "is a folder")] {
        let ran = shop.run(&["work", "--drain", "--log", log]);
        assert!(!ran.ok && ran.stderr.contains(why), "{ran:?}");
    }
    assert!(!shop.path("items.db").exists());
}

#[test]
fn a_webhook_by_https_is_asked_for_its_certificate() {
    let shop = Shop::new();
    shop.sync(&[(1, 100)]);
    let webhook = Webhook::start_tls(&shop.path(""));
    // Nobody public vouches for it.
    shop.ok(&["work", "--drain", "--webhook", &webhook.url]);
    let failed = shop.tasks("NEW_ITEM", State::Failed);
    let error = failed[0].error.as_deref().unwrap_or_default();
    assert!(error.contains(&webhook.url) && error.contains("certificate"), "{error}");
    assert_eq!(shop.operate(Action::Retry, "NEW_ITEM").moved(), 1);
    let work = ["work", "--drain", "--webhook", &webhook.url, "--webhook-ca", "ca.crt"];
    let worker = shop.start(&work);
    webhook.next().answer(204);
    let ran = worker.end();
    assert!(ran.ok && ran.stdout.contains("1 done, 0 not done"), "{ran:?}");
    let ran =
        shop.run(&["work", "--drain", "--webhook", &webhook.url, "--webhook-ca", "feed.json"]);
    assert!(!ran.ok && ran.stderr.contains("no certificate in it"), "{ran:?}");
}
