//! Order within its bound: priority, then `run_at`, then number; nothing before
//! its time, and nothing of a queue that is stopped.

use std::collections::HashMap;

use super::super::case::{Case, ClaimTry, Effect, Take};
use super::super::verdict::Found;

pub(super) fn check(case: &Case<'_>, found: &mut Found<'_>) {
    for claim in &case.claims {
        within(case, found, claim);
    }
    early(case, found);
    stopped(case, found);
    overtaken(case, found);
}

type Place = (i16, i64, i64);

fn place(take: &Take) -> Place {
    (take.given.priority, take.given.run_at, take.given.task)
}

fn within(case: &Case<'_>, found: &mut Found<'_>, claim: &ClaimTry) {
    let takes: Vec<&Take> = claim.takes.iter().map(|take| &case.takes[*take]).collect();
    if takes.len() > claim.max {
        let words = format!("a claim of {} was given {}", claim.max, takes.len());
        found.tell("order", words, claim.span.lines());
    }
    if !takes.iter().map(|take| place(take)).is_sorted() {
        found.tell("order", "a claim's tasks are out of order".to_owned(), claim.span.lines());
    }
}

/// By the clock of the machine, which is the store's as long as it does not jump.
fn early(case: &Case<'_>, found: &mut Found<'_>) {
    if case.jumped(0, u64::MAX) {
        return;
    }
    let slack = i64::try_from(super::super::case::SLACK).unwrap_or(0);
    for take in case.takes.iter().filter(|take| take.given.run_at > take.wall + slack) {
        let ahead = take.given.run_at - take.wall;
        let words = format!("task {} was given out {ahead} µs before its time", take.given.task);
        found.tell("too early", words, take.span.lines());
    }
}

fn stopped(case: &Case<'_>, found: &mut Found<'_>) {
    for pause in case.pauses.iter().filter(|one| one.paused && one.effect == Effect::Told) {
        // Until somebody may have resumed it.
        let resumed = case.pauses.iter().filter(|other| {
            other.queue == pause.queue && !other.paused && other.span.heard >= pause.span.called
        });
        let until = resumed.map(|other| other.span.called).min().unwrap_or(u64::MAX);
        let taken = case.claims.iter().find(|claim| {
            claim.queue == pause.queue
                && !claim.takes.is_empty()
                && claim.span.called > pause.span.heard
                && claim.span.heard < until
        });
        if let Some(claim) = taken {
            let words = format!("{} was stopped and gave out tasks", pause.queue);
            found.tell("stopped", words, [pause.span.lines(), claim.span.lines()].concat());
        }
    }
}

/// A task that was there and due before a claim began is not passed by, when no
/// other claim was under way.
fn overtaken(case: &Case<'_>, found: &mut Found<'_>) {
    let mut by_queue: HashMap<&str, Vec<&ClaimTry>> = HashMap::new();
    for claim in &case.claims {
        by_queue.entry(&claim.queue).or_default().push(claim);
    }
    let passes_by = case.plan.passes_by_ms * 1_000 * 2;
    for (queue, mut claims) in by_queue {
        // A group without room is passed by, and turns are an order of their own.
        let rules = case.rules(queue);
        let by_group = rules.slots.is_some() || rules.grouped || rules.fair;
        if by_group || case.jumped(0, u64::MAX) {
            continue;
        }
        claims.sort_by_key(|claim| claim.span.called);
        let alone = alone(&claims);
        for take in waited(case, queue) {
            let Some(put) = case.put_of(take.given.task) else { continue };
            let since = put.span.heard.saturating_add(put.wanted.delay_ms * 1_000 + passes_by);
            let from = claims.partition_point(|claim| claim.span.called <= since);
            // A claim without an answer may have had it for a while.
            let hidden = |until: u64| {
                claims.iter().any(|claim| {
                    claim.effect != Effect::Told
                        && claim.span.called + 10_000_000 > put.span.called
                        && claim.span.called < until
                })
            };
            let passed = claims[from..].iter().zip(&alone[from..]).find(|(claim, alone)| {
                **alone
                    && claim.source.is_none()
                    && claim.span.heard < take.span.called
                    && claim.takes.iter().any(|other| place(&case.takes[*other]) > place(take))
            });
            if let Some((claim, _)) = passed
                && !hidden(claim.span.heard)
                && !case.in_trouble(put.span.called, claim.span.heard, |_| true)
            {
                let words = format!("task {} was passed by", take.given.task);
                let lines = [put.span.lines(), claim.span.lines(), take.span.lines()].concat();
                found.tell("order", words, lines);
            }
        }
    }
}

/// The first takes of tasks that nothing held back.
fn waited<'a>(case: &'a Case<'_>, queue: &str) -> Vec<&'a Take> {
    let firsts = case.lives.values().filter(|life| life.acts.is_empty());
    let firsts = firsts.filter_map(|life| life.takes.first().map(|take| &case.takes[*take]));
    firsts
        .filter(|take| take.queue == queue && take.given.key.is_none() && take.given.claims == 1)
        .collect()
}

/// Whether each claim of one queue, by time of call, was the only one under way.
fn alone(claims: &[&ClaimTry]) -> Vec<bool> {
    let mut latest = 0;
    let mut alone = Vec::with_capacity(claims.len());
    for (at, claim) in claims.iter().enumerate() {
        let next = claims.get(at + 1).map_or(u64::MAX, |next| next.span.called);
        let heard = if claim.effect == Effect::Told { claim.span.heard } else { claim.span.called };
        alone.push(latest < claim.span.called && next > heard && claim.effect == Effect::Told);
        latest = latest.max(heard);
    }
    alone
}
