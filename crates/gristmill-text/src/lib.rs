//! What stores keep as text: settings, histories, workers' reports, assignments
//! and schedules as JSON; and the text of their statements, by name.
//!
//! The model knows no serialisation, so small mirrors of it stand here, once for
//! every store, and a renamed field of the model cannot silently change what is
//! stored. Whatever is written here stands in files and tables that people have:
//! a form that was written once is read for ever, and the tests hold each to the
//! byte.
//!
//! For stores alone; an application has no use for it.

mod assignment;
mod clock;
mod progress;
mod queue;
mod schedule;
pub mod settings;
mod statement;
mod stored;
mod task;
mod task_settings;
mod worker;

pub use assignment::{shares, shares_text};
pub use clock::LastSeenText;
pub use progress::{ProgressText, progress, progress_by_task, progress_text};
pub use queue::{StoredQueue, origin, queue_texts};
pub use schedule::{OptionsText, ScheduleText, rule, rule_parts};
pub use statement::{position, statement};
pub use stored::{corrupt, micros, parse, queue_name, text, worker_id};
pub use task::{Instant, Readable, headers, headers_text, history, history_text};
pub use task_settings::{
    task_settings, task_settings_read, task_settings_text, task_settings_value,
};
pub use worker::{NamedProcessor, ProcessorRow, ProcessorText, WorkerText};
