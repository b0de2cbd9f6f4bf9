//! The file spool store of Gristmill: one readable file a task, in folders you
//! can list.
//!
//! A task's file lies in `pending/`, `processing/`, `failed/` or `done/`: a few
//! lines that say what it is, then the payload's bytes. Every change is written
//! to `intent/` and synced before it is answered; the files follow, and are
//! rolled forward after a crash. Several processes may open the same folder:
//! they take turns under an advisory lock, and each keeps an index without
//! payloads that it brings up to date by reading on in the intent.
//!
//! The rules of claiming and settling are those of the memory store
//! ([`gristmill_core::memory::State`]); this crate writes down what they
//! change.

mod apply;
mod ask;
pub mod bare;
mod check;
mod checkpoint;
mod disk;
mod ending_text;
mod errors;
mod fact;
mod frame;
mod held;
mod ids;
mod intent;
mod keeper;
mod load;
mod lock;
mod options;
mod persist;
#[cfg(test)]
mod power_cut;
mod scan;
mod schedule_text;
mod segment;
mod snapshot;
mod spares;
mod spool;
mod store;
mod task_file;
mod touched;
mod under_way;
mod verbs;

pub use check::Finding;
pub use options::Options;
pub use store::FilesStore;
