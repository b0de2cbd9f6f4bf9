//! No second final settlement, no stale token accepted, no token that is nobody's.

use std::collections::HashMap;

use super::super::case::{Case, EndTry, Life};
use super::super::event::Went;
use super::super::verdict::Found;
use super::{later_take, take_of};

pub(super) fn check(case: &Case<'_>, found: &mut Found<'_>) {
    for (task, life) in &case.lives {
        twice(case, found, *task, life);
    }
    for end in case.ends.iter().filter(|end| end.went().is_some()) {
        token(case, found, end);
    }
    extensions(case, found);
}

fn twice(case: &Case<'_>, found: &mut Found<'_>, task: i64, life: &Life) {
    let ends = life.ends.iter().map(|end| &case.ends[*end]);
    let mut recorded: Vec<&EndTry> = ends.filter(|end| end.went().is_some()).collect();
    recorded.sort_by_key(|end| end.span.heard);
    let mut by_token: HashMap<&str, &EndTry> = HashMap::new();
    for end in &recorded {
        if let Some(first) = by_token.insert(&end.ending.token, end) {
            let words = format!("task {task} was settled twice under one token");
            let lines = [first.span.lines(), end.span.lines()].concat();
            found.tell("second settlement", words, lines);
            return;
        }
    }
    for pair in recorded.windows(2) {
        let [first, second] = pair else { continue };
        let over = match first.went() {
            // One that was heard of later may have been made before.
            Some(Went::Done | Went::Cancelled) => {
                second.span.called > first.span.heard || second.deleted()
            }
            Some(Went::Failed) => {
                let queue = take_of(case, second).map_or("", |take| &take.queue);
                let retried = case.acts(task, queue).any(|act| {
                    act.may_be(&["retry"])
                        && act.span.heard >= first.span.called
                        && act.span.called <= second.span.heard
                });
                !retried && second.span.called > first.span.heard
            }
            Some(Went::Pending) | None => false,
        };
        if over {
            let words = format!("task {task} had ended and another settlement was recorded");
            let lines = [first.span.lines(), second.span.lines()].concat();
            found.tell("second settlement", words, lines);
        }
    }
}

fn token(case: &Case<'_>, found: &mut Found<'_>, end: &EndTry) {
    let task = end.ending.task;
    let Some(take) = take_of(case, end) else {
        let words = format!("a settlement of task {task} was recorded under a token nobody has");
        found.tell("foreign token", words, end.span.lines());
        return;
    };
    let Some(later) = later_take(case, take, end.span.called) else { return };
    if !case.may_forget(&take.queue, later.span.called, end.span.heard) {
        let words = format!("a settlement of task {task} was recorded after another had it");
        let lines = [take.span.lines(), later.span.lines(), end.span.lines()].concat();
        found.tell("stale token", words, lines);
    }
}

/// A lease under which nothing is open any more is not extended.
fn extensions(case: &Case<'_>, found: &mut Found<'_>) {
    let mut takes: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, take) in case.takes.iter().enumerate() {
        takes.entry(&take.token).or_default().push(at);
    }
    for (token, extends) in &case.extends {
        let held: Vec<_> = takes.get(token.as_str()).into_iter().flatten().collect();
        for extend in extends.iter().filter(|extend| extend.lasts == Some(true)) {
            let is_over = |at: &&usize| {
                let take = &case.takes[**at];
                let ends = case.lives.get(&take.given.task).into_iter().flat_map(|life| &life.ends);
                let settled = ends.map(|end| &case.ends[*end]).any(|end| {
                    end.ending.token == *token
                        && end.went().is_some()
                        && end.span.heard < extend.span.called
                });
                let lost = later_take(case, take, extend.span.called).is_some_and(|later| {
                    !case.may_forget(&take.queue, later.span.called, extend.span.heard)
                });
                settled || lost
            };
            if held.iter().all(is_over) {
                let mut lines = extend.span.lines();
                for at in &held {
                    lines.extend(case.lines_of(case.takes[**at].given.task));
                }
                let words = "a lease was extended under which nothing is open".to_owned();
                found.tell("stale extension", words, lines);
            }
        }
    }
}
