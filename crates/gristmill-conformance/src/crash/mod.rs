//! Crashes: real processes on one durable store, killed at random or cut off
//! from their power, and a verdict over everything they wrote down.
//!
//! A store's test file has two tests of a few lines: the *child*, which puts
//! or works until it is killed, and the *parent*, which starts children (its
//! own binary again), kills them, opens the store and judges. Children append
//! one line before and one after every call to a log outside the store, so
//! that a call without an answer is known to be unknown.
//!
//! A store with a server of its own has more that can break: [`strikes`] calls
//! a strike of the test's choosing while the children go on, and they repeat
//! what got no answer until they hear one.

mod child;
mod faults;
mod nemesis;
mod power;
mod record;
mod story;
mod trace;
mod trial;
mod verdict;

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use gristmill_core::Store;

pub use child::run as child;
pub use faults::{Company, obstacle, survive_faults, tell_failed_syncs};
pub use nemesis::{KillPlan, kills, strikes};
pub use power::{Image, PowerPlan, Server, power_cuts, power_cuts_under, stop};
pub use trial::{long, survive_kills, survive_power_cuts};
pub use verdict::{Tally, Verdict};

/// Opens the store under test in this folder, creating it if it is not there.
pub type Open = for<'a> fn(&'a Path) -> Opening<'a>;

/// A store that is being opened, within the runtime that will use it.
pub type Opening<'a> = Pin<Box<dyn Future<Output = Arc<dyn Store>> + 'a>>;

/// Runs a future to its end on a runtime of its own.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// The queue the children use.
pub(crate) const QUEUE: &str = "crash";
