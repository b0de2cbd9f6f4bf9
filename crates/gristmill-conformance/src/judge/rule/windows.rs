//! `unique_for`: of all puts of a key one in that time is accepted, unless its task failed
//! or was taken away.

use std::collections::HashMap;

use super::super::case::{Case, Effect, PutTry, SLACK};
use super::super::event::{How, Went};
use super::super::verdict::Found;

pub(super) fn check(case: &Case<'_>, found: &mut Found<'_>) {
    if case.jumped(0, u64::MAX) {
        return;
    }
    let mut by_key: HashMap<(&str, &str), Vec<(&PutTry, i64)>> = HashMap::new();
    for put in case.puts.iter().filter(|put| put.committing.is_none()) {
        let (Some(task), Some(key)) = (put.enqueued(), put.wanted.key.as_deref()) else { continue };
        by_key.entry((&put.queue, key)).or_default().push((put, task));
    }
    for ((queue, key), mut puts) in by_key {
        let Some(window) = case.rules(queue).unique_for else { continue };
        puts.sort_by_key(|(put, _)| put.span.heard);
        for pair in puts.windows(2) {
            let [(first, one), (second, other)] = pair else { continue };
            // Whichever was first: both were made within this time.
            let (from, to) = (first.span.called.min(second.span.called), second.span.heard);
            let is_over = to - from + SLACK >= window
                || may_have_ended_early(case, *one, queue, to)
                || may_have_ended_early(case, *other, queue, to);
            if !is_over {
                let words = format!("{one} and {other} of key {key} were put within its window");
                let lines = [first.span.lines(), second.span.lines(), case.lines_of(*one)];
                found.tell("window", words, lines.concat());
            }
        }
    }
}

/// Whether a task may have failed or been taken away by this time, which ends its window.
fn may_have_ended_early(case: &Case<'_>, task: i64, queue: &str, to: u64) -> bool {
    let life = case.lives.get(&task);
    let ends = life.into_iter().flat_map(|life| &life.ends).map(|end| &case.ends[*end]);
    let mut ends = ends.filter(|end| end.span.called <= to);
    let mut acts = case.acts(task, queue).filter(|act| act.span.called <= to);
    ends.any(|end| match end.went() {
        Some(went) => matches!(went, Went::Failed | Went::Cancelled),
        None => end.ending.how != How::Done && end.may_have_ended(),
    })
        || acts.any(|act| act.may_be(&["cancel", "discard"]))
        // An expired lease may have failed it.
        || case.rules(queue).max_attempts.is_some()
}

/// Whether a duplicate of a task that is gone or claimed is right: the put of the task was
/// not long ago.
pub(super) fn keeps_out(case: &Case<'_>, put: &PutTry, task: i64) -> bool {
    let Some(window) = case.rules(&put.queue).unique_for else { return false };
    if case.jumped(0, u64::MAX) {
        return true;
    }
    let life = case.lives.get(&task).into_iter().flat_map(|life| &life.puts);
    let mut first = life
        .map(|put| &case.puts[*put])
        .filter(|first| first.enqueued() == Some(task) || first.effect == Effect::Unknown);
    // By the time of the put, which may be long before its transaction's commit; and of
    // one that nobody heard of nobody knows when it was.
    let told = case
        .lives
        .get(&task)
        .is_some_and(|life| life.puts.iter().any(|put| case.puts[*put].enqueued() == Some(task)));
    let near = |first: &PutTry| {
        first.span.heard == u64::MAX
            || put.span.called <= first.span.heard.saturating_add(window + SLACK)
    };
    first.any(near) || !told
}
