//! Mails that are delivered, come back, and are given up: on a clock that the
//! test owns.

use std::time::Duration;

use gristmill::Payload;
use gristmill::contract::Bytes;
use gristmill::testing::TestMill;
use mail_service::handlers::Mailer;
use mail_service::outbox::Outbox;
use mail_service::queues::{self, Emails, Newsletters};
use mail_service::service;
use tempfile::TempDir;

fn mailer() -> (Mailer, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(folder.path()).unwrap();
    (Mailer { outbox, give_up_after: 15, wait: Duration::from_secs(1) }, folder)
}

fn mail(to: &str) -> Emails {
    let (to, subject) = (to.to_owned(), "hello".to_owned());
    Emails { to, user_id: 7, subject, body: None, attachment: None }
}

#[tokio::test]
async fn a_batch_is_settled_task_by_task() {
    let mill = TestMill::new();
    queues::declare(&mill).await.unwrap();
    let (mailer, folder) = mailer();
    let worker = service::worker(&mill, &mailer, false);
    let attached = Emails { attachment: Some(Bytes::from_static(&[1, 2, 3])), ..mail("a@x.org") };
    mill.put(attached).await.unwrap();
    mill.put(mail("busy+1@x.org")).await.unwrap();
    mill.put(mail("nowhere")).await.unwrap();
    let json = r#"{"to":"json@x.org","user_id":1,"subject":"from elsewhere","extra":[]}"#;
    mill.put_raw("emails", Payload::json(json)).await.unwrap();

    let report = mill.run_until_idle(&worker).await.unwrap();
    // Two delivered, one given up with what was put for it; one comes back.
    assert_eq!((report.done, report.not_done), (4, 1), "{report:?}");
    let first = mailer.outbox.read(1).unwrap();
    assert!(first.contains("To: a@x.org") && first.contains("X-Attachment: 3 bytes"), "{first}");
    assert!(mailer.outbox.read(4).unwrap().contains("Subject: from elsewhere"));
    assert_eq!(mailer.outbox.read(2), None);
    let log = std::fs::read_to_string(folder.path().join("undelivered.log")).unwrap();
    assert_eq!(log, "user 7, nowhere, 0 returns: 'nowhere' is no address\n");

    mill.clock().advance(Duration::from_secs(1));
    mill.run_until_idle(&worker).await.unwrap();
    assert!(mailer.outbox.read(2).unwrap().contains("X-Returns: 1"));
}

#[tokio::test]
async fn retries_have_no_limit_and_the_handler_sees_the_returns() {
    let mill = TestMill::new();
    queues::declare(&mill).await.unwrap();
    let (mailer, folder) = mailer();
    let worker = service::worker(&mill, &mailer, false);
    mill.put(mail("busy+12@x.org")).await.unwrap();
    mill.put(mail("busy+99@x.org")).await.unwrap();
    for _ in 0..20 {
        mill.run_until_idle(&worker).await.unwrap();
        mill.clock().advance(Duration::from_secs(3600));
    }
    // More than twice the attempts that are the default.
    assert!(mailer.outbox.read(1).unwrap().contains("X-Returns: 12"));
    assert_eq!(mailer.outbox.read(2), None);
    let log = std::fs::read_to_string(folder.path().join("undelivered.log")).unwrap();
    assert_eq!(log, "user 7, busy+99@x.org, 15 returns: busy+99@x.org has no room now\n");
    let stats = mill.inspect().queue("emails").await.unwrap();
    assert_eq!((stats.total(), stats.failed), (0, 0));
}

#[tokio::test]
async fn a_newsletter_puts_one_mail_each() {
    let mill = TestMill::new();
    queues::declare(&mill).await.unwrap();
    let (mailer, _folder) = mailer();
    let worker = service::worker(&mill, &mailer, false);
    let readers = vec!["a@x.org".to_owned(), "b@x.org".to_owned()];
    let letter = Newsletters { subject: "news".to_owned(), readers, user_ids: vec![1, i64::MAX] };
    mill.put(letter).await.unwrap();
    mill.run_until_idle(&worker).await.unwrap();
    for id in [2, 3] {
        assert!(mailer.outbox.read(id).unwrap().contains("Subject: news"));
    }
}

#[test]
fn the_queue_part_is_short() {
    let parts = [include_str!("../../src/handlers.rs"), include_str!("../../src/service.rs")];
    let lines: usize = parts.iter().map(|part| part.lines().count()).sum();
    assert!(lines < 120, "{lines} lines");
}
