//! A program and all it started: waited for together, and ended together.

use std::collections::HashSet;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Child;
use tokio::task::JoinSet;

/// How long a program may take to end by itself when it is told to.
const GRACE: Duration = Duration::from_secs(2);
/// The same at a stop, which ends within two seconds.
const HURRIED: Duration = Duration::from_millis(700);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// All groups that run, and those whose attempt is over but which may still be
/// ending.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leaving(Arc<Programs>);

#[derive(Debug, Default)]
struct Programs {
    leaving: Mutex<JoinSet<()>>,
    running: Mutex<HashSet<Pid>>,
    hurried: AtomicBool,
}

impl Leaving {
    /// Waits until all are gone, so that nothing we started outlives us.
    pub(crate) async fn gone(&self) {
        let mut leaving =
            std::mem::take(&mut *self.0.leaving.lock().unwrap_or_else(PoisonError::into_inner));
        while leaving.join_next().await.is_some() {}
    }

    /// From now on a program that is told to end has less time for it.
    pub(crate) fn hurry(&self) {
        self.0.hurried.store(true, Ordering::Release);
    }

    /// Kills whatever runs, for the process ends now. Waits for nothing.
    pub(crate) fn kill(&self) {
        if let Ok(running) = self.0.running.try_lock() {
            for group in running.iter() {
                let _ = kill_process_group(*group, Signal::KILL);
            }
        }
    }

    fn running(&self) -> MutexGuard<'_, HashSet<Pid>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `gone` wait for the end of one that is looked after elsewhere, too.
    pub(super) fn wait_for(&self, end: impl Future<Output = ()> + Send + 'static) {
        let mut leaving = self.0.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that ended meanwhile need not be kept.
        while leaving.try_join_next().is_some() {}
        leaving.spawn(end);
    }

    fn take(&self, child: Child) {
        self.wait_for(end(child, self.clone()));
    }

    /// How long one that is told to end may take for it.
    pub(super) fn grace(&self) -> Duration {
        if self.0.hurried.load(Ordering::Acquire) { HURRIED } else { GRACE }
    }
}

/// A running program. Dropped before its end, it is stopped.
#[derive(Debug)]
pub(super) struct Group {
    child: Option<Child>,
    leaving: Leaving,
}

impl Group {
    pub(super) fn of(child: Child, leaving: &Leaving) -> Self {
        leaving.running().extend(group_of(&child));
        Group { child: Some(child), leaving: leaving.clone() }
    }

    /// Waits for the program itself. What it left in the background is left
    /// alone: it was meant to stay.
    pub(super) async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        let Some(child) = &mut self.child else {
            return Err(std::io::ErrorKind::NotFound.into());
        };
        let group = group_of(child);
        let status = child.wait().await;
        self.child = None;
        if let Some(group) = group {
            self.leaving.running().remove(&group);
        }
        status
    }

    /// Ends all of it: asks first, and kills what is left after two seconds, or
    /// sooner at a stop.
    pub(super) async fn stop(&mut self) {
        if let Some(child) = self.child.take() {
            end(child, self.leaving.clone()).await;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            self.leaving.take(child);
        }
    }
}

fn group_of(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| Pid::from_raw(i32::try_from(id).unwrap_or(0)))
}

async fn end(mut child: Child, leaving: Leaving) {
    let Some(group) = group_of(&child) else { return };
    // It may have ended by itself: then there is nobody to tell.
    let _ = kill_process_group(group, Signal::TERM);
    let start = Instant::now();
    loop {
        // The program has to be reaped before its group can be empty.
        let _ = child.try_wait();
        if test_kill_process_group(group).is_err() {
            break;
        }
        if start.elapsed() >= leaving.grace() {
            let _ = kill_process_group(group, Signal::KILL);
            break;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    let _ = child.wait().await;
    leaving.running().remove(&group);
}
