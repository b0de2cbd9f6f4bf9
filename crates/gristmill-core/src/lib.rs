//! The model of Gristmill: what a task is, how it moves, and the port that
//! every store implements.
//!
//! Data flows one way: put → store → claim → handler → settle. This crate
//! holds the nouns of that sentence, the pure functions that decide
//! ([`policy`]), the port that records ([`Store`]), and the simplest store
//! ([`memory::MemoryStore`]), which is also the executable specification the
//! other stores are compared with.
//!
//! It knows no SQL, no wire format and no runtime beyond timers and signals.

pub mod assignment;
pub mod bell;
pub mod capability;
pub mod checkpoint;
pub mod claim;
pub mod clock;
pub mod copied;
pub mod crowd;
mod delegate;
pub mod diagnosis;
pub mod document;
pub mod ending;
pub mod error;
pub mod filter;
pub mod import;
pub mod limits;
mod lock_holder;
pub mod memory;
pub mod name;
pub mod observed;
pub mod operation;
pub mod payload;
pub mod policy;
pub mod progress;
pub mod put;
pub mod queue;
pub mod schedule;
mod setting_values;
pub mod settings;
pub mod settlement;
pub mod stats;
pub mod store;
pub mod sweep;
pub mod task;
pub mod task_settings;
pub mod timestamp;
pub mod token;
pub mod turnstile;
pub mod wake;
pub mod watchdog;
mod why;
pub mod worker;

pub use assignment::{Assignment, Leadership, Published, Share};
pub use bell::{Bell, Listening};
pub use capability::Capabilities;
pub use checkpoint::{Checkpoint, CheckpointAnswer, CheckpointMark, Kept};
pub use claim::{Claim, ClaimRequest, ClaimedTask};
pub use clock::{Boot, Clock, ManualClock, SystemClock};
pub use copied::{COPIER, CopyPause, WentAway};
pub use crowd::Crowd;
pub use diagnosis::Diagnosis;
pub use document::{Beside, Document, DocumentAnswer, DocumentChange, DocumentList, Expects};
pub use ending::Ending;
pub use error::{Result, StoreError};
pub use filter::{ListRequest, Order, Page, TaskFilter};
pub use import::{Import, ImportAnswer, ImportTask};
pub use limits::Limits;
pub use lock_holder::lock_holder;
pub use name::{NameError, QueueName, ScheduleName, WorkerId};
pub use operation::{Action, Operation, OperationAnswer, OperationReport, Selection};
pub use payload::{Encoding, Payload};
pub use progress::{Progress, ProgressView, TaskProgress};
pub use put::{FollowUp, NewTask, PutAnswer, PutReport, PutRequest, Refusal, Start};
pub use queue::{ContractAnswer, ContractChange, Declaration, Declared, Origin, Override, Queue};
pub use schedule::{
    Fire, FireAnswer, Missed, Overlap, Rule, Schedule, ScheduleDeclaration, TaskOptions,
};
pub use settings::{
    Backoff, Binding, Claims, Durability, Fair, OnDuplicate, Per, Rate, Settings, SettingsError,
    SettingsPatch, Unique,
};
pub use settlement::{Became, ExtendAnswer, Extension, Outcome, SettleAnswer, Settlement, When};
pub use stats::{Counters, Minute, QueueStats, Waits};
pub use store::{KeyStanding, StandingPlace, Store};
pub use sweep::SweepReport;
pub use task::{Attempt, AttemptEnd, Headers, LeaseView, Note, State, Task, TaskId};
pub use task_settings::TaskSettings;
pub use timestamp::Timestamp;
pub use token::Token;
pub use turnstile::Turnstile;
pub use wake::{WakeMark, WakeSignal};
pub use watchdog::{Signs, Watchdog};
pub use why::Why;
pub use worker::{HandlerStats, ProcessorReport, WorkerReport, WorkerView};
