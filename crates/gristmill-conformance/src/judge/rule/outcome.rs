//! What became of an attempt is what its end asked for, the next one is counted as
//! it must be, and what is given out is what was put.

use super::super::case::{Case, Effect, EndTry, SLACK, Take};
use super::super::event::{How, PutSaid, SettleSaid, Went};
use super::super::verdict::Found;
use super::take_of;

pub(super) fn check(case: &Case<'_>, found: &mut Found<'_>) {
    for end in &case.ends {
        fits(case, found, end);
    }
    for life in case.lives.values() {
        let mut takes: Vec<&Take> = life.takes.iter().map(|take| &case.takes[*take]).collect();
        takes.sort_by_key(|take| take.given.claims);
        if let Some(first) = takes.first() {
            as_put(case, found, first);
        }
        for pair in takes.windows(2) {
            let [first, second] = pair else { continue };
            counted(case, found, first, second);
        }
    }
    for put in case.puts.iter().filter(|put| put.effect == Effect::Told) {
        let replaces = case.rules(&put.queue).replaces;
        let plain = put.wanted.key.is_some() && put.wanted.id.is_none();
        let duplicate = matches!(put.said, Some(PutSaid::Duplicate(_)));
        if replaces && plain && duplicate && put.committing.is_none() && !put.atomic {
            let words = format!("{} replaces, and a put was only a duplicate", put.queue);
            found.tell("not replaced", words, put.span.lines());
        }
    }
}

/// Whether an operator may have asked for this task's end.
fn may_be_cancelled(case: &Case<'_>, task: i64, queue: &str) -> bool {
    case.acts(task, queue).any(|act| act.may_be(&["cancel"]))
}

fn fits(case: &Case<'_>, found: &mut Found<'_>, end: &EndTry) {
    let (Some(went), Some(take)) = (end.went(), take_of(case, end)) else { return };
    let limited = case.rules(&take.queue).max_attempts.is_some();
    let refused = matches!(&end.said, Some(SettleSaid::Recorded { follow_ups, .. })
        if follow_ups.iter().any(|said| matches!(said, PutSaid::Refused(_))));
    let fits = match end.ending.how {
        How::Done => went == Went::Done || refused,
        How::Release => went == Went::Pending,
        How::Retry | How::Error => went == Went::Pending || (limited && went == Went::Failed),
        How::Fail => went == Went::Failed,
        How::Cancelled => true,
    };
    let task = end.ending.task;
    if !fits && !may_be_cancelled(case, task, &take.queue) {
        let words = format!("task {task} was settled as {:?} and became {went:?}", end.ending.how);
        found.tell("outcome", words, [take.span.lines(), end.span.lines()].concat());
    }
}

/// Every claim is an attempt, and only a release takes one back.
fn counted(case: &Case<'_>, found: &mut Found<'_>, first: &Take, second: &Take) {
    let (task, queue) = (first.given.task, first.queue.as_str());
    let next = second.given.claims == first.given.claims + 1;
    let retried = case.acts(task, queue).any(|act| act.may_be(&["retry"]));
    if !next || retried || case.may_forget(queue, first.span.called, second.span.heard) {
        return;
    }
    let ends = case.lives.get(&task).into_iter().flat_map(|life| &life.ends);
    let ends = ends.map(|end| &case.ends[*end]).filter(|end| end.ending.token == first.token);
    let mut given_back = 0;
    for end in ends {
        match (&end.said, end.effect) {
            (Some(SettleSaid::Recorded { .. }), _) if end.ending.how == How::Release => {
                given_back = 1;
            }
            (Some(SettleSaid::AlreadyRecorded), _) | (_, Effect::Unknown) => return,
            _ => {}
        }
    }
    let wanted = first.given.attempt + 1 - given_back;
    if second.given.attempt != wanted {
        let words = format!(
            "task {task} was given for attempt {} where {wanted} was due",
            second.given.attempt
        );
        found.tell("attempts", words, case.lines_of(task));
    }
}

/// The first time a task is given out, it is as it was put, and not before its time.
fn as_put(case: &Case<'_>, found: &mut Found<'_>, take: &Take) {
    let task = take.given.task;
    let Some(put) = case.put_of(task).filter(|put| put.enqueued() == Some(task)) else { return };
    let (wanted, given) = (&put.wanted, &take.given);
    let changes = case.rules(&put.queue).replaces && wanted.key.is_some();
    let same = given.key == wanted.key
        && given.group == wanted.group
        && (changes || given.priority == wanted.priority);
    if !same || take.queue != put.queue {
        let words = format!("task {task} is not what was put");
        found.tell("other task", words, [put.span.lines(), take.span.lines()].concat());
    }
    let due = put.span.called + wanted.delay_ms * 1_000;
    let moved = changes || case.acts(task, &put.queue).next().is_some();
    if take.span.heard + SLACK < due && !moved && !case.jumped(0, u64::MAX) {
        let words = format!("task {task} was to wait {} ms and did not", wanted.delay_ms);
        found.tell("too early", words, [put.span.lines(), take.span.lines()].concat());
    }
}
