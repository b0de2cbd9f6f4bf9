//! A faulty store around each kind of store, and what it does when told.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use gristmill::port::{
    ClaimRequest, Outcome, SettleAnswer, Settlement, Store, Token, WorkerId, memory,
};
use gristmill::testing::{Fault, Faulty, ManualClock, Verb};
use gristmill::{Error, Mill, QueueName, StoreError, files, sqlite};

use crate::{Mail, until};

/// A mill over a faulty store, with the queue of mails declared.
pub(crate) struct Bad {
    pub(crate) mill: Mill,
    pub(crate) store: Arc<Faulty>,
    /// The store's, where it is on a clock; others are on the machine's.
    pub(crate) clock: Arc<ManualClock>,
    /// Nothing goes wrong there; it tells when the store works.
    inner: Arc<Faulty>,
    /// It must outlive the store.
    _folder: Option<tempfile::TempDir>,
}

impl Bad {
    pub(crate) async fn at(url: &str, folder: Option<tempfile::TempDir>) -> Self {
        let inner = Faulty::over(Mill::open(url).await.unwrap().store());
        Self::made(inner.clone(), Faulty::over(inner), Arc::default(), folder).await
    }

    pub(crate) async fn on_clock(
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        folder: Option<tempfile::TempDir>,
    ) -> Self {
        let inner = Faulty::over(store);
        let store = Faulty::on_clock(inner.clone(), clock.clone());
        Self::made(inner, store, clock, folder).await
    }

    async fn made(
        inner: Arc<Faulty>,
        store: Arc<Faulty>,
        clock: Arc<ManualClock>,
        folder: Option<tempfile::TempDir>,
    ) -> Self {
        let mill = Mill::over(store.clone());
        mill.declare::<Mail>().await.unwrap();
        Bad { mill, store, clock, inner, _folder: folder }
    }

    /// The same store as another process has it: what goes wrong here does not
    /// there.
    pub(crate) async fn beside(&self) -> Bad {
        let store = Faulty::on_clock(self.inner.clone(), self.clock.clone());
        Self::made(self.inner.clone(), store, self.clock.clone(), None).await
    }

    /// Moves the clock on, step by step and never while the store works, until it
    /// holds.
    pub(crate) async fn ticks(
        &self,
        step: Duration,
        what: &str,
        mut holds: impl AsyncFnMut() -> bool,
    ) {
        until(what, async || {
            self.inner.rests().await;
            self.clock.advance(step);
            holds().await
        })
        .await;
    }

    /// The store as it is, whatever goes wrong.
    pub(crate) fn well(&self) -> Mill {
        Mill::over(self.inner.clone())
    }
}

/// One on each store that needs no server.
pub(crate) async fn every_store() -> Vec<Bad> {
    let mut all = Vec::new();
    for kind in ["memory:", "sqlite://", "files://"] {
        let folder = tempfile::tempdir().unwrap();
        let url = match kind {
            "memory:" => kind.to_owned(),
            _ => format!("{kind}{}", folder.path().join("store").display()),
        };
        all.push(Bad::at(&url, Some(folder)).await);
    }
    all
}

/// As [`every_store`], each on a clock that the test moves.
pub(crate) async fn every_store_on_a_clock() -> Vec<Bad> {
    let mut all = Vec::new();
    for kind in ["memory", "sqlite", "files"] {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Arc::new(ManualClock::default()));
        let (place, own) = (folder.path().join("store"), clock.clone());
        let store: Arc<dyn Store> = match kind {
            "memory" => {
                let options = memory::MemoryOptions { clock: own, ..Default::default() };
                Arc::new(memory::MemoryStore::new(options))
            }
            "sqlite" => {
                let options = sqlite::Options { clock: own, ..Default::default() };
                Arc::new(sqlite::SqliteStore::open(place, options).unwrap())
            }
            _ => {
                let options = files::Options { clock: own, ..Default::default() };
                Arc::new(files::FilesStore::open(place, options).unwrap())
            }
        };
        all.push(Bad::on_clock(store, clock, Some(folder)).await);
    }
    all
}

/// Tries the same on each of them, side by side: most of it is waiting.
pub(crate) async fn side_by_side<F: Future<Output = ()>>(
    mut stores: Vec<Bad>,
    test: impl Fn(Bad) -> F,
) {
    // A test that takes its store apart would drop the folder at once.
    let _folders: Vec<_> = stores.iter_mut().map(|bad| bad._folder.take()).collect();
    let mut running: Vec<_> = stores.into_iter().map(|bad| Box::pin(test(bad))).collect();
    std::future::poll_fn(|context| {
        running.retain_mut(|one| one.as_mut().poll(context).is_pending());
        if running.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

async fn ready(mill: &Mill) -> u64 {
    mill.inspect().queue("mails").await.unwrap().ready
}

#[tokio::test]
async fn it_does_as_it_is_told() {
    for Bad { mill, store, .. } in every_store().await {
        let put = async || mill.put(Mail::to("a")).await;
        let is_unknown = |e: Error| matches!(e, Error::Store(StoreError::Unknown(_)));
        store.fails_at(&[Verb::Put], Fault::Refuses);
        let refused = put().await.unwrap_err();
        assert!(matches!(refused, Error::Store(StoreError::Unavailable(_))));
        store.fails_at(&[Verb::Put], Fault::UnknownUndone);
        assert!(is_unknown(put().await.unwrap_err()) && ready(&mill).await == 0);
        store.fails_at(&[Verb::Put], Fault::UnknownDone);
        assert!(is_unknown(put().await.unwrap_err()) && ready(&mill).await == 1);
        store.fails_at(&[Verb::Put], Fault::Hangs);
        let before = store.calls(Verb::Put);
        let hangs = async {
            store.called(Verb::Put, before + 1).await;
            assert_eq!(ready(&mill).await, 1);
            store.heal();
        };
        let (answer, ()) = tokio::join!(put(), hangs);
        assert!(answer.unwrap().is_enqueued() && ready(&mill).await == 2);
        store.fails(Fault::Late(Duration::from_millis(1)));
        put().await.unwrap();
        assert_eq!(ready(&mill).await, 3);
    }
}

#[tokio::test]
async fn a_claim_that_is_forgotten_settles_nothing() {
    for Bad { mill, store, .. } in every_store().await {
        let id = mill.put(Mail::to("a")).await.unwrap().id();
        store.fails_at(&[Verb::Claim], Fault::Forgets);
        let claim = ClaimRequest {
            queue: QueueName::new("mails").unwrap(),
            max: 1,
            lease: None,
            worker: WorkerId::new("w").unwrap(),
            source: None,
            token: Token::random().unwrap(),
        };
        let claim = mill.store().claim(claim).await.unwrap();
        assert_eq!((claim.tasks.len(), ready(&mill).await), (1, 1));
        let done = Settlement::new(id, claim.token, Outcome::Done);
        let answers = mill.store().settle(vec![done]).await.unwrap();
        assert!(!matches!(answers[0], SettleAnswer::Recorded { .. }), "{answers:?}");
        assert_eq!(ready(&mill).await, 1);
    }
}
