//! The verdict: a pure function from what the children wrote down and what the
//! store holds afterwards to what went wrong.

use std::collections::{HashMap, HashSet};

use super::record::{Answer, How, Record, Timed};

/// A task the store holds afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Its id.
    pub id: i64,
    /// What was put.
    pub payload: u64,
    /// Whether it failed.
    pub failed: bool,
}

/// What a run saw: a run that saw too little proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Puts that were acknowledged.
    pub puts: usize,
    /// Puts without an answer.
    pub unknown_puts: usize,
    /// Accepted settlements.
    pub settled: usize,
    /// Settlements without an answer.
    pub unknown_settlements: usize,
    /// Settlements tried after another claim of the task was seen.
    pub stale_tried: usize,
    /// Tasks claimed more than once.
    pub redelivered: usize,
}

/// What a run shows.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What it saw.
    pub tally: Tally,
    /// Everything that must not be, in words.
    pub faults: Vec<String>,
}

#[derive(Default)]
struct Life {
    done: usize,
    failed: bool,
    unknown_end: bool,
    claims: Vec<(u64, u32)>,
}

/// Whether the power was cut. A claim may be forgotten then (it commits
/// without waiting for the disk), so its number may be given again; a kill
/// forgets nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Power {
    Steady,
    Cut,
}

/// Judges a run.
pub(crate) fn judge(records: &[Timed], standing: &[Standing], power: Power) -> Verdict {
    let mut verdict = Verdict::default();
    let mut tried: HashSet<u64> = HashSet::new();
    let mut acknowledged: HashMap<i64, u64> = HashMap::new();
    let mut lives: HashMap<i64, Life> = HashMap::new();
    let mut open_tries: HashMap<(i64, u32), (u64, How)> = HashMap::new();
    twins(&mut verdict.faults, records, standing);
    for (time, record) in records {
        match record {
            Record::PutTried { payload } => {
                tried.insert(*payload);
            }
            Record::PutDone { payload, id } => {
                if let Some(other) = acknowledged.insert(*id, *payload) {
                    let fault = format!("task {id} was given to two puts: {other} and {payload}");
                    verdict.faults.push(fault);
                }
            }
            Record::Claimed { payload, id, claims, .. } => {
                if !tried.contains(payload) {
                    verdict.faults.push(format!("task {id} appeared and nobody put it"));
                }
                let life = lives.entry(*id).or_default();
                let repeated = life.claims.iter().any(|(_, before)| before == claims);
                if repeated && power == Power::Steady {
                    verdict.faults.push(format!("claim {claims} of task {id} was given twice"));
                }
                life.claims.push((*time, *claims));
            }
            Record::SettleTried { id, claims, how } => {
                let later = lives.get(id).is_some_and(|l| l.claims.iter().any(|(_, c)| c > claims));
                verdict.tally.stale_tried += usize::from(later);
                open_tries.insert((*id, *claims), (*time, *how));
            }
            Record::SettleDone { id, claims, how, answer } => {
                let begun = open_tries.remove(&(*id, *claims)).map_or(*time, |(begun, _)| begun);
                // Recorded before: by a try of the same settlement that went
                // without an answer, for no other has its token.
                if matches!(answer, Answer::Recorded | Answer::AlreadyRecorded) {
                    verdict.tally.settled += 1;
                    let life = lives.entry(*id).or_default();
                    settled(&mut verdict.faults, life, *id, *claims, *how, begun);
                }
            }
        }
    }
    for ((id, _), (_, how)) in &open_tries {
        verdict.tally.unknown_settlements += 1;
        if matches!(how, How::Done | How::Fail) {
            lives.entry(*id).or_default().unknown_end = true;
        }
    }
    verdict.tally.puts = acknowledged.len();
    verdict.tally.unknown_puts = tried.len() - acknowledged.values().collect::<HashSet<_>>().len();
    verdict.tally.redelivered = lives.values().filter(|l| l.claims.len() > 1).count();
    hold_against(&mut verdict, &tried, &acknowledged, &lives, standing);
    verdict
}

/// A payload is put once, if with repeats: it must not be in two tasks.
fn twins(faults: &mut Vec<String>, records: &[Timed], standing: &[Standing]) {
    let mut tasks: HashMap<u64, i64> = HashMap::new();
    let claimed = records.iter().filter_map(|(_, record)| match record {
        Record::Claimed { payload, id, .. } => Some((*payload, *id)),
        _ => None,
    });
    for (payload, id) in claimed.chain(standing.iter().map(|task| (task.payload, task.id))) {
        let first = *tasks.entry(payload).or_insert(id);
        if first != id {
            faults.push(format!("one put became two tasks: {first} and {id}"));
        }
    }
}

/// An accepted settlement must be of the task's newest claim when it began.
fn settled(faults: &mut Vec<String>, life: &mut Life, id: i64, claims: u32, how: How, begun: u64) {
    if life.claims.iter().any(|(time, newer)| newer > &claims && *time < begun) {
        faults.push(format!("a stale {how:?} of claim {claims} of task {id} was accepted"));
    }
    match how {
        How::Done => {
            life.done += 1;
            if life.done > 1 {
                faults.push(format!("task {id} was accepted as done {} times", life.done));
            }
        }
        How::Fail => life.failed = true,
        How::Retry | How::Release => {}
    }
}

/// Compares what was acknowledged with what the store holds.
fn hold_against(
    verdict: &mut Verdict,
    tried: &HashSet<u64>,
    acknowledged: &HashMap<i64, u64>,
    lives: &HashMap<i64, Life>,
    standing: &[Standing],
) {
    let stands: HashMap<i64, &Standing> = standing.iter().map(|s| (s.id, s)).collect();
    for (id, payload) in acknowledged {
        let life = lives.get(id);
        let ended = life.is_some_and(|l| l.done > 0);
        let unknown = life.is_some_and(|l| l.unknown_end);
        match stands.get(id) {
            None if !ended && !unknown => {
                verdict.faults.push(format!("task {id} was acknowledged and is lost"));
            }
            Some(_) if ended => {
                verdict.faults.push(format!("task {id} was accepted as done and stands again"));
            }
            Some(task) if task.payload != *payload => {
                verdict.faults.push(format!("task {id} holds another payload than was put"));
            }
            Some(task) if life.is_some_and(|l| l.failed) && !task.failed => {
                verdict.faults.push(format!("task {id} was accepted as failed and is not"));
            }
            _ => {}
        }
    }
    for task in standing {
        if !tried.contains(&task.payload) {
            verdict.faults.push(format!("task {} stands and nobody put it", task.id));
        }
        let life = lives.get(&task.id);
        if task.failed && !life.is_some_and(|l| l.failed || l.unknown_end) {
            verdict.faults.push(format!("task {} failed and nobody failed it", task.id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(payload: u64, id: i64) -> Vec<Timed> {
        vec![(1, Record::PutTried { payload }), (2, Record::PutDone { payload, id })]
    }

    fn claimed(time: u64, payload: u64, id: i64, claims: u32) -> Timed {
        (time, Record::Claimed { payload, id, claims, token: String::new() })
    }

    fn settle(time: u64, id: i64, claims: u32, how: How) -> Vec<Timed> {
        vec![
            (time, Record::SettleTried { id, claims, how }),
            (time + 1, Record::SettleDone { id, claims, how, answer: Answer::Recorded }),
        ]
    }

    fn stands(id: i64, payload: u64) -> Standing {
        Standing { id, payload, failed: false }
    }

    #[test]
    fn an_honest_run_has_no_fault() {
        let mut records = put(5, 1);
        records.extend(put(6, 2));
        records.push(claimed(3, 5, 1, 1));
        records.extend(settle(4, 1, 1, How::Done));
        let verdict = judge(&records, &[stands(2, 6)], Power::Steady);
        assert_eq!(verdict.faults, Vec::<String>::new());
        assert_eq!((verdict.tally.puts, verdict.tally.settled), (2, 1));
    }

    #[test]
    fn what_must_not_be_is_seen() {
        let lost = judge(&put(5, 1), &[], Power::Cut);
        assert!(lost.faults[0].contains("is lost"), "{lost:?}");

        let mut records = put(5, 1);
        records.push(claimed(3, 5, 1, 1));
        records.extend(settle(4, 1, 1, How::Done));
        let again = judge(&records, &[stands(1, 5)], Power::Steady);
        assert!(again.faults[0].contains("stands again"), "{again:?}");

        records.push(claimed(7, 5, 1, 2));
        records.extend(settle(9, 1, 2, How::Done));
        let twice = judge(&records, &[], Power::Steady);
        assert!(twice.faults[0].contains("2 times"), "{twice:?}");

        let mut records = put(5, 1);
        records.push(claimed(3, 5, 1, 1));
        records.push(claimed(4, 5, 1, 2));
        records.extend(settle(5, 1, 1, How::Done));
        let stale = judge(&records, &[], Power::Steady);
        assert!(stale.faults[0].contains("stale"), "{stale:?}");
        assert_eq!(stale.tally.stale_tried, 1);

        let twins = judge(&put(5, 1), &[stands(1, 5), stands(2, 5)], Power::Steady);
        assert!(twins.faults[0].contains("two tasks"), "{twins:?}");

        let foreign = judge(&put(5, 1), &[stands(1, 5), stands(2, 99)], Power::Steady);
        assert!(foreign.faults[0].contains("nobody put it"), "{foreign:?}");
    }

    #[test]
    fn a_settlement_that_is_told_of_by_its_repeat_has_happened() {
        let mut records = put(5, 1);
        records.push(claimed(3, 5, 1, 1));
        let how = How::Fail;
        records.push((4, Record::SettleTried { id: 1, claims: 1, how }));
        let answer = Answer::AlreadyRecorded;
        records.push((9, Record::SettleDone { id: 1, claims: 1, how, answer }));
        let failed = Standing { failed: true, ..stands(1, 5) };
        assert!(judge(&records, &[failed], Power::Steady).faults.is_empty());
        let forgotten = judge(&records, &[stands(1, 5)], Power::Steady);
        assert!(forgotten.faults[0].contains("accepted as failed and is not"), "{forgotten:?}");
    }

    #[test]
    fn a_settlement_without_an_answer_may_have_happened() {
        let mut records = put(5, 1);
        records.push(claimed(3, 5, 1, 1));
        records.push((4, Record::SettleTried { id: 1, claims: 1, how: How::Done }));
        assert!(judge(&records, &[], Power::Steady).faults.is_empty());
        assert!(judge(&records, &[stands(1, 5)], Power::Steady).faults.is_empty());
    }
}
