//! The queue part: what stands on the three queues, who puts it there, what a
//! worker does with it, and how rows that got stuck begin anew.

use std::sync::Arc;
use std::time::Duration;

use gristmill::recovery::Recovery;
use gristmill::schedule::{Finding, NewSchedule};
use gristmill::worker::{Context, FailedTask, Outcome, Worker, fail};
use gristmill::{Mill, TaskType};

use crate::app::App;
use crate::briefing::RunBriefing;
use crate::config::Serving;
use crate::deck::Deck;
use crate::error::Result;
use crate::item::EnrichItem;
use crate::source::FetchSource;
use crate::stage::Stage;
use crate::stuck::Rows;

/// Work on a row is a task, and its key is the row.
macro_rules! task {
    ($stage:ty, $queue:literal) => {
        impl TaskType for $stage {
            const QUEUE: &'static str = $queue;
            fn key(&self) -> Option<String> {
                Some(self.row().to_string())
            }
        }
    };
}
task!(FetchSource, "fetch");
task!(EnrichItem, "processing");
task!(RunBriefing, "briefing");

/// How long a failed task is kept for a person to look at.
const KEEP_FAILED: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Declares a stage's queue, with its bound.
pub async fn declare<S: Stage + TaskType>(mill: &Mill, serving: &Serving) -> Result<()> {
    let queue = mill.declare::<S>().capacity(serving.queue_capacity);
    queue.keep_failed(KEEP_FAILED).await?;
    Ok(())
}

/// A stage's scheduler, and its recovery.
pub fn schedules<S: Stage + TaskType>(app: &App, serving: &Serving) -> [NewSchedule; 2] {
    let (deck, limit) = (app.deck.clone(), serving.batch_size);
    let finder = app.mill.schedule(&format!("{}-scheduler", S::QUEUE)).every(serving.interval);
    let rows = Rows { deck: app.deck.clone(), flow: S::FLOW };
    let recovery = Recovery::new(&app.mill, S::QUEUE, rows)
        .every(app.config.recovery_interval)
        .older_than(app.config.stuck_threshold);
    let finder = finder.finder(S::QUEUE, move |finding| find::<S>(deck.clone(), finding, limit));
    [finder, recovery.schedule()]
}

/// Puts what is due while the queue has room; the rest stays as it is.
async fn find<S: Stage + TaskType>(deck: Arc<Deck>, finding: Finding, limit: usize) -> Result<()> {
    if !finding.can_accept().await? {
        return Ok(());
    }
    for task in deck.transact(move |db, now| S::due(db, now, limit)).await? {
        if !finding.can_accept().await? || !put(&deck, &finding, task).await? {
            break;
        }
    }
    Ok(())
}

/// Puts a row's task and marks the row. False when there was no room.
async fn put<S: Stage + TaskType>(deck: &Arc<Deck>, finding: &Finding, task: S) -> Result<bool> {
    let row = task.row();
    if finding.mill().sqlite().is_some() {
        // One file: the row is queued if and only if its task stands.
        let finding = finding.clone();
        let put = deck.transact(move |db, now| {
            let put = match finding.put(task).within(db).now() {
                Ok(put) => put,
                Err(error) if error.is_full() => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            S::FLOW.queue(db, row, now)?;
            Ok(Some(put))
        });
        return Ok(put.await?.is_some());
    }
    // Marked first: a worker may have the task before this goes on. What a dead
    // process leaves marked, recovery finds.
    deck.transact(move |db, now| Ok(S::FLOW.queue(db, row, now)?)).await?;
    match finding.put(task).await {
        Ok(_) => Ok(true),
        Err(error) => {
            deck.transact(move |db, now| Ok(S::FLOW.unqueue(db, row, now)?)).await?;
            if error.is_full() { Ok(false) } else { Err(error.into()) }
        }
    }
}

/// A stage's worker, with as many processors as it is to have.
pub fn worker<S: Stage + TaskType>(app: &App, serving: &Serving) -> Worker {
    let (deck, in_file) = (app.deck.clone(), app.mill.sqlite().is_some());
    let failing = app.deck.clone();
    Worker::new(&app.mill)
        .processors(serving.worker_count)
        .batch(1)
        .stop_within(app.config.stop_within)
        .handle(move |task: S, context| handle(deck.clone(), in_file, task, context))
        .on_failed(move |task: FailedTask<'_>| {
            failing.give_up(S::FLOW, task.task.key.as_deref(), task.error)
        })
}

/// One attempt. The row's status is committed before the work, its final one
/// together with the task's end.
async fn handle<S: Stage>(
    deck: Arc<Deck>,
    in_file: bool,
    task: S,
    context: Context,
) -> Result<Outcome> {
    let task = Arc::new(task);
    let (first, last) = (task.clone(), task.clone());
    let Some(begun) = deck.transact(move |db, now| first.begin(db, now)).await? else {
        return Ok(Outcome::Done);
    };
    let found = match task.work(&deck, &begun).await {
        Ok(found) => found,
        Err(error) => {
            let (row, why) = (task.row(), error.to_string());
            deck.transact(move |db, now| Ok(S::FLOW.fail(db, row, &why, now)?)).await?;
            // Kept with its error until somebody retries or discards it.
            return Ok(fail(error));
        }
    };
    let finished = deck.transact(move |db, now| {
        last.finish(db, &begun, &found, now)?;
        Ok(if in_file { Some(context.complete_in(db).now()?) } else { None })
    });
    drop(finished.await?);
    task.follow(&deck).await;
    Ok(Outcome::Done)
}
