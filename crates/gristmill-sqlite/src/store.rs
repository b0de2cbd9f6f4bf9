//! The store: hands each verb to the thread that can serve it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use gristmill_core::{
    Bell, Clock, Crowd, Limits, Listening, Result, Signs, StoreError, WakeSignal, Watchdog,
    lock_holder,
};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::Options;
use crate::ask::{Asked, Order, Weight};
use crate::db::Db;
use crate::errors::fault;
use crate::known::Known;
use crate::place::Place;
use crate::reader::{self, Question, READERS};
use crate::sql::{Sql, at, bind};
use crate::sweep;
use crate::write::Write;
use crate::writer::{self, Setup};

/// Tasks in one SQLite file, which may be the application's own.
///
/// Any number of processes may open the same file. One thread of this handle
/// writes, two read; nothing needs an asynchronous runtime but the timers of
/// `wait`.
#[derive(Debug)]
pub struct SqliteStore {
    pub(crate) path: PathBuf,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) wake: Arc<WakeSignal>,
    pub(crate) bell: Bell,
    /// Hears other processes' commits, from the first who waits on.
    listening: OnceLock<Option<Listening>>,
    pub(crate) crowd: Arc<Crowd>,
    /// The store's own name, to know a transaction on another file by.
    pub(crate) id: String,
    waiting: Arc<AtomicUsize>,
    orders: Sender<Order>,
    questions: Mutex<Option<Sender<Question>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    closed: AtomicBool,
    watchdog: Watchdog,
    /// How long a disk that gives no sign is waited for.
    pub(crate) answer_within: Duration,
}

impl SqliteStore {
    /// Opens the file, making it when there is none. Blocks: it reads and
    /// writes the disk, and waits for other processes that open it at once.
    ///
    /// # Errors
    /// When the file cannot be opened, is no database, or was written by a
    /// newer program; each in a sentence that names the file.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let answer_within = options.answer_within.max(options.busy_timeout);
        let watchdog = watch(&path, answer_within)?;
        let opening = watchdog.signs(WRITER);
        opening.give();
        let opened = crate::open::writer(&path, &options);
        opening.end(!matches!(opened, Err(StoreError::Busy(_))));
        let mut conn = opened?;
        show_progress(&mut conn, &opening)?;
        let id = {
            let db = Db::guest(&conn);
            db.one(Sql::MetaGet, bind!(MetaGet { key: "store_id" }), |row| {
                row.get(at!(MetaGet.value))
            })?
            .unwrap_or_default()
        };
        let place = Place::of(&path);
        let readers = (0..READERS)
            .map(|_| crate::open::reader(&path, options.busy_timeout))
            .collect::<Result<Vec<_>>>()?;
        let (orders, received) = channel();
        let (questions, asked) = channel();
        let asked = Arc::new(Mutex::new(asked));
        let wake = Arc::new(WakeSignal::default());
        let waiting = Arc::new(AtomicUsize::new(0));
        let crowd = Arc::new(Crowd::default());
        let bell = bell(&place);
        let setup = Setup {
            clock: options.clock.clone(),
            limits: options.limits.clone(),
            group: options.group.max(1),
            busy_timeout: options.busy_timeout,
            look: options.look,
            wake: wake.clone(),
            bell: bell.clone(),
            waiting: waiting.clone(),
            crowd: crowd.clone(),
            place: place.clone(),
            signs: opening,
        };
        // The writer stands first.
        let mut threads = vec![start("gristmill-writer", move || {
            writer::serve(&conn, &received, &setup);
        })?];
        for (number, mut conn) in readers.into_iter().enumerate() {
            let (asked, place) = (asked.clone(), place.clone());
            let signs = watchdog.signs(WRITER + 1 + number);
            show_progress(&mut conn, &signs)?;
            threads.push(start("gristmill-reader", move || {
                reader::serve(&conn, &asked, &place, &signs);
            })?);
        }
        let store = SqliteStore {
            path,
            clock: options.clock,
            limits: options.limits,
            wake,
            bell,
            listening: OnceLock::new(),
            crowd,
            id,
            waiting,
            orders,
            questions: Mutex::new(Some(questions)),
            threads: Mutex::new(threads),
            closed: AtomicBool::new(false),
            watchdog,
            answer_within,
        };
        // A program that died between two steps of another version's making
        // may have left blocked tasks behind: look at once, not in a second.
        let (asked, _) = Asked::new(Weight::Light, |write: &mut Write<'_, '_>| {
            let missed = sweep::missed(write.db)?;
            write.unblock_missed(&missed)
        });
        let _ = store.orders.send(Order::Ask(Box::new(asked)));
        Ok(store)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// Has the writer do something; the answer comes after its commit.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        weight: Weight,
        work: impl FnMut(&mut Write<'_, '_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.is_open()?;
        self.watchdog.is_answering()?;
        let (asked, answer) = Asked::new(weight, work);
        self.orders.send(Order::Ask(Box::new(asked))).map_err(|_| StoreError::Closed)?;
        // It stands in line, and is done when the disk answers again.
        self.answered(answer, StoreError::unknown).await
    }

    /// Has a reader answer something from one snapshot.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Db<'_>, &mut Known) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.is_open()?;
        self.watchdog.is_answering()?;
        let (reply, answer) = oneshot::channel();
        let question: Question = Box::new(move |snapshot| {
            let found = snapshot.and_then(|(db, known)| question(db, known));
            // Nobody waits for it any more: nothing is lost.
            let _ = reply.send(found);
        });
        {
            let questions =
                self.questions.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let sender = questions.as_ref().ok_or(StoreError::Closed)?;
            sender.send(question).map_err(|_| StoreError::Closed)?;
        }
        self.answered(answer, StoreError::unavailable).await
    }

    async fn answered<T>(
        &self,
        answer: oneshot::Receiver<Result<T>>,
        silent: fn(String) -> StoreError,
    ) -> Result<T> {
        match self.watchdog.wait(answer).await {
            Some(Ok(answer)) => answer,
            Some(Err(_)) => {
                self.is_open()?;
                Err(StoreError::unknown("the store's thread ended unexpectedly".to_owned()))
            }
            None => Err(silent(self.watchdog.why())),
        }
    }

    /// Lets the writer look for other processes' commits while this lives: when one
    /// is heard of, and now and then.
    pub(crate) fn attend(&self) -> Attendance<'_> {
        self.listening.get_or_init(|| {
            let (waiting, orders) = (self.waiting.clone(), self.orders.clone());
            self.bell.listen(move || {
                if waiting.load(Ordering::Acquire) > 0 {
                    let _ = orders.send(Order::Look);
                }
            })
        });
        if self.waiting.fetch_add(1, Ordering::AcqRel) == 0 {
            let _ = self.orders.send(Order::Look);
        }
        Attendance(&self.waiting)
    }

    /// Ends the threads after what was asked before is done.
    pub(crate) async fn end(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.wake.wake_all();
        drop(self.questions.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take());
        let threads = std::mem::take(
            &mut *self.threads.lock().unwrap_or_else(std::sync::PoisonError::into_inner),
        );
        let orders = self.orders.clone();
        // Joining blocks, and no runtime is promised: a thread does it.
        let (ended, end) = oneshot::channel();
        start("gristmill-close", move || {
            // The writer is the last to close the file. Who is last brings the log into
            // it; of two at the same time each thinks that the other is.
            let mut threads = threads.into_iter();
            let writer = threads.next();
            for reader in threads {
                let _ = reader.join();
            }
            let _ = orders.send(Order::Close);
            let _ = writer.map(JoinHandle::join);
            let _ = ended.send(());
        })?;
        match self.watchdog.wait(end).await {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) => {
                Err(StoreError::unavailable("the store's threads did not end".to_owned()))
            }
            None => Err(StoreError::unavailable(self.watchdog.why())),
        }
    }
}

/// How long a dropped store waits for its threads.
const PARTING: std::time::Duration = std::time::Duration::from_secs(1);

impl Drop for SqliteStore {
    /// Ends the threads and waits a moment for them, so that the file is
    /// usually closed afterwards; `close` waits for certain.
    fn drop(&mut self) {
        drop(self.questions.get_mut().map(Option::take));
        let start = std::time::Instant::now();
        let threads = self.threads.get_mut().map(std::mem::take).unwrap_or_default();
        let wait = |threads: &[JoinHandle<()>]| {
            while threads.iter().any(|thread| !thread.is_finished()) && start.elapsed() < PARTING {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        };
        // As in `end`.
        wait(threads.get(1..).unwrap_or_default());
        let _ = self.orders.send(Order::Close);
        wait(&threads);
    }
}

/// Someone waits.
pub(crate) struct Attendance<'a>(&'a AtomicUsize);

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The writer's post; the readers' are behind it.
const WRITER: usize = 0;
/// A statement gives a sign after so many steps of SQLite's machine: a few
/// milliseconds.
const STEPS: i32 = 100_000;
/// The byte of the log's index on which the lock of writers lies.
const WRITE_LOCK: u64 = 120;

/// The bell of a file: its log, on which SQLite has no locks that closing it would
/// free, and which nobody opens only to read.
fn bell(place: &Place) -> Bell {
    let mut log = place.path().as_os_str().to_owned();
    log.push("-wal");
    Bell::on(log)
}

fn watch(path: &Path, deadline: Duration) -> Result<Watchdog> {
    let mut index = path.as_os_str().to_owned();
    index.push("-shm");
    let (index, file) = (PathBuf::from(index), path.to_owned());
    let holder = move || lock_holder(&index, Some(WRITE_LOCK)).or_else(|| lock_holder(&file, None));
    Watchdog::start(path.display().to_string(), WRITER + 1 + READERS, deadline, Box::new(holder))
}

/// Long statements give signs as they go on: they are not silent.
fn show_progress(conn: &mut Connection, signs: &Signs) -> Result<()> {
    let signs = signs.clone();
    let shown = conn.progress_handler(
        STEPS,
        Some(move || {
            signs.progress();
            false
        }),
    );
    shown.map_err(fault)
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|e| StoreError::unavailable("no thread could be started").caused_by(e))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use gristmill_core::Store;

    use super::*;

    /// A disk that does not answer, as far as callers can tell.
    #[tokio::test]
    async fn a_store_that_gives_no_sign_lets_its_callers_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let within = Duration::from_millis(300);
        let options = Options { answer_within: within, busy_timeout: within, ..Options::default() };
        let store = SqliteStore::open(folder.path().join("a.db"), options).expect("a store");
        let (answers, silence) = channel::<()>();
        let stuck = store.write(Weight::Full, move |_| {
            let _ = silence.recv();
            Ok(())
        });
        let said = stuck.await.expect_err("nothing came");
        assert!(matches!(&said, StoreError::Unknown(why) if why.contains("a.db")), "{said}");
        // Nobody else has to find out, and nothing is left in line.
        let said = store.write(Weight::Full, |_| Ok(())).await.expect_err("it is known");
        assert!(matches!(said, StoreError::Unavailable(_)), "{said}");
        let (asks, waits) = channel::<()>();
        drop(answers);
        while store.watchdog.is_answering().is_err() {
            tokio::task::yield_now().await;
        }
        store.write(Weight::Full, |_| Ok(())).await.expect("it answers again");
        // A reader that does not come back changes nothing, and is told so.
        let read = store.read(move |_, _| {
            let _ = waits.recv();
            Ok(())
        });
        let said = read.await.expect_err("nothing came");
        assert!(matches!(said, StoreError::Unavailable(_)), "{said}");
        let closed = store.close().await.expect_err("its thread is there");
        assert!(matches!(closed, StoreError::Unavailable(_)), "{closed}");
        drop(asks);
    }
}
