//! Nothing is left over: when everything was worked off, no task waits, none is in
//! flight, none is blocked, and the store's own check finds nothing.

use super::super::case::Case;
use super::super::verdict::Found;

pub(super) fn check(case: &Case<'_>, found: &mut Found<'_>) {
    if let Some(why) = &case.standing.undrained {
        found.tell("left over", format!("it was not worked off: {why}"), Vec::new());
    }
    for task in case.standing.tasks.iter().filter(|task| task.state != "failed") {
        let blocked = if task.blocked { " and blocked" } else { "" };
        let words = format!("task {} of {} is {}{blocked}", task.task, task.queue, task.state);
        found.tell("left over", words, case.lines_of(task.task));
    }
    for finding in &case.standing.findings {
        found.tell("left over", format!("the store's own check: {finding}"), Vec::new());
    }
}
