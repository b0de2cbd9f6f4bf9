//! Small records: a worker says how it stands and hears the manager's word; who looks reads
//! of all workers. Everything else that is kept like this is an admin's, and some of it
//! nobody's.

use gristmill::StoreError;
use gristmill::port::{Document, DocumentAnswer, DocumentChange};
use gristmill_remote::wire::verbs;
use gristmill_text::{ASSIGNMENTS, WORKERS, assignment_for, report_of, worker_of};

use super::{answered, asked, done, failed};
use crate::access::{Caller, Scope, TOKENS};
use crate::audit::LOG;
use crate::call::Call;
use crate::problem::{Answer, FORBIDDEN, Problem};

pub(crate) async fn document(call: Call) -> Answer {
    let (service, caller, asked) = asked::<verbs::OneDocument>(call).await?;
    if asked.kind != ASSIGNMENTS {
        expect_open(&caller, &asked.kind)?;
    }
    let found = service.store.document(&asked.kind, &asked.name).await;
    let told = match found.map_err(|error| failed(&caller, error))? {
        // Of other queues they hear nothing.
        Some(word) if caller.is_limited() => {
            let theirs = assignment_for(word, |queue| caller.reaches(queue));
            Some(theirs.map_err(|error| failed(&caller, error))?)
        }
        told => told,
    };
    answered::<verbs::OneDocument>(&service, &told)
}

pub(crate) async fn documents(call: Call) -> Answer {
    let (service, caller, asked) = asked::<verbs::Documents>(call).await?;
    if asked.kind != WORKERS {
        expect_open(&caller, &asked.kind)?;
    }
    let found = service.store.documents(asked).await.map_err(|error| failed(&caller, error))?;
    answered::<verbs::Documents>(&service, &found)
}

pub(crate) async fn save_document(call: Call) -> Answer {
    let (service, caller, change) = asked::<verbs::SaveDocument>(call).await?;
    if change.kind == WORKERS && change.beside.is_none() {
        expect_own(&caller, &change)?;
    } else if change.kind == LOG {
        let why = "the audit log is written by the service itself";
        return Err(Problem::new(&FORBIDDEN, why).at("kind"));
    } else {
        expect_open(&caller, &change.kind)?;
    }
    let (store, by) = (service.store.clone(), caller.clone());
    let saved = done(&caller, async move {
        if change.kind == WORKERS && by.is_limited() {
            let known = store.document(&change.kind, &change.name).await?;
            // As if there were no such worker.
            if known.is_some_and(|known| !is_theirs(&by, &known)) {
                return Ok(DocumentAnswer::Changed { current: None });
            }
        }
        store.save_document(change).await
    });
    answered::<verbs::SaveDocument>(&service, &saved.await?)
}

/// Tokens are made where the store is: one that was stolen must not make others, which
/// would outlive it. Whatever else the system keeps is an admin's.
fn expect_open(caller: &Caller, kind: &str) -> Answer<()> {
    caller.expect_whole(Scope::Admin)?;
    if kind != TOKENS {
        return Ok(());
    }
    let why = "tokens are made, listed and revoked where the store is, not through its service";
    Err(Problem::new(&FORBIDDEN, why).at("kind"))
}

/// A worker's own word is of queues that are the caller's, and under the worker's own name.
fn expect_own(caller: &Caller, change: &DocumentChange) -> Answer<()> {
    let Some(body) = &change.body else { return Ok(()) };
    let unread = |error: StoreError| StoreError::invalid(error.whole().to_string());
    let report = report_of(body).map_err(|error| failed(caller, unread(error)))?;
    if report.id.as_str() != change.name {
        let why = format!("a report of {} is not kept under another name", report.id);
        return Err(failed(caller, StoreError::invalid(why)));
    }
    let serving = report.processors.iter().filter_map(|processor| processor.queue.as_ref());
    let handled = report.handled.iter().map(|(queue, _)| queue);
    for queue in report.queues.iter().chain(serving).chain(handled) {
        caller.expect_for(Scope::Work, queue)?;
    }
    Ok(())
}

fn is_theirs(caller: &Caller, known: &Document) -> bool {
    worker_of(known).is_ok_and(|view| view.report.queues.iter().all(|queue| caller.reaches(queue)))
}
