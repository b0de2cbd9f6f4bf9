//! Kept counts equal the rows, and the counters equal what was acknowledged, but
//! for what is unknown.

use super::super::case::{Case, Effect, PutTry};
use super::super::event::{How, PutSaid, Went};
use super::super::verdict::Found;

pub(super) fn check(case: &Case<'_>, found: &mut Found<'_>) {
    for counted in &case.standing.counts {
        let queue = counted.queue.as_str();
        let rows = |state: &str, blocked: bool| {
            let tasks = case.standing.tasks.iter();
            let tasks = tasks.filter(|task| task.queue == queue && task.state == state);
            tasks.filter(|task| task.blocked == blocked).count() as u64
        };
        let listed = [
            rows("pending", false),
            rows("pending", true),
            rows("processing", false),
            rows("failed", false),
            rows("done", false),
        ];
        let kept = [
            counted.pending,
            counted.blocked,
            counted.processing,
            counted.failed,
            counted.done_kept,
        ];
        if listed != kept {
            let words = format!(
                "{queue}: pending, blocked, processing, failed, done are counted {kept:?} and listed {listed:?}"
            );
            found.tell("counts", words, Vec::new());
        }
        let there: u64 = kept[..4].iter().sum();
        if counted.put != there + counted.done + counted.removed {
            let words = format!("{queue}: what was put neither stands nor left: {counted:?}");
            found.tell("counts", words, Vec::new());
        }
        counters(case, found, queue, counted.put, counted.done);
    }
}

fn counters(case: &Case<'_>, found: &mut Found<'_>, queue: &str, put: u64, done: u64) {
    let of_queue = || case.puts.iter().filter(|put| put.queue == queue);
    let told = of_queue().filter(|put| put.enqueued().is_some()).count() as u64;
    let unknown = of_queue().filter(|put| put.effect == Effect::Unknown).count() as u64;
    // Put again by themselves, when their transaction committed late.
    let late =
        |put: &&PutTry| case.plan.puts_again() && matches!(put.said, Some(PutSaid::Duplicate(_)));
    let late = of_queue().filter(late).count() as u64;
    if put < told || put > told + unknown + late {
        let words = format!("{queue}: {told} puts acknowledged, {unknown} unknown, {put} counted");
        found.tell("counters", words, Vec::new());
    }
    let ends = || {
        case.ends.iter().filter(|end| {
            let life = case.lives.get(&end.ending.task);
            let take = life.and_then(|life| life.takes.first());
            take.is_some_and(|take| case.takes[*take].queue == queue)
        })
    };
    let told = ends().filter(|end| end.went() == Some(Went::Done)).count() as u64;
    let unknown = ends().filter(|end| end.effect == Effect::Unknown && end.ending.how == How::Done);
    let unknown = unknown.count() as u64;
    if done < told || done > told + unknown {
        let words = format!("{queue}: {told} done acknowledged, {unknown} unknown, {done} counted");
        found.tell("counters", words, Vec::new());
    }
}
