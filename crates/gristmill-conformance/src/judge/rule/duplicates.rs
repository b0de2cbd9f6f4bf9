//! Duplicates are truthful: the task that is named stands for the put, it runs
//! after it, replaced data is what runs, and a caller's id means one task.

use std::collections::HashMap;

use super::super::case::{Case, Effect, PutTry, Take};
use super::super::event::PutSaid;
use super::super::verdict::Found;
use super::windows;

pub(super) fn check(case: &Case<'_>, found: &mut Found<'_>) {
    let repeats = ids(case, found);
    for (at, put) in case.puts.iter().enumerate() {
        if put.effect != Effect::Told || put.wanted.key.is_none() || repeats.contains(&at) {
            continue;
        }
        match put.said {
            Some(PutSaid::Duplicate(task)) => {
                stands(case, found, put, task);
                if put.committing.is_some() && case.rules(&put.queue).unique_for.is_none() {
                    followed_by_a_run(case, found, put, task);
                }
            }
            Some(PutSaid::Replaced(task)) => {
                stands(case, found, put, task);
                replaced(case, found, put, task);
            }
            _ => {}
        }
    }
}

/// Puts of one id name one task. Returns those that repeat another.
fn ids(case: &Case<'_>, found: &mut Found<'_>) -> std::collections::HashSet<usize> {
    let mut first: HashMap<(&str, &str), (usize, Option<i64>)> = HashMap::new();
    let mut repeats = std::collections::HashSet::new();
    for (at, put) in case.puts.iter().enumerate() {
        let Some(id) = put.wanted.id.as_deref() else { continue };
        let named = put.said.as_ref().and_then(PutSaid::task);
        let named = named.filter(|_| put.effect == Effect::Told);
        match first.get_mut(&(put.queue.as_str(), id)) {
            None => {
                first.insert((&put.queue, id), (at, named));
            }
            Some((before, known)) => {
                repeats.insert(at);
                if let (Some(known), Some(named)) = (*known, named)
                    && known != named
                {
                    let words = format!("id {id} is task {known} and then task {named}");
                    let lines = [case.puts[*before].span.lines(), put.span.lines()].concat();
                    found.tell("ids", words, lines);
                }
                *known = known.or(named);
            }
        }
    }
    repeats
}

/// The named task is of this key and stood when the put was made.
fn stands(case: &Case<'_>, found: &mut Found<'_>, put: &PutTry, task: i64) {
    let Some(life) = case.lives.get(&task) else { return };
    let lines = || [put.span.lines(), case.lines_of(task)].concat();
    let takes = life.takes.iter().map(|take| &case.takes[*take]);
    let key = takes.clone().map(|take| take.given.key.as_deref()).next();
    let key = key.or_else(|| Some(case.stands.get(&task)?.key.as_deref()));
    let key = key.or_else(|| Some(case.put_of(task)?.wanted.key.as_deref()));
    if key.is_some_and(|key| key != put.wanted.key.as_deref()) {
        let words = format!("a put of key {:?} is a duplicate of {task}: {key:?}", put.wanted.key);
        found.tell("false duplicate", words, lines());
        return;
    }
    if windows::keeps_out(case, put, task) {
        return;
    }
    let before = put.span.called;
    let may_return = case.acts(task, &put.queue).any(|act| act.may_be(&["retry"]));
    let ended = life
        .ends
        .iter()
        .map(|end| &case.ends[*end])
        .any(|end| end.deleted() && end.span.heard < before);
    let removed = life.acts.iter().any(|act| act.deleted() && act.span.heard < before);
    if ended || removed {
        let words = format!("a put is a duplicate of task {task}, which was gone");
        found.tell("false duplicate", words, lines());
        return;
    }
    let taken = |take: &Take| {
        take.span.heard < before && !case.may_forget(&put.queue, take.span.called, put.span.heard)
    };
    let active = case.rules(&put.queue).unique_active;
    if !active && !may_return && takes.clone().any(taken) {
        let words = format!("a put is a duplicate of task {task}, which had been claimed");
        found.tell("false duplicate", words, lines());
    }
}

/// What runs next has this put's data, or that of one which came at the same time
/// or later.
fn replaced(case: &Case<'_>, found: &mut Found<'_>, put: &PutTry, task: i64) {
    let Some(life) = case.lives.get(&task) else { return };
    let takes = life.takes.iter().map(|take| &case.takes[*take]);
    let mut takes = takes.filter(|take| take.span.called > put.span.heard);
    let Some(next) = takes.next() else { return };
    let newer = |other: &&PutTry| {
        other.queue == put.queue
            && other.wanted.key == put.wanted.key
            && other.wanted.payload == next.given.payload
            && other.span.heard > put.span.called
    };
    if next.given.payload != put.wanted.payload && !case.puts.iter().any(|other| newer(&other)) {
        let words = format!("task {task} ran with '{}' after it was replaced", next.given.payload);
        let lines = [put.span.lines(), next.span.lines(), case.lines_of(task)].concat();
        found.tell("replaced in vain", words, lines);
    }
}

/// A committed change is followed by a run.
fn followed_by_a_run(case: &Case<'_>, found: &mut Found<'_>, put: &PutTry, task: i64) {
    let Some(committing) = put.committing else { return };
    let active = case.rules(&put.queue).unique_active;
    let of_key =
        |queue: &str, key: Option<&str>| queue == put.queue && key == put.wanted.key.as_deref();
    let mut runs = case.takes.iter().filter(|take| {
        of_key(&take.queue, take.given.key.as_deref()) && take.span.heard >= committing
    });
    let mut standing = case.standing.tasks.iter();
    let stands = standing.any(|task| of_key(&task.queue, task.key.as_deref()));
    let of_the_key = case.lives.keys().filter(|other| {
        case.put_of(**other).is_some_and(|put| of_key(&put.queue, put.wanted.key.as_deref()))
    });
    let removed = of_the_key.clone().any(|other| {
        case.acts(*other, &put.queue).any(|act| {
            act.may_be(&["cancel", "discard", "resolve"]) && act.span.heard >= put.span.called
        })
    });
    let ends = case.lives.get(&task).into_iter().flat_map(|life| &life.ends);
    let settled = active
        && ends
            .map(|end| &case.ends[*end])
            .any(|end| end.span.heard >= committing && end.may_have_ended());
    if runs.next().is_none() && !stands && !removed && !settled {
        let words = format!("a put was a duplicate of {task}, was committed, and no run followed");
        let lines = [put.span.lines(), case.lines_of(task)].concat();
        found.tell("no run follows", words, lines);
    }
}
