//! The store: hands each verb to the thread that can serve it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use gristmill_core::{Clock, Limits, Result, StoreError, WakeSignal};
use tokio::sync::oneshot;

use crate::Options;
use crate::ask::{Asked, Order, Weight};
use crate::db::Db;
use crate::known::Known;
use crate::place::Place;
use crate::reader::{self, Question, READERS};
use crate::sql::Sql;
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
    /// The store's own name, to know a transaction on another file by.
    pub(crate) id: String,
    waiting: Arc<AtomicUsize>,
    orders: Sender<Order>,
    questions: Mutex<Option<Sender<Question>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    closed: AtomicBool,
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
        let conn = crate::open::writer(&path, &options)?;
        let id = {
            let db = Db::guest(&conn);
            db.one(Sql::MetaGet, rusqlite::params!["store_id"], |row| row.get(0))?
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
        let setup = Setup {
            clock: options.clock.clone(),
            limits: options.limits.clone(),
            group: options.group.max(1),
            busy_timeout: options.busy_timeout,
            wake: wake.clone(),
            waiting: waiting.clone(),
            place: place.clone(),
        };
        let mut threads = vec![start("gristmill-writer", move || {
            writer::serve(&conn, &received, &setup);
        })?];
        for conn in readers {
            let (asked, place) = (asked.clone(), place.clone());
            threads.push(start("gristmill-reader", move || {
                reader::serve(&conn, &asked, &place);
            })?);
        }
        let store = SqliteStore {
            path,
            clock: options.clock,
            limits: options.limits,
            wake,
            id,
            waiting,
            orders,
            questions: Mutex::new(Some(questions)),
            threads: Mutex::new(threads),
            closed: AtomicBool::new(false),
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
        let (asked, answer) = Asked::new(weight, work);
        self.orders.send(Order::Ask(Box::new(asked))).map_err(|_| StoreError::Closed)?;
        self.answered(answer).await
    }

    /// Has a reader answer something from one snapshot.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Db<'_>, &mut Known) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.is_open()?;
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
        self.answered(answer).await
    }

    async fn answered<T>(&self, answer: oneshot::Receiver<Result<T>>) -> Result<T> {
        match answer.await {
            Ok(answer) => answer,
            Err(_) => {
                self.is_open()?;
                Err(StoreError::Unknown("the store's thread ended unexpectedly".to_owned()))
            }
        }
    }

    /// Lets the writer look for other processes' commits while this lives.
    pub(crate) fn attend(&self) -> Attendance<'_> {
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
        let _ = self.orders.send(Order::Close);
        drop(self.questions.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take());
        let threads = std::mem::take(
            &mut *self.threads.lock().unwrap_or_else(std::sync::PoisonError::into_inner),
        );
        // Joining blocks, and no runtime is promised: a thread does it.
        let (ended, end) = oneshot::channel();
        start("gristmill-close", move || {
            for thread in threads {
                let _ = thread.join();
            }
            let _ = ended.send(());
        })?;
        end.await.map_err(|_| StoreError::Unavailable("the store's threads did not end".to_owned()))
    }
}

/// How long a dropped store waits for its threads.
const PARTING: std::time::Duration = std::time::Duration::from_secs(1);

impl Drop for SqliteStore {
    /// Ends the threads and waits a moment for them, so that the file is
    /// usually closed afterwards; `close` waits for certain.
    fn drop(&mut self) {
        let _ = self.orders.send(Order::Close);
        drop(self.questions.get_mut().map(Option::take));
        let start = std::time::Instant::now();
        let threads = self.threads.get_mut().map(std::mem::take).unwrap_or_default();
        while threads.iter().any(|thread| !thread.is_finished()) && start.elapsed() < PARTING {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// Someone waits.
pub(crate) struct Attendance<'a>(&'a AtomicUsize);

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|e| StoreError::Unavailable(format!("no thread could be started: {e}")))
}
