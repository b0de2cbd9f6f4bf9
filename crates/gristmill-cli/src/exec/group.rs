//! A program and all it started: waited for together, and ended together.

use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Child;
use tokio::task::JoinSet;

/// How long a program may take to end by itself when it is told to.
const GRACE: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Groups whose attempt is over but which may still be ending.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leaving(Arc<Mutex<JoinSet<()>>>);

impl Leaving {
    /// Waits until all are gone, so that nothing we started outlives us.
    pub(crate) async fn gone(&self) {
        let mut leaving =
            std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        while leaving.join_next().await.is_some() {}
    }

    fn take(&self, child: Child) {
        let mut leaving = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that ended meanwhile need not be kept.
        while leaving.try_join_next().is_some() {}
        leaving.spawn(end(child));
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
        Group { child: Some(child), leaving: leaving.clone() }
    }

    /// Waits for the program itself. What it left in the background is left
    /// alone: it was meant to stay.
    pub(super) async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        let Some(child) = &mut self.child else {
            return Err(std::io::ErrorKind::NotFound.into());
        };
        let status = child.wait().await;
        self.child = None;
        status
    }

    /// Ends all of it: asks first, and kills what is left after two seconds.
    pub(super) async fn stop(&mut self) {
        if let Some(child) = self.child.take() {
            end(child).await;
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

async fn end(mut child: Child) {
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).unwrap_or(0)));
    let Some(group) = group else { return };
    // It may have ended by itself: then there is nobody to tell.
    let _ = kill_process_group(group, Signal::TERM);
    let start = Instant::now();
    loop {
        // The program has to be reaped before its group can be empty.
        let _ = child.try_wait();
        if test_kill_process_group(group).is_err() {
            break;
        }
        if start.elapsed() >= GRACE {
            let _ = kill_process_group(group, Signal::KILL);
            break;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    let _ = child.wait().await;
}
