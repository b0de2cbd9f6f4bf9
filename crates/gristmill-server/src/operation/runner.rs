//! Who carries operations out: of all services of a store one at a time.

use std::time::{Duration, Instant};

use gristmill::StoreError;
use gristmill::port::{Document, DocumentAnswer, DocumentChange, Expects, WorkerId};
use gristmill_text::ControlPlane;

use super::record::{OperationState, Record};
use super::{ENDED, OPEN, Operations, shaped};

/// The role of who carries them out.
const ROLE: &str = "operations";
/// How long it holds unless it is renewed: after a crash another service goes on then.
const HOLD: Duration = Duration::from_secs(5);
/// How often it is looked whether there is one.
const LOOK: Duration = Duration::from_secs(1);
/// Most tasks of one step.
const STEP: usize = 500;
/// How long ended ones are kept unless said otherwise, and how many at most.
pub(crate) const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
const KEPT_MAX: usize = 1_000;

/// Carries operations out until it is dropped.
pub(crate) async fn run(operations: Operations, who: WorkerId, kept: Duration) {
    loop {
        tokio::select! {
            () = operations.begun.notified() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
        if let Err(error) = look(&operations, &who, kept).await {
            tracing::debug!(target: "gristmill::server", %error, "operations wait for the store");
        }
    }
}

/// Gives the role up, if it is held.
pub(crate) async fn give_up(operations: &Operations, who: &WorkerId) {
    // It runs out by itself otherwise.
    let _ = operations.store.resign(ROLE, who).await;
}

/// Carries out what there is.
async fn look(operations: &Operations, who: &WorkerId, kept: Duration) -> Result<(), StoreError> {
    while let Some((document, record)) = operations.read(OPEN).await?.into_iter().next() {
        if !operations.store.campaign(ROLE, who, HOLD).await?.mine {
            return Ok(());
        }
        if operations.store.document(ENDED, &document.name).await?.is_some() {
            // Whoever ended it did not come to take it off the list.
            operations.remove(&document).await?;
            continue;
        }
        carry_out(operations, who, document, record).await?;
        prune(operations, kept).await?;
    }
    Ok(())
}

/// Goes on with one operation until it is over, or somebody else's.
async fn carry_out(
    operations: &Operations,
    who: &WorkerId,
    mut document: Document,
    mut record: Record,
) -> Result<(), StoreError> {
    let mut renewed = Instant::now();
    loop {
        if record.stopped_by.is_some() {
            return end(operations, &document, record, OperationState::Stopped).await;
        }
        if renewed.elapsed() > HOLD / 3 {
            if !operations.store.campaign(ROLE, who, HOLD).await?.mine {
                return Ok(());
            }
            renewed = Instant::now();
        }
        let limit = STEP.min(operations.store.limits().page);
        let done = match record.step(&document, limit) {
            Ok(step) => match record.shape() {
                Some(shape) => shaped::step(&operations.store, step, shape).await,
                None => operations.store.operate(step).await,
            },
            Err(error) => Err(error),
        };
        let report = match done {
            Ok(report) => report,
            Err(error) if is_final(&error) => {
                record.why = Some(error.to_string());
                return end(operations, &document, record, OperationState::Failed).await;
            }
            Err(error) => return Err(error),
        };
        record.count(&report.answers);
        record.after = report.next.map(|id| id.0);
        if report.next.is_none() {
            return end(operations, &document, record, OperationState::Done).await;
        }
        document = match operations.save(&document, &record).await? {
            Some(saved) => saved,
            // Somebody had it stop, or took it over: what they wrote counts.
            None => match operations.store.document(OPEN, &document.name).await? {
                Some(changed) => {
                    let theirs = Record::read(&changed)?;
                    if theirs.after != record.after && theirs.stopped_by.is_none() {
                        return Ok(());
                    }
                    record.stopped_by = theirs.stopped_by;
                    changed
                }
                None => return Ok(()),
            },
        };
    }
}

/// Puts it with those that are over, then takes it off the list: killed in between, it
/// stands in both, and the next look takes it off.
async fn end(
    operations: &Operations,
    document: &Document,
    record: Record,
    how: OperationState,
) -> Result<(), StoreError> {
    let record = record.over(how, document);
    let body = Some(record.text()?);
    let change = DocumentChange::new(ENDED, &document.name, Expects::Absent, body);
    let answer = operations.store.save_document(change).await?;
    if matches!(answer, DocumentAnswer::Saved(_)) {
        let view = record.view(document);
        tracing::info!(
            target: "gristmill::server",
            id = view.id, action = view.action, moved = view.moved, state = ?view.state,
            "an operation ended"
        );
    }
    // Whoever changed it last has it stop, which it did.
    if let Some(last) = operations.store.document(OPEN, &document.name).await? {
        operations.remove(&last).await?;
    }
    Ok(())
}

/// Forgets those that ended long ago, and the oldest of too many.
async fn prune(operations: &Operations, kept: Duration) -> Result<(), StoreError> {
    let ended = operations.read(ENDED).await?;
    let too_many = ended.len().saturating_sub(KEPT_MAX.saturating_sub(1));
    // By the store's clock, as all of them were written: another one may be years ahead.
    let Some(now) = ended.iter().map(|(document, _)| document.changed_at).max() else {
        return Ok(());
    };
    let old = now.before(kept);
    let is_old = |document: &Document| document.changed_at < old;
    for (at, (document, _)) in ended.iter().enumerate() {
        if at < too_many || is_old(document) {
            operations.remove(document).await?;
        }
    }
    Ok(())
}

/// Whether trying again cannot help.
const fn is_final(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Invalid(_)
            | StoreError::UnknownQueue { .. }
            | StoreError::NotSupported(_)
            | StoreError::Corrupt(_)
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gristmill::Mill;
    use gristmill::port::{Action, TaskFilter};
    use gristmill_core::ManualClock;
    use gristmill_core::memory::{MemoryOptions, MemoryStore};

    use super::*;

    #[tokio::test]
    async fn those_that_ended_are_forgotten_in_their_time() {
        let day = Duration::from_secs(24 * 3600);
        let clock =
            Arc::new(ManualClock::at(gristmill::Timestamp::from_micros(1_700_000_000_000_000)));
        let options = MemoryOptions { clock: clock.clone(), ..MemoryOptions::default() };
        let operations = Operations::of(&Mill::over(Arc::new(MemoryStore::new(options))));
        let who = WorkerId::new("w").expect("a name");
        let mut left = Vec::new();
        // One every second day, of which those of the last three days are kept.
        for _ in 0..4 {
            let filter = TaskFilter::default();
            let begun = operations.begin(Action::Retry, &filter, None, "ada".to_owned(), None);
            begun.await.expect("begun");
            look(&operations, &who, 3 * day).await.expect("carried out");
            left.push(operations.list().await.expect("listed").len());
            clock.advance(2 * day);
        }
        assert_eq!(left, [1, 2, 2, 2]);
    }
}
