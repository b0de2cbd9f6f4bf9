//! Recovery: stuck rows begin anew, but only those that nobody is at.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use gristmill::port::{Clock, ManualClock, Timestamp};
use gristmill::recovery::{Recovery, RowsError, StuckRows};
use gristmill::{Mill, TaskType};
use serde::{Deserialize, Serialize};

use crate::schedule::{MINUTE, Timed, timed};

/// Sources with a status, as an application's table has them.
#[derive(Clone)]
struct Sources {
    clock: Arc<ManualClock>,
    rows: Arc<Mutex<BTreeMap<String, (&'static str, Timestamp)>>>,
}

impl Sources {
    fn new(t: &Timed) -> Self {
        Sources { clock: t.clock.clone(), rows: Arc::default() }
    }

    fn set(&self, key: &str, status: &'static str) {
        self.rows.lock().unwrap().insert(key.to_owned(), (status, self.clock.now()));
    }

    fn status(&self, key: &str) -> &'static str {
        self.rows.lock().unwrap()[key].0
    }

    fn is_stuck(&self, row: (&str, Timestamp), older_than: Duration) -> bool {
        row.0 != "IDLE" && self.clock.now().since(row.1) > older_than
    }
}

#[async_trait]
impl StuckRows for Sources {
    async fn stuck(
        &self,
        older_than: Duration,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, RowsError> {
        let rows = self.rows.lock().unwrap();
        let stuck = rows.iter().filter(|(key, row)| {
            after.is_none_or(|after| key.as_str() > after) && self.is_stuck(**row, older_than)
        });
        Ok(stuck.map(|(key, _)| key.clone()).take(limit).collect())
    }

    async fn reset(&self, keys: &[String], older_than: Duration) -> Result<u64, RowsError> {
        let mut rows = self.rows.lock().unwrap();
        let mut count = 0;
        for key in keys {
            let row = rows.get_mut(key).ok_or("no such row")?;
            if self.is_stuck(*row, older_than) {
                *row = ("IDLE", self.clock.now());
                count += 1;
            }
        }
        Ok(count)
    }
}

#[derive(Serialize, Deserialize)]
struct Fetch(String);

impl TaskType for Fetch {
    const QUEUE: &'static str = "fetch";

    fn key(&self) -> Option<String> {
        Some(self.0.clone())
    }
}

async fn queued(mill: &Mill, sources: &Sources, key: &str) {
    mill.put(Fetch(key.to_owned())).await.unwrap();
    sources.set(key, "QUEUED");
}

#[tokio::test]
async fn only_rows_that_nobody_is_at_begin_anew() {
    for t in timed().await {
        t.mill.declare::<Fetch>().max_attempts(1).await.unwrap();
        let sources = Sources::new(&t);
        queued(&t.mill, &sources, "failed").await;
        fail_all(&t).await;
        queued(&t.mill, &sources, "running").await;
        let held = claim(&t).await;
        queued(&t.mill, &sources, "waiting").await;
        sources.set("lost", "QUEUED");
        sources.set("torn", "FETCHING");
        sources.set("idle", "IDLE");
        t.clock.advance(8 * MINUTE);
        sources.set("fresh", "FETCHING");
        let mut scheduler =
            t.scheduler().schedule(Recovery::new(&t.mill, "fetch", sources.clone()).schedule());
        scheduler.run_due().await.unwrap();
        // Extended meanwhile, as a worker would.
        let extension = gristmill::port::Extension::new(held, 60 * MINUTE);
        t.mill.store().extend(vec![extension]).await.unwrap();
        t.clock.advance(5 * MINUTE);
        scheduler.run_due().await.unwrap();
        for (key, status) in [
            ("failed", "IDLE"),
            ("running", "QUEUED"),
            ("waiting", "QUEUED"),
            ("lost", "IDLE"),
            ("torn", "IDLE"),
            ("fresh", "FETCHING"),
        ] {
            assert_eq!(sources.status(key), status, "{key}");
        }
        assert_eq!(scheduler.report().found, 1);
        t.clock.advance(10 * MINUTE);
        scheduler.run_due().await.unwrap();
        assert_eq!(sources.status("fresh"), "IDLE", "by now it is stuck too");
    }
}

async fn claim(t: &Timed) -> gristmill::port::Token {
    let token = gristmill::port::Token::random().unwrap();
    let request = gristmill::port::ClaimRequest {
        queue: Fetch::QUEUE.parse().unwrap(),
        max: 1,
        lease: None,
        worker: gristmill::port::WorkerId::random().unwrap(),
        source: None,
        token,
    };
    assert_eq!(t.mill.store().claim(request).await.unwrap().tasks.len(), 1);
    token
}

async fn fail_all(t: &Timed) {
    let token = claim(t).await;
    let id = t.tasks().await[0].id;
    let outcome = gristmill::port::Outcome::Fail("no such host".to_owned());
    let settlement = gristmill::port::Settlement::new(id, token, outcome);
    t.mill.store().settle(vec![settlement]).await.unwrap();
}

#[tokio::test]
async fn thousands_are_looked_at_a_page_at_a_time() {
    for t in timed().await {
        t.mill.declare::<Fetch>().await.unwrap();
        let sources = Sources::new(&t);
        for n in 0..1_234 {
            let key = format!("{n:05}");
            sources.set(&key, "QUEUED");
            if n % 100 == 0 {
                t.mill.put(Fetch(key)).await.unwrap();
            }
        }
        t.clock.advance(3 * MINUTE);
        let recovery = Recovery::new(&t.mill, "fetch", sources.clone()).older_than(2 * MINUTE);
        let done = recovery.run_once().await.unwrap();
        assert_eq!((done.stuck, done.standing, done.reset), (1_234, 13, 1_221));
        assert_eq!(recovery.run_once().await.unwrap().reset, 0);
    }
}

#[tokio::test]
async fn rows_that_cannot_be_read_are_an_error_in_words() {
    struct Broken;

    #[async_trait]
    impl StuckRows for Broken {
        async fn stuck(
            &self,
            _: Duration,
            _: Option<&str>,
            _: usize,
        ) -> Result<Vec<String>, RowsError> {
            Err("the table is gone".into())
        }

        async fn reset(&self, _: &[String], _: Duration) -> Result<u64, RowsError> {
            Ok(0)
        }
    }
    for t in timed().await {
        let error = Recovery::new(&t.mill, "mails", Broken).run_once().await.unwrap_err();
        assert_eq!(format!("{error:#}"), "the rows cannot be recovered: the table is gone");
    }
}
