//! Noticing that a store's own thread does not come back: from a lock that
//! another process keeps, or from a disk that does not answer.
//!
//! Such a thread cannot say so itself, and whoever asked it would wait for ever.
//! So it gives a sign before and after each step, and another thread looks at the
//! signs: it says within two seconds what is the matter, says when it is over, and
//! lets callers go when there was no sign for too long.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::Poll;
use std::thread::Thread;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::{Result, StoreError};

/// Silence is told after this.
const TOLD: Duration = Duration::from_millis(1_200);
/// How often the signs are looked at while there is work.
const LOOK: Duration = Duration::from_millis(200);
/// After so many looks without work nobody looks until there is some.
const REST: u32 = 10;

/// Who knows which other process holds the store's lock.
pub type Holder = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// The watch over a store's threads.
pub struct Watchdog {
    inner: Arc<Inner>,
}

/// What a watched thread gives its signs with.
#[derive(Clone)]
pub struct Signs {
    inner: Arc<Inner>,
    post: usize,
}

struct Inner {
    /// The store, as people know it.
    store: String,
    holder: Holder,
    /// Callers are let go after this much silence.
    deadline: Duration,
    start: Instant,
    /// One a thread: when it gave its last sign, in milliseconds from 1; 0 is
    /// without work.
    posts: Box<[AtomicU64]>,
    /// The last piece of work ended without an answer of the lock or the disk.
    trouble: AtomicBool,
    /// The silence in milliseconds, once it is over the deadline; else 0.
    silence: AtomicU64,
    let_go: Notify,
    rests: AtomicBool,
    looker: OnceLock<Thread>,
}

impl Watchdog {
    /// Watches over so many threads of a store from now on.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        store: String,
        threads: usize,
        deadline: Duration,
        holder: Holder,
    ) -> Result<Self> {
        let inner = Arc::new(Inner {
            store,
            holder,
            deadline,
            start: Instant::now(),
            posts: (0..threads).map(|_| AtomicU64::new(0)).collect(),
            trouble: AtomicBool::new(false),
            silence: AtomicU64::new(0),
            let_go: Notify::new(),
            rests: AtomicBool::new(false),
            looker: OnceLock::new(),
        });
        let watched = Arc::downgrade(&inner);
        let looker = std::thread::Builder::new()
            .name("gristmill-watch".to_owned())
            .spawn(move || look(&watched))
            .map_err(|e| StoreError::unavailable("no thread could be started").caused_by(e))?;
        let _ = inner.looker.set(looker.thread().clone());
        Ok(Watchdog { inner })
    }

    /// The signs of one of the threads, counted from 0.
    #[must_use]
    pub fn signs(&self, post: usize) -> Signs {
        Signs { inner: self.inner.clone(), post }
    }

    /// How long the store has been silent, if that is for too long: then it is
    /// not worth asking.
    ///
    /// # Errors
    /// *Unavailable*, for nothing was asked.
    pub fn is_answering(&self) -> Result<()> {
        match self.inner.silence() {
            Some(silence) => Err(StoreError::unavailable(self.inner.sentence(silence))),
            None => Ok(()),
        }
    }

    /// The answer to something that was asked, or nothing when the store has been
    /// silent for too long.
    pub async fn wait<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        let mut answer = pin!(answer);
        let mut let_go = pin!(self.inner.let_go.notified());
        poll_fn(|context| {
            if let Poll::Ready(answer) = answer.as_mut().poll(context) {
                return Poll::Ready(Some(answer));
            }
            while let_go.as_mut().poll(context).is_ready() {
                let_go.set(self.inner.let_go.notified());
            }
            // After it is listened for: what came before is not heard.
            if self.inner.silence().is_some() { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }

    /// Why [`Watchdog::wait`] had no answer, in words.
    #[must_use]
    pub fn why(&self) -> String {
        self.inner.sentence(self.inner.silence().unwrap_or(self.inner.deadline))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // It looks whether anybody is left, and ends.
        if let Some(looker) = self.looker.get() {
            looker.unpark();
        }
    }
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog").field("store", &self.inner.store).finish_non_exhaustive()
    }
}

impl fmt::Debug for Signs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signs").field("post", &self.post).finish_non_exhaustive()
    }
}

impl Signs {
    /// There is work from now on, or some progress with it.
    pub fn give(&self) {
        let Some(post) = self.inner.posts.get(self.post) else { return };
        let before = post.swap(self.inner.now(), Ordering::SeqCst);
        if before == 0
            && self.inner.rests.load(Ordering::SeqCst)
            && let Some(looker) = self.inner.looker.get()
        {
            looker.unpark();
        }
    }

    /// There is some progress, if there is work.
    pub fn progress(&self) {
        let Some(post) = self.inner.posts.get(self.post) else { return };
        if post.load(Ordering::SeqCst) != 0 {
            post.store(self.inner.now(), Ordering::SeqCst);
        }
    }

    /// The work is over. Without an answer (the lock was never free) the store is
    /// not taken for one that answers again.
    pub fn end(&self, answered: bool) {
        self.inner.trouble.store(!answered, Ordering::SeqCst);
        if let Some(post) = self.inner.posts.get(self.post) {
            post.store(0, Ordering::SeqCst);
        }
    }
}

impl Inner {
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    /// The longest time that a thread with work gave no sign.
    fn longest(&self) -> Option<Duration> {
        let signs = self.posts.iter().map(|post| post.load(Ordering::SeqCst));
        let oldest = signs.filter(|sign| *sign > 0).min()?;
        Some(Duration::from_millis(self.now().saturating_sub(oldest)))
    }

    fn silence(&self) -> Option<Duration> {
        let silence = self.silence.load(Ordering::SeqCst);
        (silence > 0).then(|| Duration::from_millis(silence))
    }

    fn sentence(&self, silence: Duration) -> String {
        let seconds = silence.as_secs_f64();
        let why = match (self.holder)() {
            Some(holder) => format!("{holder} holds its lock"),
            None => "no other process is seen to hold its lock, its disk may be stuck".to_owned(),
        };
        format!("{} has not answered for {seconds:.1} s: {why}", self.store)
    }

    /// Lets callers go, or lets them ask again.
    fn judge(&self, silence: Option<Duration>) {
        let over = silence.filter(|silence| *silence >= self.deadline);
        let millis = over.map_or(0, |s| u64::try_from(s.as_millis()).unwrap_or(u64::MAX).max(1));
        self.silence.store(millis, Ordering::SeqCst);
        if millis > 0 {
            self.let_go.notify_waiters();
        }
    }
}

/// Looks at the signs until nobody is left to give them.
fn look(watched: &Weak<Inner>) {
    let mut told: Option<Instant> = None;
    let mut looks = 0;
    while let Some(inner) = watched.upgrade() {
        let silence = inner.longest();
        match (silence.filter(|silence| *silence >= TOLD), told) {
            (Some(silence), None) => {
                told = Instant::now().checked_sub(silence);
                tracing::warn!("{}", inner.sentence(silence));
            }
            (None, Some(since)) if !inner.trouble.load(Ordering::SeqCst) => {
                told = None;
                let seconds = since.elapsed().as_secs_f64();
                tracing::warn!("{} answers again after {seconds:.1} s", inner.store);
            }
            _ => {}
        }
        inner.judge(silence);
        looks = if silence.is_none() && told.is_none() { looks + 1 } else { 0 };
        if looks < REST {
            drop(inner);
            std::thread::sleep(LOOK);
            continue;
        }
        looks = 0;
        inner.rests.store(true, Ordering::SeqCst);
        // Work that came before this was seen has unparked nobody.
        let is_idle = inner.longest().is_none();
        drop(inner);
        if is_idle {
            std::thread::park();
        }
        if let Some(inner) = watched.upgrade() {
            inner.rests.store(false, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nobody() -> Holder {
        Box::new(|| None)
    }

    #[tokio::test]
    async fn a_caller_is_let_go_and_may_ask_again_when_there_is_a_sign() {
        let deadline = Duration::from_millis(300);
        let dog = Watchdog::start("the store".to_owned(), 2, deadline, nobody()).expect("a watch");
        let signs = dog.signs(1);
        assert_eq!(dog.wait(std::future::ready(7)).await, Some(7));
        signs.give();
        let asked = Instant::now();
        assert_eq!(dog.wait(std::future::pending::<()>()).await, None);
        assert!(asked.elapsed() >= deadline, "{:?}", asked.elapsed());
        assert!(dog.is_answering().is_err(), "nobody else has to find out");
        assert!(dog.why().starts_with("the store has not answered for 0."), "{}", dog.why());
        signs.end(true);
        while dog.is_answering().is_err() {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn the_looker_ends_with_its_store() {
        let dog = Watchdog::start("s".to_owned(), 1, LOOK, nobody()).expect("a watch");
        let inner = Arc::downgrade(&dog.inner);
        drop(dog);
        let start = Instant::now();
        while inner.strong_count() > 0 {
            assert!(start.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
