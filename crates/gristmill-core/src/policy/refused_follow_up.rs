//! What a settlement becomes when a follow-up of it is refused: both or
//! neither, so an attempt whose follow-up cannot stand is not done.

use std::collections::HashMap;

use crate::limits::cut_middle;
use crate::{FollowUp, Limits, Outcome, PutAnswer, Refusal, SettleAnswer, Settlement};

/// What is recorded in the place of a settlement's own outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instead {
    /// How the attempt counts as ended.
    pub outcome: Outcome,
    /// What went wrong, in words; it takes the place of the outcome's own.
    pub error: String,
}

/// What the follow-ups of one settlement have wrong in themselves, whatever
/// stands in the store: one entry each.
#[must_use]
pub fn faults(follow_ups: &[FollowUp], limits: &Limits) -> Vec<Option<Refusal>> {
    let mut ids = HashMap::new();
    let fault = |FollowUp { queue, task }: &FollowUp| {
        let refusal = limits.refuse(task);
        let (None, Some(id)) = (&refusal, &task.id) else {
            return refusal;
        };
        let digest = task.payload.digest();
        // There is no first task to name: all of them are taken back.
        (*ids.entry((queue.clone(), id.clone())).or_insert(digest) != digest).then(|| {
            Refusal::Invalid(format!("the id '{id}' is another follow-up's with another payload"))
        })
    };
    follow_ups.iter().map(fault).collect()
}

/// The answers to follow-ups of which some are refused: those with their
/// reason, and every other one is not put for the first one's sake.
#[must_use]
pub fn taken_back(refusals: Vec<Option<Refusal>>) -> Vec<PutAnswer> {
    let because = refusals.iter().position(Option::is_some).unwrap_or_default();
    let undone = || Refusal::Undone { because };
    refusals.into_iter().map(|why| PutAnswer::Refused(why.unwrap_or_else(undone))).collect()
}

/// Decides what is recorded of a settlement whose follow-ups were answered like
/// this; nothing else than its outcome when none is refused.
///
/// Only *done* changes: it becomes an error, which the queue's policy repeats,
/// or a fail where no repeating cures it. Every other outcome stays what it is
/// and tells the refusal in its error's text.
#[must_use]
pub fn instead(
    outcome: &Outcome,
    follow_ups: &[FollowUp],
    answers: &[PutAnswer],
    limits: &Limits,
) -> Option<Instead> {
    let mut refused = follow_ups.iter().zip(answers).filter_map(|(follow_up, answer)| {
        match answer {
            // Its reason is a neighbour's, which is told by itself.
            PutAnswer::Refused(Refusal::Undone { .. }) => None,
            PutAnswer::Refused(why) => Some((follow_up, why)),
            _ => None,
        }
    });
    let first = refused.next()?;
    let hopeless =
        std::iter::once(first).chain(refused).find(|(_, why)| !may_be_cured_by_time(why));
    let (follow_up, why) = hopeless.unwrap_or(first);
    let refusal = format!("the follow-up to '{}' was refused: {}", follow_up.queue, reason(why));
    Some(match outcome {
        Outcome::Done if hopeless.is_some() => {
            Instead { outcome: Outcome::Fail(refusal.clone()), error: refusal }
        }
        Outcome::Done => Instead { outcome: Outcome::Error(refusal.clone()), error: refusal },
        other => {
            let error = match other.error() {
                None => refusal,
                Some(own) => {
                    // The refusal must not be what is cut off.
                    let room = limits.error_bytes.saturating_sub(refusal.len() + 2);
                    format!("{}; {refusal}", cut_middle(&own, room))
                }
            };
            Instead { outcome: other.clone(), error }
        }
    })
}

/// Why the first *done* of these that is not on record as done is not, if there
/// is one: a follow-up of it was refused. Whoever settles inside the caller's
/// transaction takes everything back then and says so.
#[must_use]
pub fn not_done(
    settlements: &[Settlement],
    answers: &[SettleAnswer],
    limits: &Limits,
) -> Option<String> {
    settlements.iter().zip(answers).find_map(|(settlement, answer)| {
        let Settlement { outcome: outcome @ Outcome::Done, follow_ups, .. } = settlement else {
            return None;
        };
        let SettleAnswer::Recorded { follow_ups: answers, .. } = answer else { return None };
        instead(outcome, follow_ups, answers, limits).map(|instead| instead.error)
    })
}

/// Whether the same follow-up may be taken later: somebody declares the queue,
/// adds the row, makes room. What is wrong in the task itself stays wrong.
const fn may_be_cured_by_time(why: &Refusal) -> bool {
    match why {
        Refusal::UnknownQueue { .. }
        | Refusal::NoSuchSubject { .. }
        | Refusal::SubjectTableGone { .. }
        | Refusal::QueueFull { .. }
        | Refusal::StoreFull { .. }
        | Refusal::Undone { .. } => true,
        Refusal::PayloadTooLarge { .. }
        | Refusal::DoesNotFit(_)
        | Refusal::IdReused { .. }
        | Refusal::Twin { .. }
        | Refusal::Invalid(_) => false,
    }
}

/// The refusal in words. A similar queue's name stays with the answer: what is
/// recorded must not change with the queues that happen to be there.
fn reason(why: &Refusal) -> String {
    match why {
        Refusal::UnknownQueue { name, .. } => format!("there is no queue '{name}'"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NewTask, QueueName, TaskId, When};
    use std::time::Duration;

    fn follow_ups(queues: &[&str]) -> Vec<FollowUp> {
        let to = |name: &&str| FollowUp {
            queue: QueueName::new(name).expect("a name"),
            task: NewTask::default(),
        };
        queues.iter().map(to).collect()
    }

    fn unknown(name: &str) -> PutAnswer {
        let suggestion = Some("similar".to_owned());
        PutAnswer::Refused(Refusal::UnknownQueue { name: name.to_owned(), suggestion })
    }

    fn too_large() -> PutAnswer {
        PutAnswer::Refused(Refusal::PayloadTooLarge { bytes: 9, limit: 8 })
    }

    fn decide(outcome: &Outcome, answers: &[PutAnswer]) -> Option<Instead> {
        instead(outcome, &follow_ups(&["a", "b", "c"]), answers, &Limits::default())
    }

    #[test]
    fn what_was_taken_or_stood_already_changes_nothing() {
        let enqueued = PutAnswer::Enqueued { id: TaskId(1) };
        let duplicate = PutAnswer::Duplicate { id: TaskId(1), run_at: None, source: None };
        let replaced = PutAnswer::Replaced { id: TaskId(1) };
        assert_eq!(decide(&Outcome::Done, &[enqueued, duplicate, replaced]), None);
        assert_eq!(instead(&Outcome::Done, &[], &[], &Limits::default()), None);
    }

    #[test]
    fn done_becomes_an_error_or_a_fail_where_time_cures_nothing() {
        let undone = PutAnswer::Refused(Refusal::Undone { because: 1 });
        let error = "the follow-up to 'b' was refused: there is no queue 'b'".to_owned();
        let decided = decide(&Outcome::Done, &[undone.clone(), unknown("b"), undone.clone()]);
        let wanted = Instead { outcome: Outcome::Error(error.clone()), error };
        assert_eq!(decided, Some(wanted));

        // The one that cannot be cured is told, wherever it stands.
        let fail = "the follow-up to 'c' was refused: the payload has 9 bytes and 8 are allowed"
            .to_owned();
        let decided = decide(&Outcome::Done, &[undone, unknown("b"), too_large()]);
        let wanted = Instead { outcome: Outcome::Fail(fail.clone()), error: fail };
        assert_eq!(decided, Some(wanted));
    }

    #[test]
    fn other_outcomes_stay_and_tell_the_refusal() {
        let refusal = "the follow-up to 'a' was refused: there is no queue 'a'";
        let at = When::After(Duration::from_secs(5));
        let said = [
            (Outcome::Error("wrong".to_owned()), format!("wrong; {refusal}")),
            (Outcome::Fail("never".to_owned()), format!("never; {refusal}")),
            (Outcome::TimedOut(Duration::from_secs(9)), format!("timed out after 9s; {refusal}")),
            (Outcome::Retry { at, reason: Some("later".to_owned()) }, format!("later; {refusal}")),
            (Outcome::Retry { at, reason: None }, refusal.to_owned()),
            (Outcome::Release { at: None, started: true }, refusal.to_owned()),
            (Outcome::Cancelled, refusal.to_owned()),
        ];
        for (outcome, error) in said {
            let wanted = Instead { outcome: outcome.clone(), error };
            assert_eq!(decide(&outcome, &[unknown("a")]), Some(wanted));
        }
        let long = Outcome::Error("ä".repeat(4096));
        let decided = decide(&long, &[unknown("a")]).expect("a decision");
        assert!(decided.error.ends_with(refusal) && decided.error.len() <= 4096);
    }

    #[test]
    fn one_id_for_two_payloads_is_a_fault_of_the_second() {
        let mut three = follow_ups(&["a", "a", "b"]);
        for (n, follow_up) in three.iter_mut().enumerate() {
            follow_up.task = NewTask::new(crate::Payload::raw(vec![n as u8]));
            follow_up.task.id = Some("x".to_owned());
        }
        let found = faults(&three, &Limits::default());
        let why = "the id 'x' is another follow-up's with another payload".to_owned();
        assert_eq!(found, [None, Some(Refusal::Invalid(why.clone())), None]);
        let answers = taken_back(found);
        let undone = PutAnswer::Refused(Refusal::Undone { because: 1 });
        assert_eq!(answers, [undone.clone(), PutAnswer::Refused(Refusal::Invalid(why)), undone]);
        // A repeat of the same payload is a duplicate, as in any put.
        for follow_up in &mut three {
            follow_up.task.payload = crate::Payload::raw(Vec::new());
        }
        assert_eq!(faults(&three, &Limits::default()), [None, None, None]);
    }
}
