//! Copying what stands in one store to another: `gristmill copy`.
//!
//! The source is paused first and stays so, with all its tasks: resuming it
//! would run them twice. Every task is imported under a mark made of its store,
//! number and time of birth, so a copy that was killed is simply repeated. On
//! the way back what the source kept is taken out first (`returned.rs`).
//! What the port does not show is not copied: counts of the past, callers' ids,
//! done tasks that are kept, the fires a schedule has not decided yet.

mod apart;
mod queues;
mod returned;
mod schedules;
mod tasks;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use gristmill_core::COPIER;
use gristmill_core::{QueueName, Refusal, Store, StoreError, TaskId};

use crate::Mill;
use apart::Apart;

/// How long a copy waits for running tasks unless set.
const WAIT: Duration = Duration::from_secs(60);
/// How often it looks whether they have ended.
const LOOK: Duration = Duration::from_millis(100);

/// What was copied, by queue, and what was not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CopyReport {
    /// Each queue, in the order of its number in the source.
    pub queues: Vec<CopiedQueue>,
    /// Schedules that stand in the target now.
    pub schedules: u64,
    /// Schedules with fires that the source had not decided; they are not made
    /// up for in the target.
    pub undecided: Vec<String>,
}

/// What became of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopiedQueue {
    /// The queue.
    pub queue: QueueName,
    /// Tasks that are new in the target.
    pub imported: u64,
    /// Tasks that an earlier copy brought.
    pub already: u64,
    /// Tasks whose key stands in the target: left in the source.
    pub duplicates: Vec<TaskId>,
    /// Tasks the target cannot take: left in the source.
    pub refused: Vec<(TaskId, Refusal)>,
    /// The target knew the queue, and these settings differ: name, there, here.
    pub differs: Vec<(String, String, String)>,
}

impl CopyReport {
    /// Tasks that are new in the target.
    #[must_use]
    pub fn imported(&self) -> u64 {
        self.queues.iter().map(|queue| queue.imported).sum()
    }

    /// Tasks that an earlier copy brought.
    #[must_use]
    pub fn already(&self) -> u64 {
        self.queues.iter().map(|queue| queue.already).sum()
    }

    /// Tasks that stand only in the source.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.queues.iter().map(|q| (q.duplicates.len() + q.refused.len()) as u64).sum()
    }
}

/// How far a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CopyProgress {
    /// Tasks looked at so far.
    pub tasks: u64,
    /// Tasks that stood when it began.
    pub total: u64,
}

/// Why a copy did not end well. Whatever it had copied stays copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// Both are one store.
    #[error("the source and the target are the same store")]
    SameStore,
    /// Somebody copies from or to one of them now.
    #[error("another copy is using the {0}: wait until it has ended")]
    AnotherCopy(&'static str),
    /// Tasks ran on for longer than the copy would wait. Nothing was copied.
    #[error(
        "{tasks} tasks are still processing ({queues}): let the workers finish or stop them, then \
         repeat the copy; nothing was copied, and the source goes on as before"
    )]
    StillProcessing {
        /// How many.
        tasks: u64,
        /// In which queues, in words.
        queues: String,
    },
    /// The target has another contract for the queue.
    #[error("queue '{0}' has another contract in the target: standing tasks may not fit it")]
    OtherContract(QueueName),
    /// A copy into the source did not end.
    #[error(
        "queue '{0}' of the source has not all its tasks: repeat the copy that brings them, then \
         this one"
    )]
    HalfCopied(QueueName),
    /// The target's queue was copied from before, and some of its tasks may
    /// stand nowhere else. Nothing was changed.
    #[error(
        "queue '{0}' of the target was copied to another store and keeps tasks here, some of which \
         may stand nowhere else: repeat the copy that took them away, or cancel and discard what \
         is not needed, then repeat this one; nothing was changed"
    )]
    NotAllAway(QueueName),
    /// One of the stores could not answer.
    #[error(fmt = stopped)]
    Store(#[from] StoreError),
}

/// With its cause where that is asked for, as every error of this crate.
fn stopped(cause: &StoreError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if f.alternate() {
        write!(f, "{cause:#}; ")?;
    }
    f.write_str("the source stays paused, and repeating the copy goes on where it ended")
}

/// A copy: say more, then [`Copy::run`].
#[must_use = "a copy happens when it is run"]
pub struct Copy<'a> {
    from: Arc<dyn Store>,
    to: Arc<dyn Store>,
    wait: Duration,
    progress: Option<Box<dyn FnMut(CopyProgress) + Send + 'a>>,
}

impl fmt::Debug for Copy<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Copy(waits for {:?})", self.wait)
    }
}

impl Mill {
    /// Copies what stands here to another store: queues with their settings,
    /// pending and failed tasks, schedules.
    pub fn copy_to<'a>(&self, target: &Mill) -> Copy<'a> {
        Copy { from: self.store(), to: target.store(), wait: WAIT, progress: None }
    }
}

impl<'a> Copy<'a> {
    /// How long to wait for tasks that are processing.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Called after each step.
    pub fn progress(mut self, watch: impl FnMut(CopyProgress) + Send + 'a) -> Self {
        self.progress = Some(Box::new(watch));
        self
    }

    /// Pauses the source, waits for what runs, and copies.
    ///
    /// # Errors
    /// When both are one store, tasks go on running, or a store fails.
    pub async fn run(mut self) -> Result<CopyReport, CopyError> {
        let apart = Apart::ensure(self.from.clone(), self.to.clone()).await?;
        let copied = self.copy(&apart).await;
        apart.end().await;
        copied
    }

    async fn copy(&mut self, apart: &Apart) -> Result<CopyReport, CopyError> {
        let sources = queues::sources(self.from.as_ref()).await?;
        let returned = returned::look(self.to.as_ref(), &sources).await?;
        let paused = queues::pause(self.from.as_ref()).await?;
        if let Err(error) = rest(self.from.as_ref(), self.wait, apart).await {
            // Nothing was copied: the source is as it was.
            queues::resume(self.from.as_ref(), &paused).await?;
            return Err(error);
        }
        // Not before: a schedule that is resumed has missed what came between.
        schedules::pause(self.from.as_ref()).await?;
        for queue in &returned {
            queue.empty(self.to.as_ref()).await?;
        }
        let origin = apart::origin(self.from.as_ref()).await?;
        let sources = self.from.queues().await?;
        let mut report = CopyReport::default();
        for queue in &sources {
            report.queues.push(queues::declare(self.to.as_ref(), queue).await?);
        }
        let standing: BTreeMap<_, _> =
            self.from.stats().await?.into_iter().map(|s| (s.queue.clone(), s.total())).collect();
        let mut progress = CopyProgress { tasks: 0, total: standing.values().sum() };
        for (copied, source) in report.queues.iter_mut().zip(&sources) {
            let (from, to) = (self.from.as_ref(), self.to.as_ref());
            let mut tasks = tasks::Tasks::new(from, to, &origin, copied);
            while let Some(step) = tasks.step().await? {
                apart.renew().await?;
                progress.tasks += step;
                // Producers may go on putting into the source.
                progress.total = progress.total.max(progress.tasks);
                if let Some(watch) = &mut self.progress {
                    watch(progress);
                }
            }
            queues::went(from, source, tasks.went()).await?;
        }
        (report.schedules, report.undecided) =
            schedules::copy(self.from.as_ref(), self.to.as_ref()).await?;
        for queue in &sources {
            queues::open(self.to.as_ref(), queue).await?;
        }
        Ok(report)
    }
}

/// Waits until nothing in the source is processing.
async fn rest(from: &dyn Store, wait: Duration, apart: &Apart) -> Result<(), CopyError> {
    let since = Instant::now();
    loop {
        from.sweep().await?;
        let running: Vec<_> =
            from.stats().await?.into_iter().filter(|s| s.processing > 0).collect();
        if running.is_empty() {
            return Ok(());
        }
        if since.elapsed() >= wait {
            let named = running.iter().map(|s| format!("{} in '{}'", s.processing, s.queue));
            return Err(CopyError::StillProcessing {
                tasks: running.iter().map(|s| s.processing).sum(),
                queues: named.collect::<Vec<_>>().join(", "),
            });
        }
        apart.renew().await?;
        tokio::time::sleep(LOOK).await;
    }
}
