//! Crashes: real processes on one durable store, killed at random or cut off
//! from their power, and a verdict over everything they wrote down.
//!
//! A store's test file has two tests of a few lines: the *child*, which puts
//! or works until it is killed, and the *parent*, which starts children (its
//! own binary again), kills them, opens the store and judges. Children append
//! one line before and one after every call to a log outside the store, so
//! that a call without an answer is known to be unknown.

mod child;
mod nemesis;
mod power;
mod record;
mod verdict;

use std::path::Path;
use std::sync::Arc;

use gristmill_core::Store;

pub use child::run as child;
pub use nemesis::{KillPlan, kills};
pub use power::{PowerPlan, power_cuts};
pub use verdict::{Tally, Verdict};

/// Opens the store under test in this folder, creating it if it is not there.
pub type Open = fn(&Path) -> Arc<dyn Store>;

/// The queue the children use.
pub(crate) const QUEUE: &str = "crash";
