//! The store: hands each verb to the thread that keeps the folder.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use gristmill_core::memory::State as Ledger;
use gristmill_core::{
    Bell, Crowd, Limits, Listening, Result, StoreError, WakeSignal, Watchdog, lock_holder,
};
use tokio::sync::oneshot;

use crate::Options;
use crate::ask::{Asked, Desk, Order};
use crate::disk::{Watched, open_own};
use crate::errors::At;
use crate::keeper::{Keeper, Setup};
use crate::load::{Opener, load};
use crate::lock::Lock;
use crate::persist::Sync;
use crate::spool::{Begun, LOCK, PRESENT, STATE, Spool};
use crate::{segment, snapshot};

/// Tasks as files in a folder.
///
/// Any number of processes may open the same folder; they take turns. One
/// thread of this handle reads and writes it; nothing needs an asynchronous
/// runtime but the timers of `wait`.
#[derive(Debug)]
pub struct FilesStore {
    pub(crate) spool: Spool,
    pub(crate) limits: Limits,
    pub(crate) wake: Arc<WakeSignal>,
    bell: Bell,
    /// Hears what other processes do, from the first who waits on.
    listening: OnceLock<Option<Listening>>,
    pub(crate) crowd: Arc<Crowd>,
    waiting: Arc<AtomicUsize>,
    orders: Sender<Order>,
    thread: Mutex<Option<JoinHandle<()>>>,
    closed: AtomicBool,
    watchdog: Watchdog,
}

impl FilesStore {
    /// Opens the folder, making it when there is none. Blocks: it reads every
    /// task's file, and waits for other processes that have their turn.
    ///
    /// # Errors
    /// When the folder cannot be opened, is no spool, or was written by a
    /// newer program; each in a sentence that names it.
    pub fn open(folder: impl AsRef<Path>, options: Options) -> Result<Self> {
        FilesStore::open_spool(Spool::new(folder.as_ref()), options)
    }

    pub(crate) fn open_spool(mut spool: Spool, options: Options) -> Result<Self> {
        spool.make_root(options.create)?;
        let watchdog = watch(&spool, options.answer_within.max(options.busy_timeout))?;
        let signs = watchdog.signs(0);
        spool.disk = Arc::new(Watched { disk: spool.disk.clone(), signs: signs.clone() });
        signs.give();
        let mut lock = Lock::new(spool.hold()?, spool.root());
        let turn = lock.take(&spool, options.busy_timeout)?;
        let now = options.clock.now();
        if spool.begin(options.create)? == Begun::New {
            let ledger = Ledger::unbounded(options.limits.clone());
            segment::make(&spool, 1)?;
            spool.replace(STATE, snapshot::text(&ledger, 1, now)?.as_bytes())?;
            spool.mark()?;
        }
        let present = open_own(&spool.at(PRESENT)).at(&spool.at(PRESENT))?;
        let opener = if present.try_lock().is_ok() { Opener::First } else { Opener::Another };
        let held = load(&spool, &options.limits, opener, now)?;
        // Whoever opens holds the folder's lock, so nobody comes in between.
        present.lock_shared().at(&spool.at(PRESENT))?;
        drop(turn);
        let wake = Arc::new(WakeSignal::default());
        let waiting = Arc::new(AtomicUsize::new(0));
        let crowd = Arc::new(Crowd::default());
        // A file that everybody has open and nobody looks into.
        let bell = Bell::on(spool.at(PRESENT));
        let setup = Setup {
            spool: spool.clone(),
            clock: options.clock.clone(),
            limits: options.limits.clone(),
            group: options.group.max(1),
            busy_timeout: options.busy_timeout,
            look: options.look,
            intent_bytes: options.intent_bytes,
            wake: wake.clone(),
            bell: bell.clone(),
            waiting: waiting.clone(),
            signs: signs.clone(),
            crowd: crowd.clone(),
        };
        signs.end(true);
        let keeper = Keeper::new(setup, lock, present, held);
        let (orders, received) = channel();
        let thread = std::thread::Builder::new()
            .name("gristmill-files".to_owned())
            .spawn(move || keeper.serve(&received))
            .map_err(|error| {
                StoreError::unavailable("no thread could be started").caused_by(error)
            })?;
        Ok(FilesStore {
            spool,
            limits: options.limits,
            wake,
            bell,
            listening: OnceLock::new(),
            crowd,
            waiting,
            orders,
            thread: Mutex::new(Some(thread)),
            closed: AtomicBool::new(false),
            watchdog,
        })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.spool.root()
    }

    pub(crate) fn is_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// Has the keeper do something; the answer comes when it is written.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        least: Sync,
        work: impl FnMut(&mut Desk<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.is_open()?;
        self.watchdog.is_answering()?;
        let (asked, answer) = Asked::new(least, work);
        self.orders.send(Order::Ask(Box::new(asked))).map_err(|_| StoreError::Closed)?;
        self.answered(answer).await
    }

    async fn answered<T>(&self, answer: oneshot::Receiver<Result<T>>) -> Result<T> {
        match self.watchdog.wait(answer).await {
            Some(Ok(answer)) => answer,
            Some(Err(_)) => {
                self.is_open()?;
                Err(StoreError::unknown("the store's thread ended unexpectedly".to_owned()))
            }
            // It stands in line, and is done when the disk answers again.
            None => Err(StoreError::unknown(self.watchdog.why())),
        }
    }

    /// Lets the keeper look for what other processes do while this lives: when
    /// something is heard of, and now and then.
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

    /// Ends the thread after what was asked before is done.
    pub(crate) async fn end(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.wake.wake_all();
        let _ = self.orders.send(Order::Close);
        let thread = self.thread.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let Some(thread) = thread else { return Ok(()) };
        // Joining blocks, so another thread does it.
        let (joined, end) = oneshot::channel();
        std::thread::spawn(move || {
            let _ = joined.send(thread.join().is_ok());
        });
        match self.watchdog.wait(end).await {
            Some(Ok(true)) => Ok(()),
            None => Err(StoreError::unavailable(self.watchdog.why())),
            _ => Err(StoreError::unavailable("the store's thread ended unexpectedly".to_owned())),
        }
    }
}

fn watch(spool: &Spool, deadline: Duration) -> Result<Watchdog> {
    let lock = spool.at(LOCK);
    let holder = Box::new(move || lock_holder(&lock, None));
    Watchdog::start(spool.root().display().to_string(), 1, deadline, holder)
}

/// How long a dropped store waits for its thread.
const PARTING: std::time::Duration = std::time::Duration::from_secs(1);

impl Drop for FilesStore {
    /// Ends the thread and waits a moment for it, so that the folder is
    /// usually left in order afterwards; `close` waits for certain.
    fn drop(&mut self) {
        let _ = self.orders.send(Order::Close);
        let start = std::time::Instant::now();
        let thread = self.thread.get_mut().map(Option::take).unwrap_or_default();
        while thread.as_ref().is_some_and(|thread| !thread.is_finished())
            && start.elapsed() < PARTING
        {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// Someone waits for work.
pub(crate) struct Attendance<'a>(&'a AtomicUsize);

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
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
        let store = FilesStore::open(folder.path().join("spool"), options).expect("a store");
        let (answers, silence) = channel::<()>();
        let stuck = store.ask(Sync::Full, move |_| {
            let _ = silence.recv();
            Ok(())
        });
        let said = stuck.await.expect_err("nothing came");
        assert!(matches!(&said, StoreError::Unknown(why) if why.contains("spool")), "{said}");
        // Nobody else has to find out, and nothing is left in line.
        let said = store.ask(Sync::Full, |_| Ok(())).await.expect_err("it is known");
        assert!(matches!(said, StoreError::Unavailable(_)), "{said}");
        let closed = store.close().await.expect_err("its thread is there");
        assert!(matches!(closed, StoreError::Unavailable(_)), "{closed}");
        drop(answers);
    }

    /// Two who take turns are never in one group, and one waits for the other all the
    /// same.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_asks_while_another_has_a_turn_waits() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = FilesStore::open(folder.path().join("spool"), Options::default());
        let store = Arc::new(store.expect("a store"));
        for _ in 0..9 {
            store.ask(Sync::Light, |_| Ok(())).await.expect("an answer");
        }
        assert!(!store.crowd.is_waited_for(), "one after the other");
        let (begun, begins) = channel();
        let (go, goes) = channel::<()>();
        let first = tokio::spawn({
            let store = store.clone();
            async move {
                let long = store.ask(Sync::Light, move |_| {
                    let _ = begun.send(());
                    let _ = goes.recv();
                    Ok(())
                });
                long.await
            }
        });
        begins.recv().expect("it has its turn");
        let mut second = std::pin::pin!(store.ask(Sync::Light, |_| Ok(())));
        assert!(at_once(second.as_mut()).is_none(), "it stands in line");
        drop(go);
        first.await.expect("no panic").expect("an answer");
        second.await.expect("an answer");
        assert!(store.crowd.is_waited_for());
    }

    /// What comes at once.
    fn at_once<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }
}
