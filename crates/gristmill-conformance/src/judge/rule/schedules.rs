//! Each instant of a schedule is fired once: none twice, none passed over.

use std::collections::BTreeMap;

use super::super::case::{Case, Effect, FireTry};
use super::super::verdict::Found;

pub(super) fn check(case: &Case<'_>, found: &mut Found<'_>) {
    let mut fires: BTreeMap<(&str, i64), Vec<&FireTry>> = BTreeMap::new();
    for fire in case.fires.iter().filter(|fire| fire.fired || fire.effect == Effect::Unknown) {
        fires.entry((&fire.schedule, fire.instant)).or_default().push(fire);
    }
    for ((schedule, instant), all) in &fires {
        let fired: Vec<&&FireTry> = all.iter().filter(|fire| fire.fired).collect();
        // After a jump back, what a wrong clock had decided ahead is fired again.
        let between = (fired.iter().map(|fire| fire.span.called).min())
            .zip(fired.iter().map(|fire| fire.span.heard).max());
        let jumped = between.is_some_and(|(from, to)| case.jumped(from, to));
        if fired.len() > 1 && !jumped {
            let words = format!("instant {instant} of {schedule} was fired {} times", fired.len());
            let lines = fired.iter().flat_map(|fire| fire.span.lines()).collect();
            found.tell("fired twice", words, lines);
        }
    }
    passed_over(case, found, &fires);
}

fn passed_over(
    case: &Case<'_>,
    found: &mut Found<'_>,
    fires: &BTreeMap<(&str, i64), Vec<&FireTry>>,
) {
    if case.jumped(0, u64::MAX) {
        return;
    }
    let every = i64::try_from(super::super::plan::EVERY.as_micros()).unwrap_or(i64::MAX);
    let known: Vec<_> = fires.iter().collect();
    for pair in known.windows(2) {
        let [((schedule, first), before), ((other, second), after)] = pair else { continue };
        if schedule == other && second - first > every {
            let words = format!("{schedule} passed over instants between {first} and {second}");
            let lines = before.iter().chain(after.iter()).flat_map(|fire| fire.span.lines());
            found.tell("passed over", words, lines.collect());
        }
    }
}
