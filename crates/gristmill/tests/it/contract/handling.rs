//! Typed tasks from the put to the handler: from Rust and as JSON, two queues,
//! a batch that is settled in parts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gristmill::contract::{Bytes, Fields, Handled};
use gristmill::testing::TestMill;
use gristmill::worker::{BatchContext, When};
use gristmill::{Encoding, Payload, Put, TaskPayload, Timestamp};

use super::queues::{
    self, Emails, EmailsHandler, EmailsTask, Handlers, Heartbeat, HeartbeatHandler, HeartbeatTask,
    InvoiceRuns, InvoiceRunsHandler, InvoiceRunsTask,
};

pub(super) fn full() -> InvoiceRuns {
    InvoiceRuns {
        customer: -1,
        paid: true,
        total: 0.1 + 0.2,
        due_at: Timestamp::from_micros(1_763_195_400_000_001),
        scan: Bytes::from_static(&[0, 0xff, 0x80]),
        pages: vec![Bytes::new(), Bytes::from(vec![7; 300])],
        line_numbers: (-40..200).collect(),
        user_ids: vec![i64::MIN, -129, -1, 0, 127, 128, 65_536, 1 << 33, i64::MAX],
        names: vec![String::new(), "ünï".to_owned(), "x".repeat(70_000)],
        flags: Some(vec![true, false]),
        rates: Some(vec![f64::INFINITY, -0.0, 5.0]),
        reminders: Some(vec![Timestamp::EPOCH, Timestamp::MAX]),
        note: Some("n".to_owned()),
        discount: Some(f64::MIN_POSITIVE),
        parent_id: Some(42),
        seal: Some(Bytes::from_static(b"seal")),
        closed: Some(Timestamp::EPOCH),
        is_last: Some(false),
    }
}

fn bare() -> InvoiceRuns {
    let (pages, line_numbers, user_ids, names) = (vec![], vec![], vec![], vec![]);
    let (flags, rates, reminders, note, discount) = (None, None, None, None, None);
    let (parent_id, seal, closed, is_last) = (None, None, None, None);
    InvoiceRuns {
        pages,
        line_numbers,
        user_ids,
        names,
        flags,
        rates,
        reminders,
        note,
        discount,
        parent_id,
        seal,
        closed,
        is_last,
        ..full()
    }
}

#[test]
fn every_type_survives() {
    for task in [full(), bare()] {
        let payload = task.to_payload().unwrap();
        assert_eq!(payload.encoding, Encoding::Msgpack);
        assert_eq!(InvoiceRuns::from_payload(&payload).unwrap(), task);
    }
    let beat = Heartbeat {}.to_payload().unwrap();
    assert_eq!(&beat.bytes[..], [0x80]);
    assert_eq!(Heartbeat::from_payload(&beat).unwrap(), Heartbeat {});
    let emails = Emails { to: "ada".to_owned(), user_id: 5 }.to_payload().unwrap();
    assert_eq!(&emails.bytes[..], b"\x82\xa2to\xa3ada\xa7user_id\x05");
}

#[test]
fn json_is_read_too_and_what_is_unknown_is_skipped() {
    let json = Payload::json(r#"{"user_id": 7, "new": {"a": [1]}, "to": "ada"}"#);
    let read = Emails::from_payload(&json).unwrap();
    assert_eq!(read, Emails { to: "ada".to_owned(), user_id: 7 });
    let newer = b"\x83\xa3new\x92\x01\x81\xa1a\xc0\xa2to\xa3ada\xa7user_id\x05";
    let read = Emails::from_payload(&Payload::msgpack(newer.to_vec())).unwrap();
    assert_eq!(read.user_id, 5);
    for (payload, said) in [
        (Payload::json(r#"{"to": "ada"}"#), "user_id: is missing"),
        (Payload::json("[]"), "a list was given and an object of fields is wanted"),
        (Payload::json("{"), "the payload is not JSON"),
        (Payload::raw("x"), "the payload is raw"),
        (Payload::msgpack(vec![0x82, 0xa2]), "a key: the payload is cut off"),
        (Payload::msgpack(vec![0x81, 0xa2, b't', b'o', 0x01]), "to: a whole number was given"),
        (Payload::msgpack(vec![0x80, 0x80]), "to: is missing"),
        (Payload::msgpack(b"\x82\xa2to\xa1a\xa7user_id\x05\x05".to_vec()), "1 bytes follow"),
    ] {
        let error = Emails::from_payload(&payload).unwrap_err().whole();
        assert!(error.contains("the contract of emails") && error.contains(said), "{error}");
    }
    let far = InvoiceRuns { due_at: Timestamp::from_micros(i64::MAX), ..bare() };
    let error = far.to_payload().unwrap_err().to_string();
    assert!(error.contains("dueAt: the timestamp is in no year"), "{error}");
}

#[derive(Clone, Default)]
struct App {
    log: Arc<Mutex<Vec<String>>>,
}

impl App {
    fn say(&self, what: String) {
        self.log.lock().unwrap().push(what);
    }
}

impl EmailsHandler for App {
    async fn handle_emails(&self, tasks: Vec<EmailsTask>, store: BatchContext) -> Handled {
        for task in &tasks {
            self.say(format!("{} {} r{}", task.to, task.user_id, task.returns()));
            match task.to.as_str() {
                "later" if task.returns() < 2 => {
                    store.retry(task.id(), When::After(Duration::from_secs(60)));
                }
                "later" => assert!(task.prev_run_at().is_some() && task.attempt() == 3),
                "invoice" => {
                    store.mill().put(bare()).await?;
                    store.done(task.id());
                }
                "nowhere" => {
                    store.fail(task.id(), "no such address");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl InvoiceRunsHandler for App {
    async fn handle_invoice_runs(&self, tasks: Vec<InvoiceRunsTask>, _: BatchContext) -> Handled {
        for task in tasks {
            self.say(format!("invoice of {}", task.customer));
        }
        Err("the printer is out of paper".into())
    }
}

impl HeartbeatHandler for App {
    async fn handle_heartbeat(&self, _: Vec<HeartbeatTask>, _: BatchContext) -> Handled {
        Ok(())
    }
}

#[tokio::test]
async fn typed_handlers_settle_single_tasks_of_two_queues() {
    let mill = TestMill::new();
    queues::declare(&mill).await.unwrap();
    queues::declare(&mill).await.unwrap();
    let stored = mill.inspect().queues().await.unwrap();
    let known: Vec<_> = stored.iter().map(|q| (q.number, q.name.as_str())).collect();
    assert_eq!(known, [(1, "emails"), (2, "invoice-runs"), (9999, "HEARTBEAT")]);
    assert_eq!(stored[1].settings.max_attempts, None);
    assert_eq!(stored[1].settings.batch_size, 10);
    assert_eq!(stored[0].contract, Some(Emails::SPEC.contract().unwrap().text()));

    for to in ["ada", "later", "invoice", "nowhere"] {
        mill.put(Emails { to: to.to_owned(), user_id: 1 }).key(to).await.unwrap();
    }
    let json = Payload::json(r#"{"to":"grace","user_id":2}"#);
    mill.put(Put::raw("emails", json)).await.unwrap();
    mill.put_raw("emails", Payload::json(r#"{"to":"broken"}"#)).await.unwrap();

    let app = App::default();
    let handlers =
        Handlers { emails: app.clone(), invoice_runs: app.clone(), heartbeat: app.clone() };
    let worker = handlers.worker(&mill);
    let report = mill.run_until_idle(&worker).await.unwrap();
    assert_eq!(report.done, 3, "ada, invoice, grace; {report:?}");
    let said = std::mem::take(&mut *app.log.lock().unwrap());
    let wanted = ["ada 1 r0", "later 1 r0", "invoice 1 r0", "nowhere 1 r0", "grace 2 r0"];
    assert_eq!(said[..5], wanted);
    assert_eq!(said[5], "invoice of -1");
    let failed = mill.inspect().failed(Some("emails"), 10).await.unwrap();
    assert_eq!(failed[0].error.as_deref(), Some("no such address"));

    // What could not be read waits for a newer worker, and says why.
    let broken = mill.pending::<Emails>().await.unwrap();
    let broken = broken.iter().find(|task| task.error.is_some()).unwrap();
    assert!(broken.error.as_deref().unwrap().ends_with("user_id: is missing"), "{broken:?}");

    for _ in 0..2 {
        mill.clock().advance(Duration::from_secs(61));
        mill.run_until_idle(&worker).await.unwrap();
    }
    let said = app.log.lock().unwrap().clone();
    assert!(said.contains(&"later 1 r2".to_owned()), "{said:?}");
    // Without a limit, a queue's tasks come back for ever.
    assert!(said.iter().filter(|line| line.starts_with("invoice of")).count() >= 2, "{said:?}");
    assert_eq!(mill.inspect().queue("invoice-runs").await.unwrap().failed, 0);
}
