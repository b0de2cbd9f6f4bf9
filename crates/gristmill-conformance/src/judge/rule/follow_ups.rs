//! A settlement and its follow-ups: both or neither.

use std::collections::BTreeMap;

use super::super::case::{Case, Effect, EndTry};
use super::super::event::{PutSaid, SettleSaid, Went};
use super::super::verdict::Found;

pub(super) fn check(case: &Case<'_>, found: &mut Found<'_>) {
    let mut tries: BTreeMap<(i64, &str), Vec<&EndTry>> = BTreeMap::new();
    for end in case.ends.iter().filter(|end| !end.ending.follow_ups.is_empty()) {
        tries.entry((end.ending.task, &end.ending.token)).or_default().push(end);
        if let Some(SettleSaid::Recorded { went: Went::Done, follow_ups }) = &end.said {
            let refused = follow_ups.iter().any(|said| matches!(said, PutSaid::Refused(_)));
            if refused || follow_ups.len() != end.ending.follow_ups.len() {
                let words = format!("task {} is done without its follow-ups", end.ending.task);
                found.tell("follow-ups", words, end.span.lines());
            }
        }
    }
    let nameless = case.nameless();
    for ((task, token), ends) in tries {
        both_or_neither(case, found, task, token, &ends, nameless);
    }
}

fn both_or_neither(
    case: &Case<'_>,
    found: &mut Found<'_>,
    task: i64,
    token: &str,
    ends: &[&EndTry],
    nameless: usize,
) {
    // Told as recorded: then its follow-ups were acknowledged as any put is.
    if ends.iter().any(|end| end.went().is_some()) {
        return;
    }
    let wanted = ends.iter().flat_map(|end| &end.ending.follow_ups).map(|one| &one.task.payload);
    let mut wanted: Vec<&String> = wanted.collect();
    wanted.sort();
    wanted.dedup();
    let seen = wanted.iter().filter(|payload| case.seen.contains_key(**payload)).count();
    let lines = || {
        let mut lines: Vec<usize> = ends.iter().flat_map(|end| end.span.lines()).collect();
        lines.extend(case.lines_of(task));
        lines
    };
    if ends.iter().all(|end| end.effect != Effect::Unknown) {
        if seen > 0 {
            let words = format!("a settlement of task {task} was refused and a follow-up stands");
            found.tell("follow-ups", words, lines());
        }
        return;
    }
    let Some(life) = case.lives.get(&task) else { return };
    let begun = ends.iter().map(|end| end.span.called).min().unwrap_or(0);
    let queue = life.takes.first().map_or("", |take| &case.takes[*take].queue);
    let again = life.takes.iter().map(|take| &case.takes[*take]).any(|take| {
        take.token != token
            && take.span.called > begun
            && !case.may_forget(queue, begun, take.span.heard)
    });
    let stands = case.stands.contains_key(&task) || again;
    let others = life
        .ends
        .iter()
        .map(|end| &case.ends[*end])
        .any(|end| end.ending.token != token && end.may_have_ended());
    let removed = case.acts(task, queue).any(|act| act.may_be(&["cancel", "discard", "resolve"]));
    if stands && seen > 0 {
        // It may have been settled after the other had it; only what stands at the
        // end, or what began after, tells.
        let words = format!("task {task} goes on and a follow-up of its end stands");
        found.tell("follow-ups", words, lines());
    } else if seen > 0 && wanted.len() - seen > nameless {
        let words = format!("of task {task}'s follow-ups {seen} of {} stand", wanted.len());
        found.tell("follow-ups", words, lines());
    } else if !stands && !others && !removed && wanted.len() - seen > nameless {
        let words = format!("task {task} is done and its follow-ups are nowhere");
        found.tell("follow-ups", words, lines());
    }
}
