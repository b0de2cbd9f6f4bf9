//! Keys: one task in flight and one waiting, at a time.

use std::collections::HashMap;

use super::super::case::{Case, PutTry, Take};
use super::super::verdict::Found;

type Key<'a> = (&'a str, &'a str);

pub(super) fn check(case: &Case<'_>, found: &mut Found<'_>) {
    in_flight(case, found);
    waiting(case, found);
}

/// Nobody of a key is given out while another of it is in flight.
fn in_flight(case: &Case<'_>, found: &mut Found<'_>) {
    let mut last: HashMap<Key<'_>, &Take> = HashMap::new();
    for take in &case.takes {
        let Some(key) = take.given.key.as_deref() else { continue };
        let place = (take.queue.as_str(), key);
        if let Some(first) = last.get(&place).copied()
            && first.given.task != take.given.task
            && first.span.heard < take.span.called
        {
            let free = case.may_end(first.given.task, &first.queue, first.span.called);
            let forgotten = case.may_forget(&take.queue, first.span.called, take.span.heard);
            if take.span.heard < free
                && !forgotten
                && !case.jumped(first.span.called, take.span.heard)
            {
                let words = format!(
                    "task {} of key {key} was given out while task {} of it was in flight",
                    take.given.task, first.given.task
                );
                let lines = [first.span.lines(), take.span.lines()].concat();
                found.tell("two of a key", words, lines);
            }
        }
        last.insert(place, take);
    }
}

/// Until when a task stands for its key at the least, so that no other may be
/// enqueued.
fn stands_until(case: &Case<'_>, put: &PutTry, task: i64, active: bool) -> u64 {
    let ends = case.may_end(task, &put.queue, put.span.called);
    if active {
        return ends;
    }
    let Some(life) = case.lives.get(&task) else { return 0 };
    match life.takes.first().map(|take| &case.takes[*take]) {
        // Never claimed before: not by a claim without an answer either.
        Some(take) if take.given.claims == 1 => ends.min(take.span.called),
        Some(_) => 0,
        None => {
            let waits = case.stands.get(&task).is_some_and(|task| task.claims == 0);
            if waits { ends } else { 0 }
        }
    }
}

fn waiting(case: &Case<'_>, found: &mut Found<'_>) {
    let mut last: HashMap<Key<'_>, (&PutTry, i64)> = HashMap::new();
    let mut keyed: Vec<&PutTry> = case.puts.iter().filter(|put| put.wanted.key.is_some()).collect();
    keyed.sort_by_key(|put| put.span.heard);
    for put in keyed {
        let (Some(task), Some(key)) = (put.enqueued(), put.wanted.key.as_deref()) else { continue };
        let place = (put.queue.as_str(), key);
        if let Some((first, standing)) = last.insert(place, (put, task))
            && first.span.heard < put.span.called
        {
            let active = case.rules(&put.queue).unique_active;
            let until = stands_until(case, first, standing, active);
            let forgotten = case.may_forget(&put.queue, first.span.called, put.span.heard);
            if put.span.heard < until && !forgotten {
                let words =
                    format!("task {task} was enqueued while {standing} stood for key {key}");
                let lines = [first.span.lines(), put.span.lines(), case.lines_of(standing)];
                found.tell("key taken twice", words, lines.concat());
            }
        }
    }
}
