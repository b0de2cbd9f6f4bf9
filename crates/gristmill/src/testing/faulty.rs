//! A store that misbehaves when it is told to, around any other.
//!
//! ```
//! use std::sync::Arc;
//! use gristmill::Mill;
//! use gristmill::port::memory::{MemoryOptions, MemoryStore};
//! use gristmill::testing::{Fault, Faulty, Verb};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), gristmill::Error> {
//! let store = Faulty::over(Arc::new(MemoryStore::new(MemoryOptions::default())));
//! let mill = Mill::over(store.clone());
//! mill.declare_queue("q").await?;
//! store.fails_at(&[Verb::Put], Fault::Refuses);
//! assert!(mill.put_raw("q", gristmill::Payload::json("1")).await.is_err());
//! store.heal();
//! mill.put_raw("q", gristmill::Payload::json("1")).await?;
//! # Ok(())
//! # }
//! ```

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{
    Claim, Clock, DocumentChange, DocumentList, Outcome, Result, Settlement, Store, StoreError,
    SystemClock,
};
use gristmill_text::{ASSIGNMENTS, ROLES, WORKERS};
use tokio::sync::watch;

use crate::timer::Timer;

/// How a store misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It answers *unavailable* at once and does nothing.
    Refuses,
    /// It does not answer while this lasts, and does what was asked afterwards:
    /// a lock that another process holds, a network that swallows everything.
    Hangs,
    /// It does what was asked and answers this much later, by its clock.
    Late(Duration),
    /// It answers *unknown* and did nothing.
    UnknownUndone,
    /// It answers *unknown* and did what was asked.
    UnknownDone,
    /// It loses what a claim gave, as a server does that crashed before the claim
    /// was on its disk: the tasks go back behind their holder's back. Other verbs
    /// are as ever.
    Forgets,
}

macro_rules! verbs {
    ($($verb:ident = $called:ident),+; $($(#[$about:meta])+ $kind:ident),+ $(,)?) => {
        /// The verbs that can go wrong; those over documents also by what they are about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Verb {
            $( #[doc = concat!("See [`Store`] for `", stringify!($called), "`.")] $verb, )+
            $( $(#[$about])+ $kind, )+
        }

        /// What the port calls it.
        macro_rules! verb { $( ($called) => { Verb::$verb }; )+ }
    };
}
verbs! {
    Put = put, Claim = claim, Settle = settle, Extend = extend, Checkpoint = checkpoint,
    Endings = endings, WaitEnded = wait_ended, Reclaim = reclaim, Sweep = sweep, Reach = reach,
    Wait = wait, Find = find, Get = get, List = list, Operate = operate, Import = import,
    DeclareQueue = declare_queue, OverrideQueue = override_queue, ResetQueue = reset_queue,
    PauseQueue = pause_queue, RegisterContract = register_contract, Queues = queues, Stats =
    stats, Minutes = minutes, DeclareSchedule = declare_schedule, Schedules = schedules,
    RemoveSchedule = remove_schedule, PauseSchedule = pause_schedule, Fire = fire, Document =
    document, Documents = documents, SaveDocument = save_document, Diagnose =     diagnose,
    Close = close;
    /// Reading who holds a role.
    Campaign,
    /// Giving a role up.
    Resign,
    /// Keeping a worker's report.
    ReportWorker,
    /// Forgetting a worker.
    ForgetWorker,
    /// Reading what workers report.
    Workers,
    /// Keeping the manager's word.
    PublishAssignment,
    /// Reading the manager's word.
    Assignment,
}

impl Verb {
    fn of_reading(kind: &str) -> Self {
        match kind {
            ROLES => Verb::Campaign,
            ASSIGNMENTS => Verb::Assignment,
            _ => Verb::Document,
        }
    }

    fn of_listing(list: &DocumentList) -> Self {
        if list.kind == WORKERS { Verb::Workers } else { Verb::Documents }
    }

    fn of_saving(change: &DocumentChange) -> Self {
        match (&*change.kind, &change.body) {
            (WORKERS, Some(_)) => Verb::ReportWorker,
            (WORKERS, None) => Verb::ForgetWorker,
            (ASSIGNMENTS, _) => Verb::PublishAssignment,
            (ROLES, Some(body)) if body.ends_with(r#""hold":0}"#) => Verb::Resign,
            _ => Verb::SaveDocument,
        }
    }
}

/// What a call becomes: it goes to the store inside, or wrong.
macro_rules! faulty {
    (now $self:ident.flush_limit()) => { None };
    (now $self:ident.$verb:ident()) => { $self.inner.$verb() };
    ($self:ident.claim($request:ident)) => {{
        let claim = $self.call(Verb::Claim, $self.inner.claim($request)).await?;
        $self.forget(&claim).await?;
        Ok(claim)
    }};
    ($self:ident.open_under($token:ident)) => {
        $self.call(Verb::Get, $self.inner.open_under($token)).await
    };
    ($self:ident.document($kind:ident, $name:ident)) => {
        $self.call(Verb::of_reading($kind), $self.inner.document($kind, $name)).await
    };
    ($self:ident.documents($list:ident)) => {
        $self.call(Verb::of_listing(&$list), $self.inner.documents($list)).await
    };
    ($self:ident.save_document($change:ident)) => {
        $self.call(Verb::of_saving(&$change), $self.inner.save_document($change)).await
    };
    ($self:ident.$verb:ident($($given:ident),*)) => {
        $self.call(verb!($verb), $self.inner.$verb($($given),*)).await
    };
}

gristmill_core::delegate_store!(Faulty, faulty);

/// What goes wrong now, and what was called so far.
#[derive(Debug, Default)]
struct State {
    all: Option<Fault>,
    some: HashMap<Verb, Fault>,
    calls: HashMap<Verb, u64>,
    /// Calls that the store inside is at.
    working: usize,
}

impl State {
    fn fault(&self, verb: Verb) -> Option<Fault> {
        self.some.get(&verb).copied().or(self.all)
    }
}

/// A store around another one that does as it is told: nothing goes wrong until
/// it should. Everybody who works over it learns what a bad day is like.
#[derive(Debug)]
pub struct Faulty {
    inner: Arc<dyn Store>,
    state: watch::Sender<State>,
    timer: Timer,
}

impl Faulty {
    /// Around this one, without a fault yet.
    #[must_use]
    pub fn over(inner: Arc<dyn Store>) -> Arc<Self> {
        Self::on_clock(inner, Arc::new(SystemClock::default()))
    }

    /// The same on a clock, by which it is late.
    #[must_use]
    pub fn on_clock(inner: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Faulty { inner, state: watch::Sender::default(), timer: Timer::by(clock) })
    }

    /// Every verb goes wrong like this from now on; also those that were told
    /// otherwise before.
    pub fn fails(&self, fault: Fault) {
        self.state.send_modify(|state| {
            state.all = Some(fault);
            state.some.clear();
        });
    }

    /// These verbs go wrong like this from now on.
    pub fn fails_at(&self, verbs: &[Verb], fault: Fault) {
        self.state.send_modify(|state| state.some.extend(verbs.iter().map(|v| (*v, fault))));
    }

    /// Nothing goes wrong any more, and what hung is done.
    pub fn heal(&self) {
        self.state.send_modify(|state| {
            state.all = None;
            state.some.clear();
        });
    }

    /// How often a verb was called, well or badly.
    #[must_use]
    pub fn calls(&self, verb: Verb) -> u64 {
        self.state.borrow().calls.get(&verb).copied().unwrap_or_default()
    }

    /// Returns when a verb was called so often.
    pub async fn called(&self, verb: Verb, times: u64) {
        let often = |state: &State| state.calls.get(&verb).is_some_and(|calls| *calls >= times);
        // The sender is `self`, so it cannot go away meanwhile.
        let _ = self.state.subscribe().wait_for(often).await;
    }

    /// Returns when the store inside is at no call; one that hangs is none. Move a
    /// clock only then, and no time passes while the store works: who is asked for a
    /// second would else be away for an hour.
    pub async fn rests(&self) {
        let _ = self.state.subscribe().wait_for(|state| state.working == 0).await;
    }

    /// Does it, or what goes wrong instead.
    async fn call<T>(&self, verb: Verb, does: impl Future<Output = Result<T>>) -> Result<T> {
        let why = || "the test says so".to_owned();
        self.state.send_modify(|state| *state.calls.entry(verb).or_default() += 1);
        let hangs = |state: &State| state.fault(verb) == Some(Fault::Hangs);
        let _ = self.state.subscribe().wait_for(|state| !hangs(state)).await;
        let fault = match self.state.borrow().fault(verb) {
            // Who looks at a role leaves nothing unknown, and asks for it afterwards.
            Some(Fault::UnknownDone | Fault::UnknownUndone) if verb == Verb::Campaign => None,
            fault => fault,
        };
        let does = self.at_work(verb, does);
        match fault {
            Some(Fault::Refuses) => Err(StoreError::unavailable(why())),
            Some(Fault::UnknownUndone) => Err(StoreError::unknown(why())),
            Some(Fault::UnknownDone) => does.await.and(Err(StoreError::unknown(why()))),
            Some(Fault::Late(by)) => {
                let answer = does.await;
                self.timer.sleep(by).await;
                answer
            }
            Some(Fault::Hangs | Fault::Forgets) | None => does.await,
        }
    }

    /// Does it, and is at work meanwhile.
    async fn at_work<T>(&self, verb: Verb, does: impl Future<Output = T>) -> T {
        // Who waits for work does none.
        let _working = (verb != Verb::Wait).then(|| Working::new(&self.state));
        does.await
    }

    /// Loses what a claim gave.
    async fn forget(&self, claim: &Claim) -> Result<()> {
        if self.state.borrow().fault(Verb::Claim) != Some(Fault::Forgets) {
            return Ok(());
        }
        let back = || Outcome::Release { at: None, started: false };
        let given = claim.tasks.iter().map(|task| Settlement::new(task.id, claim.token, back()));
        self.inner.settle(given.collect()).await.map(drop)
    }
}

/// A call that the store is at, until this is dropped.
struct Working<'a>(&'a watch::Sender<State>);

impl<'a> Working<'a> {
    fn new(state: &'a watch::Sender<State>) -> Self {
        state.send_modify(|state| state.working += 1);
        Working(state)
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|state| state.working -= 1);
    }
}
