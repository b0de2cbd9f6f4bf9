//! Limits, of a queue or of each of its groups: never more under lease than `concurrency`,
//! and never more claimed in any stretch of time than the burst and what the rate brings in
//! it.
//!
//! What is counted is certain: a task is under lease at the latest when its claimer heard
//! of it, and at least until its lease can have ended or somebody settled it. A claim was
//! made at some moment between its call and its hearing, so it counts in a stretch that
//! holds both.

use std::collections::BTreeMap;

use super::super::case::{Case, EndTry, SLACK, Take};
use super::super::event::How;
use super::super::verdict::Found;

pub(super) fn check(case: &Case<'_>, found: &mut Found<'_>) {
    // By a clock that jumps, leases end and buckets fill at other times.
    if case.jumped(0, u64::MAX) {
        return;
    }
    for queue in &case.plan.queues {
        let mut counted: BTreeMap<&str, Vec<&Take>> = BTreeMap::new();
        for take in case.takes.iter().filter(|take| take.queue == queue.name) {
            let group = take.given.group.as_deref().filter(|_| queue.grouped);
            counted.entry(group.unwrap_or_default()).or_default().push(take);
        }
        for mut takes in counted.into_values() {
            if let Some(most) = queue.concurrency {
                together(case, found, &mut takes, most as usize);
            }
            if let (Some((tasks, per)), Some(burst)) = (queue.rate, queue.burst) {
                takes.sort_by_key(|take| take.span.called);
                let pace = Pace { tasks: tasks.into(), per, burst: burst.into() };
                so_fast(case, found, &takes, &pace);
            }
        }
    }
}

/// Until when a take holds its place for certain.
fn until(case: &Case<'_>, take: &Take) -> u64 {
    let takes = case.lives.get(&take.given.task).into_iter().flat_map(|life| &life.takes);
    let later =
        takes.map(|at| &case.takes[*at]).filter(|other| other.given.claims > take.given.claims);
    let later = later.map(|other| other.span.called).min().unwrap_or(u64::MAX);
    case.held_until(take).min(later).saturating_sub(SLACK)
}

fn together(case: &Case<'_>, found: &mut Found<'_>, takes: &mut [&Take], most: usize) {
    takes.sort_by_key(|take| take.span.heard);
    let mut held: Vec<(u64, &Take)> = Vec::new();
    for take in takes.iter() {
        held.retain(|(until, _)| *until > take.span.heard);
        held.push((until(case, take), take));
        if held.len() > most {
            let tasks: Vec<i64> = held.iter().map(|(_, take)| take.given.task).collect();
            let words = format!("{} of {} at once: {tasks:?}", held.len(), take.queue);
            let lines = held.iter().flat_map(|(_, take)| take.span.lines()).collect();
            found.tell("too many at once", words, lines);
            held.clear();
        }
    }
}

/// So many tasks in so many microseconds, and so many at once.
struct Pace {
    tasks: u64,
    per: u64,
    burst: u64,
}

impl Pace {
    /// How many may be claimed in a stretch of time.
    fn most(&self, time: u64) -> u64 {
        self.burst.saturating_add(time.saturating_mul(self.tasks) / self.per.max(1) + 1)
    }
}

/// `takes` are in the order of their calls.
fn so_fast(case: &Case<'_>, found: &mut Found<'_>, takes: &[&Take], pace: &Pace) {
    // Only a release gives a token back.
    let released = takes.iter().flat_map(|take| {
        let ends = case.lives.get(&take.given.task).into_iter().flat_map(|life| &life.ends);
        let ends = ends.map(|end| &case.ends[*end]);
        ends.filter(|end| end.ending.token == take.token && end.ending.how == How::Release)
    });
    let released: Vec<&EndTry> = released.collect();
    for (nth, first) in takes.iter().enumerate() {
        let from = first.span.called;
        let mut within: Vec<&Take> = takes[nth..].to_vec();
        within.sort_by_key(|take| take.span.heard);
        for (taken, last) in (1_u64..).zip(within).skip(usize::try_from(pace.burst).unwrap_or(0)) {
            let to = last.span.heard;
            let most = pace.most(to - from + SLACK);
            if most >= takes.len() as u64 {
                // From here on no more than were claimed at all can be too many.
                break;
            }
            let back = released.iter().filter(|e| e.span.called <= to && e.span.heard >= from);
            if taken > most + back.count() as u64 {
                let words = format!(
                    "{taken} of {} were claimed in {} µs, and {most} might be",
                    first.queue,
                    to - from
                );
                let lines = [first.span.lines(), last.span.lines()].concat();
                found.tell("too fast", words, lines);
                return;
            }
        }
    }
}
