//! Telling other processes that a queue has work: never within a put's commit
//! (a NOTIFY makes commits wait for each other), and at most every few
//! milliseconds.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use gristmill_core::QueueName;
use tokio::sync::mpsc;

use crate::deadline::Class;
use crate::errors::Intent;
use crate::pool::Pool;
use crate::sql::Sql;

/// The shortest time between two notices.
const BETWEEN: Duration = Duration::from_millis(5);
/// Notices that wait while one is sent; what does not fit was said already.
const ROOM: usize = 1024;

/// The near end: says which queues have work.
#[derive(Debug)]
pub(crate) struct Notifier {
    told: mpsc::Sender<QueueName>,
}

impl Notifier {
    /// Starts the task that sends. It ends with this.
    pub(crate) fn start(pool: &Arc<Pool>, id: String) -> Self {
        let (told, mut queues) = mpsc::channel(ROOM);
        let shared = pool.clone();
        pool.driver.spawn(async move {
            let pool = shared;
            while let Some(first) = queues.recv().await {
                let mut names = BTreeSet::from([first]);
                while let Ok(more) = queues.try_recv() {
                    names.insert(more);
                }
                for name in names {
                    send(&pool, &format!("{name} {id}")).await;
                }
                tokio::time::sleep(BETWEEN).await;
            }
        });
        Notifier { told }
    }

    /// This queue has work.
    pub(crate) fn tell(&self, queue: &QueueName) {
        // A full channel holds a notice of some queue already; the others are
        // found by polling.
        let _ = self.told.try_send(queue.clone());
    }
}

/// Sends one notice. It is a hint: a lost one costs a poll's time.
pub(crate) async fn send(pool: &Pool, words: &str) {
    let channel = pool.texts.channel();
    let deadline = pool.deadline(Class::of(Sql::Notify));
    if let Err(error) = pool.query(Sql::Notify, &[&channel, &words], Intent::Read, deadline).await {
        tracing::debug!(%error, "a wake-up was not sent");
    }
}
