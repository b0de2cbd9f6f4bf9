//! One live lease a task and a slot at a time, by the store's clock.

use std::collections::HashMap;

use super::super::case::{Case, SLACK, Take};
use super::super::event::FaultKind;
use super::super::verdict::Found;

pub(super) fn check(case: &Case<'_>, found: &mut Found<'_>) {
    for (task, life) in &case.lives {
        // In the order in which they were made, which the numbers tell: a client that
        // stood still may have been given its tasks long after it asked.
        let mut takes: Vec<&Take> = life.takes.iter().map(|take| &case.takes[*take]).collect();
        takes.sort_by_key(|take| take.given.claims);
        for pair in takes.windows(2) {
            let [first, second] = pair else { continue };
            if too_early(case, first, second) {
                let words = format!("task {task} was given out while its lease was live");
                let lines = [first.span.lines(), second.span.lines(), case.lines_of(*task)];
                found.tell("two leases", words, lines.concat());
            }
        }
    }
    slots(case, found);
    runs(case, found);
}

/// Whether the second take was heard of before the first one's lease can have
/// ended.
fn too_early(case: &Case<'_>, first: &Take, second: &Take) -> bool {
    let until = case.held_until(first);
    let (from, heard) = (first.span.called, second.span.heard);
    if heard + SLACK >= until || case.may_forget(&first.queue, from, heard) {
        return false;
    }
    // After a jump of the clock its holder has one heartbeat to say that it is
    // alive. Of two jumps close together a process may see none: to it the clock was
    // never wrong, and the lease that was made in between has long ended.
    let jumps = case.troubles.iter().filter(|trouble| trouble.kind == FaultKind::Clock);
    let near = jumps.filter(|jump| jump.to + NEAR >= from && jump.from <= heard);
    let near: Vec<u64> = near.map(|jump| jump.from).collect();
    match near.as_slice() {
        [] => true,
        [jump] => heard + SLACK < jump + first.lease / 3,
        _ => false,
    }
}

/// Jumps that are less far apart may look like none.
const NEAR: u64 = 1_000_000;

/// Until when a take holds its slot, at the least: not when its task was taken back
/// and given out anew.
fn slot_until(case: &Case<'_>, take: &Take) -> u64 {
    let takes = case.lives.get(&take.given.task).into_iter().flat_map(|life| &life.takes);
    let later =
        takes.map(|at| &case.takes[*at]).filter(|other| other.given.claims > take.given.claims);
    let later = later.map(|other| other.span.called).min().unwrap_or(u64::MAX);
    case.held_until(take).min(later)
}

fn slots(case: &Case<'_>, found: &mut Found<'_>) {
    let mut last: HashMap<(&str, Option<&str>, u32), &Take> = HashMap::new();
    for take in &case.takes {
        let Some(slots) = case.rules(&take.queue).slots else { continue };
        let task = take.given.task;
        let Some(slot) = take.given.slot.filter(|slot| *slot < slots) else {
            let words = format!("task {task} has slot {:?} of {slots}", take.given.slot);
            found.tell("slots", words, take.span.lines());
            continue;
        };
        let place = (take.queue.as_str(), take.given.group.as_deref(), slot);
        if let Some(first) = last.get(&place)
            && first.given.task != task
            && first.span.heard < slot_until(case, take)
            && take.span.heard < slot_until(case, first)
            && too_early(case, first, take)
        {
            let words = format!("tasks {} and {task} hold slot {slot} at once", first.given.task);
            let lines = [first.span.lines(), take.span.lines()].concat();
            found.tell("slots", words, lines);
        }
        let longer = last.get(&place).is_none_or(|first| {
            slot_until(case, first) < slot_until(case, take) || first.given.task == task
        });
        if longer {
            last.insert(place, take);
        }
    }
}

/// The store's own record of a task's last attempts: by its clock, none begins
/// before the one before it has ended.
fn runs(case: &Case<'_>, found: &mut Found<'_>) {
    if case.jumped(0, u64::MAX) {
        return;
    }
    for task in &case.standing.tasks {
        let overlap = task.runs.windows(2).find(|pair| pair[1].0 < pair[0].1);
        let backwards = task.runs.iter().find(|(claimed, ended)| ended < claimed);
        if overlap.is_some() || backwards.is_some() {
            let words = format!("task {}'s attempts overlap: {:?}", task.task, task.runs);
            found.tell("two leases", words, case.lines_of(task.task));
        }
    }
}
