//! A kept result is that of the attempt that was recorded: clients return the token under
//! which they settle.

use super::super::case::{Case, Effect, EndTry};
use super::super::event::{How, SettleSaid, Went};
use super::super::verdict::Found;

pub(super) fn check(case: &Case<'_>, found: &mut Found<'_>) {
    for (task, result) in &case.standing.results {
        let life = case.lives.get(task).into_iter().flat_map(|life| &life.ends);
        let ends = life.map(|end| &case.ends[*end]).filter(|end| end.ending.how == How::Done);
        let recorded = ends.clone().find(|end| end.went() == Some(Went::Done));
        // Without an answer, or recorded before by a try of the same that had none.
        let may_be = |end: &EndTry| {
            end.effect == Effect::Unknown || end.said == Some(SettleSaid::AlreadyRecorded)
        };
        let stray = |words: String, found: &mut Found<'_>| {
            found.tell("result", words, case.lines_of(*task));
        };
        match (result, recorded) {
            (Some(result), Some(end)) if *result != end.ending.token => stray(
                format!(
                    "task {task} was done under {} and its result is {result}",
                    end.ending.token
                ),
                found,
            ),
            (Some(result), None)
                if !ends.clone().any(|end| end.ending.token == *result && may_be(end)) =>
            {
                stray(format!("task {task} has the result of nobody's: {result}"), found);
            }
            (None, Some(_)) => stray(format!("task {task} is done and its result is gone"), found),
            _ => {}
        }
    }
}
