//! One step of an operation on tasks whose errors have one shape: no store knows shapes, so
//! they are looked for, and acted on by their ids.

use std::sync::Arc;

use gristmill::port::{ListRequest, Operation, OperationReport, Order, Selection};
use gristmill::{Store, StoreError, error_shape};

/// Does it to those of the next tasks that have the shape. Between the look and the act one
/// may change: then its state does not fit, or it fails anew with another error and is
/// acted on once all the same, as anything would be that an operator selected a moment ago.
pub(super) async fn step(
    store: &Arc<dyn Store>,
    step: Operation,
    shape: &str,
) -> Result<OperationReport, StoreError> {
    let Selection::Matching { filter, after } = step.selection else {
        return store.operate(step).await;
    };
    let request = ListRequest { filter, order: Order::Oldest, after, limit: step.limit };
    let page = store.list(request).await?;
    let fits = page.tasks.iter().filter(|task| {
        step.action.applies_to(task.state)
            && task.error.as_deref().is_some_and(|error| error_shape(error) == shape)
    });
    let ids: Vec<_> = fits.map(|task| task.id).collect();
    if ids.is_empty() {
        return Ok(OperationReport { answers: Vec::new(), next: page.next });
    }
    let named = Operation { selection: Selection::Ids(ids), ..step };
    let report = store.operate(named).await?;
    Ok(OperationReport { next: page.next, ..report })
}
