//! The queue part: what stands on the three queues, who puts it there, what a
//! worker does with it, and how rows that got stuck begin anew.

use std::sync::Arc;
use std::time::Duration;

use gristmill::prelude::*;
use gristmill::recovery::Recovery;
use gristmill::schedule::{Finding, NewSchedule};

use crate::{app::App, config::Serving, deck::Deck, stage::Stage, stuck::Rows};
use crate::{briefing::RunBriefing, error::Result};
use crate::{item::EnrichItem, source::FetchSource};

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

/// Declares a stage's queue, with its bound. A failed task is kept for a week, for a
/// person to look at.
pub async fn declare<S: Stage + TaskType>(mill: &Mill, serving: &Serving) -> Result<()> {
    let week = Duration::from_secs(7 * 24 * 3_600);
    Ok(mill.declare::<S>().capacity(serving.queue_capacity).keep_failed(week).await.map(drop)?)
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
    // A full look is followed by another: there may be more.
    let mut full = true;
    while full && finding.can_accept().await? {
        let due = deck.transact(move |db, now| S::due(db, now, limit)).await?;
        full = due.len() >= limit;
        tracing::debug!(queue = S::QUEUE, due = due.len(), "a look");
        for task in due {
            if !finding.can_accept().await? {
                return Ok(());
            }
            put(&deck, &finding, task).await?;
        }
    }
    Ok(())
}

/// Puts a row's task and marks the row.
async fn put<S: Stage + TaskType>(deck: &Arc<Deck>, finding: &Finding, task: S) -> Result<()> {
    let row = task.row();
    if finding.mill().sqlite().is_some() {
        // One file: the row is queued if and only if its task stands.
        let put = finding.put(task);
        let both =
            deck.transact(move |db, now| Ok((put.within(db).now()?, S::FLOW.queue(db, row, now)?)));
        return both.await.map(drop);
    }
    // Marked first: a worker may have the task before this goes on. What a dead
    // process leaves marked, recovery finds.
    deck.transact(move |db, now| Ok(S::FLOW.queue(db, row, now)?)).await?;
    let Err(refused) = finding.put(task).await else { return Ok(()) };
    deck.transact(move |db, now| Ok(S::FLOW.unqueue(db, row, now)?)).await?;
    Err(refused.into())
}

/// A stage's worker, with as many processors as it is to have.
pub fn worker<S: Stage + TaskType>(app: &App, serving: &Serving) -> Worker<Arc<Deck>> {
    let (worker, deck) = (Worker::new(&app.mill).state(app.deck.clone()), app.deck.clone());
    let worker = worker.processors(serving.worker_count).stop_within(app.config.stop_within);
    worker.batch(1).handle(handle::<S>).on_failed(move |failed| {
        deck.give_up(S::FLOW, failed.task.key.as_deref(), failed.error);
    })
}

/// One attempt. The row's status is committed before the work, its final one
/// together with the task's end.
async fn handle<S: Stage>(task: S, deck: State<Arc<Deck>>, context: Context) -> Result<Outcome> {
    let (State(deck), task) = (deck, Arc::new(task));
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
    let in_file = context.mill().sqlite().is_some();
    let finished = deck.transact(move |db, now| {
        last.finish(db, &begun, &found, now)?;
        Ok(in_file.then(|| context.complete_in(db).now()).transpose()?)
    });
    drop(finished.await?);
    task.follow(&deck).await;
    Ok(Outcome::Done)
}
