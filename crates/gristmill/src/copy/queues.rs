//! A copy's queues: paused in the source, declared in the target, and closed
//! there until all their tasks have come.

use gristmill_core::queue::FIRST_FREE_NUMBER;
use gristmill_core::{
    ContractAnswer, ContractChange, Declaration, Queue, QueueName, Store, StoreError,
};

use super::{COPIER, CopiedQueue, CopyError};

/// Whether an operator paused it, rather than a copy.
fn paused_by_hand(queue: &Queue) -> bool {
    queue.paused && queue.paused_by.as_deref() != Some(COPIER)
}

/// Pauses the source's queues; returns those that were not.
pub(super) async fn pause(from: &dyn Store) -> Result<Vec<QueueName>, StoreError> {
    let mut paused = Vec::new();
    for queue in from.queues().await? {
        if !queue.paused {
            from.pause_queue(&queue.name, true, COPIER).await?;
            paused.push(queue.name);
        }
    }
    Ok(paused)
}

/// Lets queues go on that were paused in vain.
pub(super) async fn resume(from: &dyn Store, paused: &[QueueName]) -> Result<(), StoreError> {
    for queue in paused {
        from.pause_queue(queue, false, COPIER).await?;
    }
    Ok(())
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
    if !target.paused {
        to.pause_queue(&source.name, true, COPIER).await?;
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
    if paused_by_hand(&target) {
        return Ok(());
    }
    match (&source.paused_by, paused_by_hand(source)) {
        (by, true) => to.pause_queue(&source.name, true, by.as_deref().unwrap_or(COPIER)).await,
        (_, false) => to.pause_queue(&source.name, false, COPIER).await,
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
