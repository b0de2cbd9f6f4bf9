//! Telling other processes that a queue has work: never within a put's commit
//! (a NOTIFY makes commits wait for each other), and at most once a millisecond.
//!
//! A put takes its notice along: it is sent over the same connection right behind
//! the put, and the server sends it on when that is committed, without anybody
//! waiting for anything in between. What comes within the millisecond after a
//! notice is told together at its end.
//!
//! That is for other processes of the library, which stand in the server's list of
//! locks as long as they listen. Where there are none, only somebody who listens
//! by hand may hear it, and ten notices a second will do: each costs a commit.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_core::QueueName;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use crate::answer::column;
use crate::deadline::Class;
use crate::errors::Intent;
use crate::listener::Ear;
use crate::pool::Pool;
use crate::sql::{Sql, at};

/// The shortest time between two notices, where other processes listen.
const BETWEEN: Duration = Duration::from_millis(1);
/// ... and where none is known to.
const SELDOM: Duration = Duration::from_millis(100);
/// How long it is known whether any does.
const KNOWN: Duration = Duration::from_secs(1);
/// How long the last notices may take.
const FAREWELL: Duration = Duration::from_millis(500);
/// Work may be anywhere.
pub(crate) const EVERYWHERE: &str = "*";

/// The near end: says which queues have work.
#[derive(Debug)]
pub(crate) struct Notifier {
    told: Arc<Told>,
}

#[derive(Debug)]
struct Told {
    /// Who sends, so that we know our own notices; and which of the server's
    /// connections is the one we listen on.
    ear: Arc<Ear>,
    state: Mutex<State>,
    more: Notify,
    /// What is to be asked of the server.
    doubted: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// When the last notice was sent.
    last: Option<Instant>,
    /// What came since then: queues' names, or all.
    waiting: BTreeSet<String>,
    /// Whether other processes listen, and since when that is known.
    others: Option<(bool, Instant)>,
}

impl State {
    /// When the next notice may be sent; nothing when it may be now.
    fn next(&self) -> Option<Instant> {
        let between = if self.has_others() { BETWEEN } else { SELDOM };
        self.last.map(|last| last + between).filter(|next| *next > Instant::now())
    }

    /// Whether other processes listen, as far as is known.
    fn has_others(&self) -> bool {
        self.others.is_none_or(|(others, since)| others || since.elapsed() >= KNOWN)
    }

    fn is_doubtful(&self) -> bool {
        self.others.is_none_or(|(_, since)| since.elapsed() >= KNOWN)
    }
}

impl Told {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Times and some names are valid whatever a panicking holder did.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what waits.
    async fn send(&self, pool: &Pool) {
        let names = {
            let mut state = self.lock();
            state.last = Some(Instant::now());
            std::mem::take(&mut state.waiting)
        };
        for name in names {
            send(pool, &self.words(&name)).await;
        }
    }

    fn words(&self, name: &str) -> String {
        format!("{name} {}", self.ear.id)
    }

    /// Asks whether other processes listen.
    async fn look_for_others(&self, pool: &Pool) {
        let asked = Instant::now();
        let ours = self.ear.connection.load(Ordering::Relaxed);
        let others = match pool.read(Sql::OthersListen, &[&ours]).await {
            Ok(rows) => rows.first().and_then(|row| column(row, at!(OthersListen.listen)).ok()),
            Err(error) => {
                tracing::debug!(error = %error.whole(), "nobody knows who listens");
                None
            }
        };
        // Where it is not known they may.
        self.lock().others = Some((others.unwrap_or(true), asked));
    }
}

impl Notifier {
    /// Starts the tasks that send what no put took along, and that look who
    /// listens. They end with the pool.
    pub(crate) fn start(pool: &Arc<Pool>, ear: &Arc<Ear>) -> Self {
        let told = Arc::new(Told {
            ear: ear.clone(),
            state: Mutex::default(),
            more: Notify::new(),
            doubted: Notify::new(),
        });
        let notifier = Notifier { told: told.clone() };
        let (shared, sent) = (pool.clone(), told.clone());
        pool.driver.spawn(async move {
            let (pool, told) = (shared, sent);
            loop {
                tokio::select! {
                    () = told.more.notified() => {}
                    () = pool.closed() => return,
                }
                let next = told.lock().next();
                if let Some(next) = next {
                    tokio::select! {
                        () = sleep_until(next) => {}
                        () = pool.closed() => return,
                    }
                }
                told.send(&pool).await;
            }
        });
        let shared = pool.clone();
        pool.driver.spawn(async move {
            let pool = shared;
            loop {
                tokio::select! {
                    () = told.doubted.notified() => told.look_for_others(&pool).await,
                    () = pool.closed() => return,
                }
            }
        });
        notifier
    }

    /// The notice that a write to this queue is to take along, if one may be sent
    /// now. Otherwise it is to be told of afterwards.
    pub(crate) fn take_along(&self, queue: &QueueName) -> Option<String> {
        let mut state = self.told.lock();
        if state.is_doubtful() {
            self.told.doubted.notify_one();
        }
        if !state.has_others() || state.next().is_some() {
            return None;
        }
        state.last = Some(Instant::now());
        Some(self.told.words(queue.as_str()))
    }

    /// This queue has work.
    pub(crate) fn tell(&self, queue: &QueueName) {
        self.tell_of(queue.as_str());
    }

    /// Any queue may have work.
    pub(crate) fn tell_all(&self) {
        self.tell_of(EVERYWHERE);
    }

    fn tell_of(&self, name: &str) {
        {
            let mut state = self.told.lock();
            state.waiting.insert(name.to_owned());
            if state.is_doubtful() {
                self.told.doubted.notify_one();
            }
        }
        self.told.more.notify_one();
    }

    /// Sends what still waits, before the pool is closed; not to a server that does
    /// not answer.
    pub(crate) async fn last_words(&self, pool: &Pool) {
        let waits = !self.told.lock().waiting.is_empty();
        if waits {
            let _ = timeout(FAREWELL, self.told.send(pool)).await;
        }
    }
}

/// Sends one notice. It is a hint: a lost one costs a poll's time.
pub(crate) async fn send(pool: &Pool, words: &str) {
    let channel = pool.texts.channel();
    let deadline = pool.deadline(Class::of(Sql::Notify));
    if let Err(error) = pool.query(Sql::Notify, &[&channel, &words], Intent::Read, deadline).await {
        tracing::debug!(error = %error.whole(), "a wake-up was not sent");
    }
}
