//! The judge's rules: each looks at the whole case and tells what must not be.
//!
//! A rule speaks only of what is certain. A call without an answer may have
//! happened at any time after it was made, or not at all; an answer holds from
//! some moment between the call and its hearing. What could have been otherwise is
//! no violation.

mod claims;
mod counts;
mod duplicates;
mod follow_ups;
mod kept;
mod keys;
mod leases;
mod leftovers;
mod limits;
mod order;
mod outcome;
mod results;
mod schedules;
mod settled;
mod torn;
mod windows;

use super::case::{Case, EndTry, Take};
use super::verdict::Found;

type Check = fn(&Case<'_>, &mut Found<'_>);

/// Every rule.
pub(super) const ALL: &[Check] = &[
    kept::check,
    settled::check,
    outcome::check,
    claims::check,
    leases::check,
    keys::check,
    duplicates::check,
    order::check,
    torn::check,
    follow_ups::check,
    schedules::check,
    limits::check,
    windows::check,
    results::check,
    counts::check,
    leftovers::check,
];

/// The take under which a settlement was made.
fn take_of<'a>(case: &'a Case<'_>, end: &EndTry) -> Option<&'a Take> {
    let life = case.lives.get(&end.ending.task)?;
    let mut takes = life.takes.iter().map(|take| &case.takes[*take]);
    takes.find(|take| take.token == end.ending.token)
}

/// The first take that for certain came after this one and was heard of before
/// this time.
fn later_take<'a>(case: &'a Case<'_>, first: &Take, before: u64) -> Option<&'a Take> {
    let life = case.lives.get(&first.given.task)?;
    let mut takes = life.takes.iter().map(|take| &case.takes[*take]);
    takes.find(|take| take.span.called > first.span.heard && take.span.heard < before)
}

/// Whether a settlement was made when somebody else was known to have the task.
pub(super) fn is_stale(case: &Case<'_>, end: &EndTry) -> bool {
    take_of(case, end).is_some_and(|take| later_take(case, take, end.span.called).is_some())
}
