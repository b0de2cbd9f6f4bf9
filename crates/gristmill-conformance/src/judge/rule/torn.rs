//! The answers of one put come true together, or not at all.

use super::super::case::{Case, Effect, PutTry};
use super::super::event::PutSaid;
use super::super::verdict::Found;

pub(super) fn check(case: &Case<'_>, found: &mut Found<'_>) {
    let nameless = case.nameless();
    let mut at = 0;
    while let Some(first) = case.puts.get(at) {
        let rest = &case.puts[at..];
        let many = rest.iter().take_while(|put| put.batch == first.batch).count();
        let batch = &rest[..many];
        at += many;
        if first.effect == Effect::Unknown {
            unknown(case, found, batch, nameless);
        }
        if first.atomic && first.effect == Effect::Told {
            atomic(found, batch);
        }
        if first.effect == Effect::Told && batch.iter().any(|put| put.said.is_none()) {
            let words = format!("a put of {many} tasks was not answered for each");
            found.tell("torn put", words, first.span.lines());
        }
    }
}

/// Of those that nothing but the put itself could have kept out, all or none.
fn unknown(case: &Case<'_>, found: &mut Found<'_>, batch: &[PutTry], nameless: usize) {
    let free = |put: &&PutTry| put.wanted.key.is_none() && put.wanted.id.is_none();
    let bounded = case.rules(&batch[0].queue).capacity.is_some();
    let (seen, missing): (Vec<&PutTry>, Vec<&PutTry>) =
        batch.iter().filter(free).partition(|put| case.seen.contains_key(&put.wanted.payload));
    if !seen.is_empty() && missing.len() > nameless && !bounded {
        let words = format!(
            "of one put {} tasks stand and {} do not: '{}'",
            seen.len(),
            missing.len(),
            missing[0].wanted.payload
        );
        found.tell("torn put", words, batch[0].span.lines());
    }
}

fn atomic(found: &mut Found<'_>, batch: &[PutTry]) {
    let fine = |put: &PutTry| matches!(put.said, Some(PutSaid::Enqueued(_) | PutSaid::Replaced(_)));
    let some = batch.iter().any(fine);
    if some && !batch.iter().all(fine) {
        let words = "an atomic put was half applied".to_owned();
        found.tell("torn put", words, batch[0].span.lines());
    }
}
