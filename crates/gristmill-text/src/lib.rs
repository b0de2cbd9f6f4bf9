//! What stores keep as text: settings, histories, workers' reports, assignments
//! and schedules as JSON; and the text of their statements, by name. What is kept as a
//! whole, whoever asks for it, is read and changed here for all of them ([`ControlPlane`]).
//!
//! The model knows no serialisation, so small mirrors of it stand here, once for
//! every store, and a renamed field of the model cannot silently change what is
//! stored. Whatever is written here stands in files and tables that people have:
//! a form that was written once is read for ever, and the tests hold each to the
//! byte.
//!
//! For our own crates alone; an application has no use for it.

mod assignment;
mod clock;
mod control;
mod progress;
mod queue;
mod schedule;
pub mod settings;
mod statement;
mod stored;
mod task;
mod task_settings;
mod worker;

pub use clock::LastSeenText;
pub use control::{
    ASSIGNMENTS, ControlPlane, ROLES, WORKERS, assignment_for, assignment_of, check_document,
    report_of, worker_of,
};
pub use progress::{ProgressText, progress, progress_by_task, progress_text};
pub use queue::{StoredQueue, origin, queue_texts};
pub use schedule::{OptionsText, ScheduleText, rule, rule_parts};
pub use statement::{position, statement};
pub use stored::{corrupt, micros, parse, queue_name, text, worker_id};
pub use task::{Instant, Readable, headers, headers_text, history, history_text};
pub use task_settings::{
    task_settings, task_settings_read, task_settings_text, task_settings_value,
};
