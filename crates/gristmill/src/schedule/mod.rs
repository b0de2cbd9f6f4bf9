//! Schedules: stored rules that put tasks, and finders that look for work.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use gristmill::schedule::{Finding, Missed, Scheduler};
//! use gristmill::{Mill, TaskType};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Digest { edition: String }
//! impl TaskType for Digest { const QUEUE: &'static str = "digests"; }
//!
//! # async fn example() -> Result<(), gristmill::Error> {
//! let mill = Mill::open("sqlite://gristmill.db").await?;
//! mill.declare::<Digest>().await?;
//! let morning = mill
//!     .schedule("morning")
//!     .cron("0 7 * * *")
//!     .zone("Europe/Athens")
//!     .missed(Missed::Skip)
//!     .puts(Digest { edition: "morning".into() });
//! let late = mill.schedule("late").every(Duration::from_secs(60)).finder("digests", find_late);
//! Scheduler::new(&mill)
//!     .schedule(morning)
//!     .schedule(late)
//!     .run(async { tokio::signal::ctrl_c().await.unwrap_or_default() })
//!     .await?;
//! # Ok(())
//! # }
//!
//! async fn find_late(finding: Finding) -> Result<(), gristmill::Error> {
//!     for edition in ["noon", "evening"] {
//!         if !finding.can_accept().await? {
//!             break; // found again at the next fire
//!         }
//!         finding.put(Digest { edition: edition.into() }).await?;
//!     }
//!     Ok(())
//! }
//! ```
//!
//! Any number of schedulers may run on one store, in one process or in many:
//! the store decides each instant of a schedule once, so there is at most one
//! task for it, and a finder runs in one process at a time.

mod by_hand;
mod declare;
mod engine;
mod finder;
mod lease;
mod scheduler;

pub use declare::NewSchedule;
pub use finder::Finding;
pub use gristmill_core::{Missed, Overlap, Rule, Schedule};
pub use scheduler::{ScheduleReport, Scheduler};

pub(crate) use by_hand::{Finders, fire};

/// Header of a schedule's task: the schedule's name.
pub const SCHEDULE_HEADER: &str = "gristmill-schedule";
/// Header of a schedule's task: the instant it is for.
pub const FIRE_HEADER: &str = "gristmill-fire";
