//! Pure functions that decide; stores only record what they say.
//!
//! None of these reads a clock, draws a random number or touches a store, so
//! every store comes to the same decision and property tests can try them all.

pub mod assignment;
pub mod backoff;
pub mod diagnose;
pub mod duplicate;
pub mod ending;
pub mod fire;
pub mod keeping;
pub mod moves;
pub mod next_fire;
pub mod outcome;
pub mod rate;
pub mod reclaim_guard;
pub mod refused_follow_up;
pub mod role;
pub mod room;
