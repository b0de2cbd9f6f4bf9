//! Nothing acknowledged is lost, nothing that ended comes back, and nothing stands
//! that nobody put.

use std::collections::{HashMap, HashSet};

use super::super::case::{Case, Effect, Life};
use super::super::event::{PutSaid, Went};
use super::super::verdict::Found;

pub(super) fn check(case: &Case<'_>, found: &mut Found<'_>) {
    for (task, life) in &case.lives {
        lost(case, found, *task, life);
        came_back(case, found, *task, life);
        failed(case, found, *task, life);
    }
    strangers(case, found);
    refused(case, found);
}

/// The queue of a task, as far as anybody knows.
fn queue_of<'a>(case: &'a Case<'_>, task: i64, life: &Life) -> &'a str {
    let taken = life.takes.first().map(|take| case.takes[*take].queue.as_str());
    let stands = || case.stands.get(&task).map(|task| task.queue.as_str());
    let put = || case.put_of(task).map(|put| put.queue.as_str());
    taken.or_else(stands).or_else(put).unwrap_or_default()
}

fn lost(case: &Case<'_>, found: &mut Found<'_>, task: i64, life: &Life) {
    let Some(put) = case.put_of(task) else { return };
    if case.stands.contains_key(&task) {
        return;
    }
    let ended = life.ends.iter().map(|end| &case.ends[*end]).any(|end| {
        // Failed tasks stand; an unknown settlement may have deleted it.
        end.may_have_ended() && end.went() != Some(Went::Failed)
    });
    let removed = case
        .acts(task, queue_of(case, task, life))
        .any(|act| act.may_be(&["cancel", "discard", "resolve"]));
    if !ended && !removed {
        let words = format!("task {task} was acknowledged and is nowhere: {}", put.wanted.payload);
        found.tell("lost", words, case.lines_of(task));
    }
}

/// Who is done, cancelled, discarded or resolved neither stands nor runs again.
fn came_back(case: &Case<'_>, found: &mut Found<'_>, task: i64, life: &Life) {
    let ends = life.ends.iter().map(|end| &case.ends[*end]);
    let ended = ends.filter(|end| end.deleted()).map(|end| end.span);
    let acts = life.acts.iter().filter(|act| act.deleted()).map(|act| act.span);
    let Some(end) = ended.chain(acts).min_by_key(|span| span.heard) else { return };
    let again = life.takes.iter().map(|take| &case.takes[*take]);
    let again = again.clone().find(|take| take.span.called > end.heard);
    let stands = case.stands.contains_key(&task);
    if again.is_some() || stands {
        let how = if stands { "stands" } else { "was given out" };
        let words = format!("task {task} had ended and {how} again");
        let mut lines = end.lines();
        lines.extend(again.into_iter().flat_map(|take| take.span.lines()));
        lines.extend(case.put_of(task).into_iter().flat_map(|put| put.span.lines()));
        found.tell("came back", words, lines);
    }
}

/// Failed tasks stand until an operator moves them, and nobody fails by itself.
fn failed(case: &Case<'_>, found: &mut Found<'_>, task: i64, life: &Life) {
    let queue = queue_of(case, task, life);
    let stands = case.stands.get(&task);
    let recorded = life.ends.iter().map(|end| &case.ends[*end]);
    let last = recorded.clone().filter(|end| end.went() == Some(Went::Failed));
    if let Some(last) = last.max_by_key(|end| end.span.heard) {
        let moved = case.acts(task, queue).any(|act| {
            act.may_be(&["retry", "discard", "resolve"]) && act.span.heard >= last.span.called
        });
        let is_failed = stands.is_some_and(|task| task.state == "failed");
        if !moved && !is_failed {
            let words = format!("task {task} had failed and does not stand as failed");
            found.tell("failed is kept", words, case.lines_of(task));
        }
    }
    let limited = case.rules(queue).max_attempts.is_some();
    if stands.is_some_and(|task| task.state == "failed") && !limited {
        let by_somebody = recorded.clone().any(|end| end.may_have_ended());
        if !by_somebody {
            let words = format!("task {task} stands as failed and nobody failed it");
            found.tell("failed by nobody", words, case.lines_of(task));
        }
    }
}

/// Every payload that is seen was put, as one task, under the number that was
/// answered.
fn strangers(case: &Case<'_>, found: &mut Found<'_>) {
    let tried: HashSet<&str> = case.puts.iter().map(|put| put.wanted.payload.as_str()).collect();
    // A schedule that a wrong clock had decided ahead fires those instants again.
    let fired_again = |payload: &str| {
        case.jumped(0, u64::MAX) && case.fires.iter().any(|fire| fire.payload == payload)
    };
    for (payload, tasks) in &case.seen {
        let lines = || tasks.iter().flat_map(|task| case.lines_of(*task)).collect();
        if !tried.contains(payload.as_str()) {
            found.tell("stranger", format!("nobody put '{payload}': {tasks:?}"), lines());
        } else if tasks.len() > 1 && !fired_again(payload) {
            found.tell(
                "twins",
                format!("'{payload}' became more than one task: {tasks:?}"),
                lines(),
            );
        }
    }
    let mut put: HashMap<i64, HashSet<&str>> = HashMap::new();
    for try_ in case.puts.iter().filter(|put| put.effect == Effect::Told) {
        if let Some(PutSaid::Enqueued(task) | PutSaid::Replaced(task)) = try_.said {
            put.entry(task).or_default().insert(&try_.wanted.payload);
        }
    }
    let unanswered: HashSet<&str> = (case.puts.iter())
        .filter(|put| put.effect == Effect::Unknown)
        .map(|put| put.wanted.payload.as_str())
        .collect();
    let given = case.takes.iter().map(|take| (take.given.task, take.given.payload.as_str()));
    let standing = case.standing.tasks.iter().map(|task| (task.task, task.payload.as_str()));
    let mut told = HashSet::new();
    for (task, payload) in given.chain(standing) {
        let known = put.get(&task).is_some_and(|payloads| payloads.contains(payload));
        let other = put.contains_key(&task) && !known && !unanswered.contains(payload);
        if other && told.insert(task) {
            let words = format!("task {task} holds '{payload}', and that is not what was put");
            found.tell("other payload", words, case.lines_of(task));
        }
    }
}

/// What was refused, was a duplicate or was not written does not stand.
fn refused(case: &Case<'_>, found: &mut Found<'_>) {
    let mut fate: HashMap<&str, bool> = HashMap::new();
    for put in &case.puts {
        let may_stand = match put.effect {
            Effect::Unknown => true,
            Effect::Nothing => false,
            Effect::Told => match put.said {
                Some(PutSaid::Enqueued(_) | PutSaid::Replaced(_)) => true,
                // Put again by itself. That a run had begun after it all the same is not
                // held against a store: it is counted.
                Some(PutSaid::Duplicate(_)) => case.plan.puts_again(),
                Some(PutSaid::Refused(_)) | None => false,
            },
        };
        *fate.entry(&put.wanted.payload).or_default() |= may_stand;
    }
    for put in &case.puts {
        if fate.get(put.wanted.payload.as_str()) == Some(&false)
            && let Some(tasks) = case.seen.get(&put.wanted.payload)
        {
            let words = format!("'{}' was not taken and stands: {tasks:?}", put.wanted.payload);
            let mut lines = put.span.lines();
            lines.extend(tasks.iter().flat_map(|task| case.lines_of(*task)));
            found.tell("refused and stands", words, lines);
        }
    }
}
