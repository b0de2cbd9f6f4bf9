//! Running one behaviour by itself: own thread, own runtime, limited time.

use std::any::Any;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::{Behaviour, Harness, behaviours};

/// How long a behaviour may take. None needs a second; one that takes longer
/// hangs.
pub const LIMIT: Duration = Duration::from_secs(60);

/// How a behaviour was found not to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// An expectation was broken; its words.
    Broken(String),
    /// It did not end in time.
    Hung,
}

/// Runs one behaviour on a store of this harness, and says whether it holds.
/// Its threads carry the name `thread`, so that a panic hook can tell them.
///
/// # Errors
/// The broken expectation.
pub fn check(
    behaviour: Behaviour,
    harness: Arc<dyn Harness>,
    limit: Duration,
    thread: &str,
) -> Result<(), Failure> {
    match outcome(behaviour, harness, limit, thread) {
        Ok(()) => Ok(()),
        Err(Some(panic)) => Err(Failure::Broken(words(panic.as_ref()))),
        Err(None) => Err(Failure::Hung),
    }
}

/// Runs the named behaviour as a test: panics when it does not hold.
///
/// # Panics
/// When the behaviour does, when it hangs, or when no behaviour has the name.
pub fn run(name: &str, harness: Arc<dyn Harness>) {
    let behaviour = behaviours()
        .into_iter()
        .find(|b| b.name == name)
        .unwrap_or_else(|| panic!("there is no behaviour '{name}'"));
    match outcome(behaviour, harness, LIMIT, name) {
        Ok(()) => {}
        Err(Some(panic)) => std::panic::resume_unwind(panic),
        Err(None) => panic!("{name} did not end within {LIMIT:?}"),
    }
}

type Panic = Box<dyn Any + Send>;

/// A thread of its own, because a store that blocks its caller for ever cannot
/// be interrupted from within its runtime; it is then left behind.
fn outcome(
    behaviour: Behaviour,
    harness: Arc<dyn Harness>,
    limit: Duration,
    thread: &str,
) -> Result<(), Option<Panic>> {
    let (ended, end) = channel();
    let workers = thread.to_owned();
    let running = std::thread::Builder::new()
        .name(thread.to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(4)
                .thread_name(workers)
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on((behaviour.run)(harness));
            // What a behaviour left waiting must not hold up its end.
            runtime.shutdown_background();
            let _ = ended.send(());
        })
        .expect("a thread");
    match end.recv_timeout(limit) {
        Err(RecvTimeoutError::Timeout) => Err(None),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => running.join().map_err(Some),
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned())
}
