//! A copy's queues: paused in the source, declared in the target, and closed
//! there until all their tasks have come.

use gristmill_core::queue::FIRST_FREE_NUMBER;
use gristmill_core::{
    ContractAnswer, ContractChange, CopyPause, Declaration, Queue, QueueName, Store, StoreError,
    WentAway,
};

use super::{COPIER, CopiedQueue, CopyError};

/// Who paused it, if that was not a copy.
fn paused_by_hand(queue: &Queue) -> Option<String> {
    match CopyPause::of(queue) {
        Some(CopyPause::Away { after, .. }) => after,
        Some(CopyPause::Arriving) => None,
        None => queue.paused.then(|| queue.paused_by.clone().unwrap_or_else(|| COPIER.to_owned())),
    }
}

/// The source's queues, none of which is still being copied to: a half of it
/// must not be taken for all.
pub(super) async fn sources(from: &dyn Store) -> Result<Vec<Queue>, CopyError> {
    let queues = from.queues().await?;
    match queues.iter().find(|queue| CopyPause::of(queue) == Some(CopyPause::Arriving)) {
        Some(half) => Err(CopyError::HalfCopied(half.name.clone())),
        None => Ok(queues),
    }
}

/// Pauses the source's queues, also those that an operator paused: a later copy
/// has to see that their tasks went away. Returns those it paused, as they were.
pub(super) async fn pause(from: &dyn Store) -> Result<Vec<Queue>, StoreError> {
    let mut paused = Vec::new();
    for queue in from.queues().await? {
        if CopyPause::of(&queue).is_none() {
            let away = CopyPause::Away { whole: None, after: paused_by_hand(&queue) };
            from.pause_queue(&queue.name, true, &away.to_string()).await?;
            paused.push(queue);
        }
    }
    Ok(paused)
}

/// Makes queues that were paused in vain as they were.
pub(super) async fn resume(from: &dyn Store, paused: &[Queue]) -> Result<(), StoreError> {
    for queue in paused {
        let by = queue.paused_by.as_deref().unwrap_or(COPIER);
        from.pause_queue(&queue.name, queue.paused, by).await?;
    }
    Ok(())
}

/// Notes on the source's queue what went away, or that it is not certain.
pub(super) async fn went(
    from: &dyn Store,
    source: &Queue,
    whole: Option<WentAway>,
) -> Result<(), StoreError> {
    let away = CopyPause::Away { whole, after: paused_by_hand(source) };
    from.pause_queue(&source.name, true, &away.to_string()).await
}

/// Makes the source's queue known in the target and closes it for now. What
/// the target knows already is left as it is, and told.
pub(super) async fn declare(to: &dyn Store, source: &Queue) -> Result<CopiedQueue, CopyError> {
    let known = find(to, &source.name).await?;
    if known.is_none() {
        // With the first declaration at once, so that no half of it can stand.
        let number = (source.number < FIRST_FREE_NUMBER).then_some(source.number);
        let mut declarations = source.declared.clone();
        if declarations.is_empty() {
            declarations.push((gristmill_core::Origin::Code, Default::default()));
        }
        for (origin, settings) in declarations {
            let name = source.name.clone();
            to.declare_queue(Declaration { name, number, settings, origin }).await?;
        }
    }
    let target = found(to, &source.name).await?;
    if paused_by_hand(&target).is_none() || CopyPause::of(&target).is_some() {
        to.pause_queue(&source.name, true, &CopyPause::Arriving.to_string()).await?;
    }
    if let (Some(change), None) = (&source.overridden, &target.overridden) {
        to.override_queue(&source.name, change.settings.clone(), &change.by).await?;
    }
    contract(to, source, &target).await?;
    let target = found(to, &source.name).await?;
    let differs = source.settings.differences(&target.settings).into_iter();
    Ok(CopiedQueue {
        queue: source.name.clone(),
        imported: 0,
        already: 0,
        duplicates: Vec::new(),
        refused: Vec::new(),
        differs: differs.map(|(name, there, here)| (name.to_owned(), there, here)).collect(),
    })
}

async fn contract(to: &dyn Store, source: &Queue, target: &Queue) -> Result<(), CopyError> {
    let Some(text) = &source.contract else {
        return Ok(());
    };
    if target.contract.as_ref() == Some(text) {
        return Ok(());
    }
    let change = ContractChange {
        queue: source.name.clone(),
        text: text.clone(),
        replaces: None,
        breaking: false,
    };
    match to.register_contract(change).await? {
        ContractAnswer::Registered => Ok(()),
        ContractAnswer::Changed | ContractAnswer::TasksStand(_) => {
            Err(CopyError::OtherContract(source.name.clone()))
        }
    }
}

/// All tasks have come: the target's queue is as the source's was before the
/// copy.
pub(super) async fn open(to: &dyn Store, source: &Queue) -> Result<(), StoreError> {
    let target = found(to, &source.name).await?;
    if CopyPause::of(&target).is_none() {
        return Ok(());
    }
    match paused_by_hand(source) {
        Some(by) => to.pause_queue(&source.name, true, &by).await,
        None => to.pause_queue(&source.name, false, COPIER).await,
    }
}

async fn find(store: &dyn Store, name: &QueueName) -> Result<Option<Queue>, StoreError> {
    Ok(store.queues().await?.into_iter().find(|queue| queue.name == *name))
}

async fn found(store: &dyn Store, name: &QueueName) -> Result<Queue, StoreError> {
    find(store, name)
        .await?
        .ok_or_else(|| StoreError::UnknownQueue { name: name.to_string(), suggestion: None })
}
