//! `claims` grows with each claim, where that is promised, and nobody runs more
//! often than the queue allows.

use super::super::case::{Case, Take};
use super::super::verdict::Found;

pub(super) fn check(case: &Case<'_>, found: &mut Found<'_>) {
    for (task, life) in &case.lives {
        let takes: Vec<&Take> = life.takes.iter().map(|take| &case.takes[*take]).collect();
        for (at, later) in takes.iter().enumerate() {
            let wrong = takes[..at].iter().find(|first| {
                let fell =
                    later.given.claims < first.given.claims && first.span.heard < later.span.called;
                let same = later.given.claims == first.given.claims;
                (fell || same)
                    && !case.may_forget(&later.queue, first.span.called, later.span.heard)
            });
            if let Some(first) = wrong {
                let words = format!(
                    "claims of task {task} did not grow: {} and then {}",
                    first.given.claims, later.given.claims
                );
                let lines = [first.span.lines(), later.span.lines()].concat();
                found.tell("claims", words, lines);
                break;
            }
        }
        let over = takes.iter().find(|take| {
            let most = case.rules(&take.queue).max_attempts;
            most.is_some_and(|most| take.given.attempt > most)
        });
        if let Some(take) = over {
            let words = format!("task {task} was given for attempt {}", take.given.attempt);
            found.tell("attempts", words, take.span.lines());
        }
        let odd = takes
            .iter()
            .find(|take| take.given.attempt > take.given.claims || take.given.attempt == 0);
        if let Some(take) = odd {
            let words = format!(
                "task {task} has attempt {} and claims {}",
                take.given.attempt, take.given.claims
            );
            found.tell("attempts", words, take.span.lines());
        }
    }
}
