//! The one thread that writes: it gathers what was asked meanwhile, runs it in
//! one transaction, and answers after the commit.
//!
//! Neighbours in a group do not suffer for each other. A request that fails
//! before it has written anything is answered and the group goes on. One that
//! fails midway undoes the group, and every request of it is then run in a
//! transaction of its own.

mod clock;
mod gather;
mod relaxed;
mod room;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use gristmill_core::{
    Bell, Clock, Crowd, Durability, Limits, QueueName, Result, Signs, StoreError, Turnstile,
    WakeSignal,
};
use rusqlite::Connection;

use crate::ask::{Ask, Order, Weight};
use crate::db::Db;
use crate::errors::{fault, refused_before_commit};
use crate::known::{Known, Others};
use crate::lock;
use crate::place::Place;
use crate::reserve::Reserve;
use crate::sql::{Sql, at, bind};
use crate::write::Write;

/// A process that wrote within this time is given way to.
const SHARED: Duration = Duration::from_secs(1);
/// What a relaxed queue wrote is safe from a power cut after this.
const RELAXED: Duration = Duration::from_millis(900);

/// The values of `PRAGMA synchronous`.
const NORMAL: i64 = 1;
const FULL: i64 = 2;

/// How a group is committed, lightest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sync {
    Light,
    Relaxed,
    Full,
}

/// What the writer needs beside its connection.
pub(crate) struct Setup {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) group: usize,
    pub(crate) busy_timeout: Duration,
    pub(crate) look: Duration,
    pub(crate) wake: Arc<WakeSignal>,
    /// Tells other processes.
    pub(crate) bell: Bell,
    pub(crate) waiting: Arc<AtomicUsize>,
    pub(crate) crowd: Arc<Crowd>,
    pub(crate) place: Place,
    pub(crate) signs: Signs,
}

/// Serves until the store is closed or dropped.
pub(crate) fn serve(conn: &Connection, orders: &Receiver<Order>, setup: &Setup) {
    let mut writer = Writer {
        db: Db::own(conn),
        orders,
        setup,
        turnstile: lock::turnstile(setup.place.path()),
        known: Known::default(),
        synchronous: Sync::Full,
        unsynced: None,
        suspect: false,
        shared: None,
        freed: Instant::now(),
        answered: None,
        reserve: Reserve::new(setup.place.path()),
        closing: false,
        clamped: false,
        seen: None,
        changes: 0,
        locked_out: false,
        began: Instant::now(),
        puts: 0,
    };
    while let Some(group) = writer.gather() {
        setup.signs.give();
        if !group.is_empty() {
            writer.run(group, Latecomers::Join);
        }
        writer.sync_relaxed();
        writer.reserve.keep();
        setup.signs.end(!writer.locked_out);
    }
    setup.signs.give();
    writer.sync_now();
    setup.signs.end(true);
}

/// Whether requests that come while a group runs become part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Latecomers {
    Join,
    Wait,
}

struct Writer<'c> {
    db: Db<'c>,
    orders: &'c Receiver<Order>,
    setup: &'c Setup,
    /// Turns with other processes.
    turnstile: Turnstile,
    known: Known,
    synchronous: Sync,
    /// Since when something of a relaxed queue is not synced.
    unsynced: Option<Instant>,
    /// A sync failed: what lies in the log may never reach the disk, although
    /// the next sync will say it did.
    suspect: bool,
    /// When another process was last seen writing.
    shared: Option<Instant>,
    /// When we last gave the lock back.
    freed: Instant,
    /// How many were answered by the last commit, and when.
    answered: Option<(usize, Instant)>,
    /// Room for workers on a full disk.
    reserve: Reserve,
    /// The end was asked for while a group ran.
    closing: bool,
    /// What a clock that was ahead left was brought back, in this transaction.
    clamped: bool,
    /// When what is seen of the time was last written down, monotonic.
    seen: Option<Duration>,
    /// How many rows had changed when the transaction began.
    changes: u64,
    /// The lock was not free within the time for it.
    locked_out: bool,
    /// When it began, and how many tasks were put in it.
    began: Instant,
    puts: usize,
}

impl Writer<'_> {
    fn run(&mut self, mut group: Vec<Box<dyn Ask>>, latecomers: Latecomers) {
        let outcome = self.transaction(&mut group, latecomers);
        self.freed = Instant::now();
        match outcome {
            Ok(outcomes) => {
                let answered = group.len();
                for (ask, outcome) in group.into_iter().zip(outcomes) {
                    ask.answer(outcome);
                }
                self.answered = Some((answered, Instant::now()));
            }
            Err(Broken::Midway(StoreError::DiskFull(_)))
                if group.iter().any(|ask| !ask.weight().is_put()) && self.make_room() =>
            {
                self.run(group, Latecomers::Wait);
            }
            Err(Broken::Midway(_)) if group.len() > 1 => {
                for ask in group {
                    self.run(vec![ask], Latecomers::Wait);
                }
            }
            Err(Broken::Midway(error) | Broken::Whole(error)) => {
                for ask in group {
                    ask.answer(Err(error.clone()));
                }
            }
        }
    }

    /// Runs a group in one transaction. Each outcome is true once this
    /// returns.
    fn transaction(
        &mut self,
        group: &mut Vec<Box<dyn Ask>>,
        latecomers: Latecomers,
    ) -> std::result::Result<Vec<Result<()>>, Broken> {
        let sync = self.sync_for(group);
        let begun = self.begin(sync);
        self.locked_out = matches!(begun, Err(StoreError::Busy(_)));
        begun.map_err(Broken::Whole)?;
        self.setup.signs.give();
        let mut outcomes = Vec::with_capacity(group.len());
        let (mut woken, mut ended) = (Vec::new(), false);
        loop {
            let ran = outcomes.len();
            match self.requests(group.iter_mut().skip(ran), &mut outcomes) {
                Ok((queues, is_ended)) => {
                    woken.extend(queues);
                    ended |= is_ended;
                }
                Err(error) => {
                    self.roll_back();
                    return Err(Broken::Midway(error));
                }
            }
            // Only the heaviest commit is heavy enough for whatever comes.
            if sync != Sync::Full || latecomers == Latecomers::Wait || !self.join(group) {
                break;
            }
        }
        if let Err(error) = self.see_clock() {
            self.roll_back();
            return Err(Broken::Midway(error));
        }
        let held = self.began.elapsed();
        self.commit()?;
        if group.len() > 1 {
            self.setup.crowd.saw();
        }
        if sync == Sync::Full {
            self.setup.crowd.measure(self.puts, held, self.began.elapsed().saturating_sub(held));
        }
        self.clamped = false;
        match sync {
            Sync::Full => self.unsynced = None,
            Sync::Relaxed => {
                self.unsynced.get_or_insert_with(Instant::now);
            }
            Sync::Light => {}
        }
        self.setup.wake.wake(&woken);
        if ended {
            self.setup.wake.wake_ended();
        }
        if ended || !woken.is_empty() {
            self.setup.bell.ring();
        }
        Ok(outcomes)
    }

    fn begin(&mut self, sync: Sync) -> Result<()> {
        if self.suspect {
            self.start_new_log()?;
        }
        self.set_synchronous(sync)?;
        if self.shared.is_some_and(|since| since.elapsed() < SHARED) {
            lock::give_way(self.freed);
        }
        let taken =
            lock::take(&self.db, &mut self.turnstile, self.setup.busy_timeout).map_err(fault)?;
        if taken.crowded {
            self.setup.crowd.saw();
        }
        (self.began, self.puts) = (Instant::now(), 0);
        let refreshed = self.setup.place.check().and_then(|()| self.known.refresh(&self.db));
        match refreshed {
            Ok(Others::Silent) => {}
            Ok(others) => {
                // Way is given to somebody who was seen: after every opening
                // and every undone group it would slow down who is alone.
                if others == Others::Wrote {
                    self.shared = Some(Instant::now());
                    self.setup.crowd.saw();
                }
                self.setup.wake.wake_all();
            }
            Err(error) => {
                self.roll_back();
                return Err(error);
            }
        }
        if let Err(error) = self.look_at_clock(taken.waited) {
            self.roll_back();
            return Err(error);
        }
        self.changes = self.db.conn().total_changes();
        Ok(())
    }

    /// Runs the requests and writes the counts. An error means that one failed
    /// after it had written.
    fn requests<'a>(
        &mut self,
        group: impl Iterator<Item = &'a mut Box<dyn Ask>>,
        outcomes: &mut Vec<Result<()>>,
    ) -> Result<(Vec<QueueName>, bool)> {
        let (now, monotonic) = (self.setup.clock.now(), self.setup.clock.monotonic());
        let limits = &self.setup.limits;
        let conn = self.db.conn();
        let no_room = self.no_room()?;
        let mut write = Write::new(&self.db, &mut self.known, limits, now, monotonic);
        if write.known.clamp {
            write.clamp()?;
            write.known.clamp = false;
            self.clamped = true;
        }
        for ask in group {
            if let Some(error) = no_room.as_ref().filter(|_| ask.weight().is_put()) {
                outcomes.push(Err(error.clone()));
                continue;
            }
            let (changes, woken) = (conn.total_changes(), write.woken.len());
            let outcome = ask.run(&mut write);
            self.setup.signs.give();
            if let Err(error) = &outcome {
                if conn.is_autocommit() || conn.total_changes() != changes {
                    return Err(error.clone());
                }
                write.drop_request(woken);
            } else {
                write.keep_request();
            }
            outcomes.push(outcome);
        }
        write.flush()?;
        self.puts += write.puts;
        Ok((write.woken, write.ended))
    }

    fn commit(&mut self) -> std::result::Result<(), Broken> {
        let Err(error) = self.db.steer("COMMIT") else {
            // Committed to a file that nobody will open again, perhaps.
            return self.setup.place.check().map_err(|error| Broken::Whole(error.into_unknown()));
        };
        let undone = refused_before_commit(&error) && self.roll_back();
        let error = fault(error);
        if undone {
            return Err(Broken::Midway(error));
        }
        self.roll_back();
        self.suspect = true;
        // At once, if it can be: other processes write to the same log.
        if let Err(error) = self.start_new_log() {
            tracing::warn!(error = %error.whole(), "the log is begun anew before the next commit");
        }
        Err(Broken::Whole(error.into_unknown()))
    }

    /// After a failed sync nothing may be acknowledged that rests on the same
    /// log: it is written back whole, synced, and begun anew.
    fn start_new_log(&mut self) -> Result<()> {
        let busy: i64 = self
            .db
            .conn()
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
            .map_err(fault)?;
        if busy != 0 {
            return Err(StoreError::unavailable(
                "a write to the disk failed, and the log could not be begun anew yet".to_owned(),
            ));
        }
        self.suspect = false;
        Ok(())
    }

    /// Undoes the open transaction; returns whether that is certain.
    fn roll_back(&mut self) -> bool {
        self.known.doubt();
        self.known.clamp |= std::mem::take(&mut self.clamped);
        self.seen = None;
        // After some errors SQLite has rolled back by itself.
        self.db.conn().is_autocommit() || self.db.steer("ROLLBACK").is_ok()
    }

    fn sync_for(&self, group: &[Box<dyn Ask>]) -> Sync {
        group.iter().map(|ask| self.weigh(ask.weight())).max().unwrap_or(Sync::Light)
    }

    fn weigh(&self, weight: &Weight) -> Sync {
        match weight {
            Weight::Light => Sync::Light,
            Weight::Full => Sync::Full,
            Weight::Claim(queue) => match self.known.remembered(queue) {
                Some(queue) if !queue.settings.claims_are_durable() => Sync::Light,
                _ => Sync::Full,
            },
            Weight::Queues(queues, tokens) => {
                if !self.known.any_relaxed() {
                    return Sync::Full;
                }
                let relaxed = |queue: Option<&Arc<gristmill_core::Queue>>| {
                    queue.is_some_and(|q| q.settings.durability == Durability::Relaxed)
                };
                let named = queues.iter().all(|q| relaxed(self.known.remembered(q)));
                let held = tokens.iter().all(|token| {
                    let token = token.to_bytes();
                    let queue = self.db.one(
                        Sql::LeaseQueue,
                        bind!(LeaseQueue { token: token.as_slice() }),
                        |row| row.get(at!(LeaseQueue.queue)),
                    );
                    // A token without a lease records nothing.
                    !matches!(queue, Ok(Some(number))
                        if !relaxed(self.known.remembered_number(number)))
                });
                if named && held { Sync::Relaxed } else { Sync::Full }
            }
        }
    }

    fn set_synchronous(&mut self, sync: Sync) -> Result<()> {
        if (sync == Sync::Full) == (self.synchronous == Sync::Full) {
            return Ok(());
        }
        let wanted = if sync == Sync::Full { FULL } else { NORMAL };
        // SQLite obeys this pragma when it is prepared, not when it is run: a
        // statement from the cache would change nothing. Every durable answer
        // rests on it, so it is also read back.
        let conn = self.db.conn();
        let in_force = conn
            .pragma_update(None, "synchronous", wanted)
            .and_then(|()| conn.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0)))
            .map_err(fault)?;
        if in_force != wanted {
            return Err(StoreError::unavailable(format!(
                "synchronous is {in_force} and {wanted} is needed"
            )));
        }
        self.synchronous = sync;
        Ok(())
    }
}

/// Why a group was not committed.
enum Broken {
    /// One of its requests, and nothing was written: they may be run apart.
    Midway(StoreError),
    /// The transaction itself: all have this answer.
    Whole(StoreError),
}
