//! Signals: the first one asks workers to stop, the second one ends the process.
//!
//! They are heard on a thread of their own, which also ends the process when its
//! time has come: handlers that block every thread of the runtime, a store that
//! does not answer, or a runtime that waits for a thread for ever as `main`
//! returns hold none of it up.
//!
//! One worker needs only
//! [`Worker::run_until_signalled`](crate::Worker::run_until_signalled). Several of
//! them, or a scheduler beside, share what is heard:
//!
//! ```no_run
//! # use gristmill::{Mill, Worker, signal::Signals};
//! # async fn example(mails: Worker, reports: Worker) -> Result<(), gristmill::Error> {
//! let signals = Signals::listen()?;
//! signals.stops(&mails);
//! signals.stops(&reports);
//! let (mut report, other) =
//!     tokio::try_join!(mails.run(signals.asked()), reports.run(signals.asked()))?;
//! report.add(&other);
//! signals.ended(&report);
//! # Ok(())
//! # }
//! ```

mod heard;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use gristmill_core::StoreError;
use tokio::sync::watch;

use crate::Error;
use crate::schedule::Scheduler;
use crate::worker::{Force, STOP_NOW, WorkReport, Worker};

/// What a process ends with that was ended before its work was: as shells say it
/// of Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// Signals within this time after the first are one with it: some send it to a
/// process and then to its whole group (`timeout`, a terminal). Who says that
/// another one ends the process says it after this time.
pub const SAME_WISH: Duration = Duration::from_millis(200);

/// The process ends a little sooner than it must.
const SOONER: Duration = Duration::from_millis(150);

/// What is run before the process is ended. It must not wait for anything.
type LastAct = Box<dyn Fn() + Send>;

/// Hears signals for this process.
#[derive(Debug)]
#[must_use = "signals are heard as long as somebody listens"]
pub struct Signals {
    shared: &'static Shared,
}

struct Shared {
    /// How often a stop was asked for.
    asked: watch::Sender<u32>,
    /// How often SIGHUP was heard where it asks for no stop.
    hangups: watch::Sender<u32>,
    state: Mutex<State>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("asked", &*self.asked.borrow()).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    listeners: usize,
    /// SIGHUP asks for no stop.
    hangups_told: bool,
    forces: Vec<Force>,
    /// How long the first signal's stop may take; without end where nobody said.
    patience: Option<Duration>,
    last_acts: Vec<LastAct>,
    /// When the process ends, whatever runs.
    ends_at: Option<Instant>,
}

/// One thread a process: it counts what it hears.
static SHARED: OnceLock<Shared> = OnceLock::new();

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody wants this process to stop. Returns whether nobody listens: then
    /// it is ended as if there were no workers.
    fn hear(&self) -> bool {
        let mut state = self.lock();
        let before = *self.asked.borrow();
        if before == 0 && state.listeners == 0 {
            return true;
        }
        let now = Instant::now();
        let end = now + STOP_NOW - SOONER;
        if before == 0 {
            // The stop's own end comes first; this one is for a worker that
            // cannot come to its end.
            state.ends_at = state.patience.map(|patience| end + patience + STOP_NOW);
        } else {
            state.ends_at = Some(if before == 1 { end } else { now });
            state.forces.iter().for_each(Force::now);
        }
        drop(state);
        self.asked.send_modify(|asked| *asked += 1);
        false
    }

    /// The terminal is gone, or somebody wants the process to look again at what it
    /// read at its start. Returns whether it asks for no stop here.
    fn hear_hangup(&self) -> bool {
        let told = self.lock().hangups_told;
        if told {
            self.hangups.send_modify(|heard| *heard = heard.wrapping_add(1));
        }
        told
    }

    /// Ends the process.
    fn end(&self, code: i32) -> ! {
        // Whoever holds the lock must not hold this up.
        if let Ok(state) = self.state.try_lock() {
            state.last_acts.iter().for_each(|act| act());
        }
        std::process::exit(code)
    }
}

impl Signals {
    /// Listens from now on: make it before the first word that tells anybody they
    /// may send a signal. SIGHUP is heard unless the process was started to
    /// ignore it, as `nohup` does.
    ///
    /// # Errors
    /// When the operating system denies it.
    pub fn listen() -> Result<Self, Error> {
        let denied = |e| StoreError::unavailable("signals cannot be heard").caused_by(e);
        let fresh = || Shared {
            asked: watch::Sender::new(0),
            hangups: watch::Sender::new(0),
            state: Mutex::default(),
        };
        let shared = SHARED.get_or_init(fresh);
        // Two at once: the second one waits for the first.
        static STARTED: Mutex<bool> = Mutex::new(false);
        let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
        if !*started {
            heard::start(shared).map_err(denied)?;
            *started = true;
        }
        drop(started);
        shared.lock().listeners += 1;
        Ok(Signals { shared })
    }

    /// The second signal ends this worker's patience, and the process waits for
    /// it no longer than it may take.
    pub fn stops<S>(&self, worker: &Worker<S>) {
        self.forces(worker.force(), worker.patience());
    }

    /// As [`Signals::stops`], for a scheduler.
    pub fn stops_scheduler(&self, scheduler: &Scheduler) {
        self.forces(scheduler.force(), scheduler.patience());
    }

    fn forces(&self, force: Force, patience: Duration) {
        self.waits(patience);
        self.shared.lock().forces.push(force);
    }

    /// After the first signal the process waits so long for what it runs, and not
    /// much longer. [`Signals::stops`] says it by itself.
    pub fn waits(&self, patience: Duration) {
        let mut state = self.shared.lock();
        state.patience = state.patience.max(Some(patience));
    }

    /// Run before the process is ended by the second signal. It must not wait for
    /// anything.
    pub fn before_the_end(&self, act: impl Fn() + Send + 'static) {
        self.shared.lock().last_acts.push(Box::new(act));
    }

    /// Returns when the stop is asked for; at once when it was before.
    pub fn asked(&self) -> impl Future<Output = ()> + Send + 'static {
        heard(self.shared, 1)
    }

    /// Returns at the second signal: the process ends within
    /// [`STOP_NOW`].
    pub fn forced(&self) -> impl Future<Output = ()> + Send + 'static {
        heard(self.shared, 2)
    }

    /// From now on SIGHUP asks for no stop but is told here, as services use it: to
    /// read their configuration again. One that comes because the terminal was closed
    /// in which the process was started still asks for a stop.
    #[must_use]
    pub fn hangups(&self) -> Hangups {
        self.shared.lock().hangups_told = true;
        Hangups { heard: self.shared.hangups.subscribe() }
    }

    /// How often a stop was asked for.
    #[must_use]
    pub fn count(&self) -> u32 {
        *self.shared.asked.borrow()
    }

    /// The workers ended. When they left a handler running after a signal, the
    /// process is ended soon: the runtime would wait for it for ever.
    pub fn ended(&self, report: &WorkReport) {
        let mut state = self.shared.lock();
        match self.count() {
            0 => {}
            1 if report.left.running == 0 => state.ends_at = None,
            _ => {
                let end = Instant::now() + STOP_NOW;
                state.ends_at = Some(state.ends_at.map_or(end, |at| at.min(end)));
            }
        }
    }
}

/// Hears SIGHUP where it asks for no stop: see [`Signals::hangups`].
#[derive(Debug)]
pub struct Hangups {
    heard: watch::Receiver<u32>,
}

impl Hangups {
    /// Returns at the next one. Several that came since the last are one.
    pub async fn next(&mut self) {
        // The sender is the process's own and never gone.
        let _ = self.heard.changed().await;
    }
}

async fn heard(shared: &'static Shared, times: u32) {
    let _ = shared.asked.subscribe().wait_for(|asked| *asked >= times).await;
}

impl Drop for Signals {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.listeners -= 1;
        if state.listeners == 0 {
            // Who listens next has workers of its own.
            state.forces.clear();
            state.last_acts.clear();
            state.patience = None;
            state.hangups_told = false;
        }
    }
}
