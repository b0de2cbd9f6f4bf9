//! The arrows between a task's states: which moves are legal.

use crate::State;

/// What happens to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// It is put.
    Put,
    /// A worker takes it.
    Claim,
    /// Its attempt succeeded.
    Done,
    /// It goes back to its queue: error, retry, release or expiry.
    Return,
    /// It is given up: fail, or attempts used up.
    GiveUp,
    /// An operator sends it back.
    OperatorRetry,
    /// An operator resolved it by hand.
    Resolve,
    /// An operator, or its queue's retention, deletes it.
    Discard,
    /// An operator cancels it.
    Cancel,
    /// The row it is about was deleted.
    SubjectGone,
}

impl Event {
    /// All events.
    pub const ALL: [Event; 10] = [
        Event::Put,
        Event::Claim,
        Event::Done,
        Event::Return,
        Event::GiveUp,
        Event::OperatorRetry,
        Event::Resolve,
        Event::Discard,
        Event::Cancel,
        Event::SubjectGone,
    ];
}

/// The event cannot happen in that state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this cannot happen to a task in that state")]
pub struct IllegalMove;

/// Where a task stands afterwards. `None` for the state is "not stored".
/// `Err` is an illegal move: a store that makes it is wrong.
///
/// `Done` and `Resolve` end in [`State::Done`] where the queue keeps done
/// tasks, and in deletion where it does not.
///
/// # Errors
/// When the event cannot happen in that state.
pub const fn after(
    state: Option<State>,
    event: Event,
    keeps_done: bool,
) -> Result<Option<State>, IllegalMove> {
    let kept = if keeps_done { Some(State::Done) } else { None };
    match (state, event) {
        (None, Event::Put) => Ok(Some(State::Pending)),
        (Some(State::Pending), Event::Claim) => Ok(Some(State::Processing)),
        (Some(State::Processing), Event::Done) | (Some(State::Failed), Event::Resolve) => Ok(kept),
        (Some(State::Processing), Event::Return) | (Some(State::Failed), Event::OperatorRetry) => {
            Ok(Some(State::Pending))
        }
        (Some(State::Processing), Event::GiveUp) => Ok(Some(State::Failed)),
        (Some(State::Pending | State::Processing), Event::Cancel)
        | (Some(State::Failed | State::Done), Event::Discard)
        | (Some(_), Event::SubjectGone) => Ok(None),
        _ => Err(IllegalMove),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Action;

    fn states() -> impl Iterator<Item = Option<State>> {
        State::ALL.into_iter().map(Some).chain([None])
    }

    #[test]
    fn only_a_claim_leads_to_processing() {
        for state in states() {
            for event in Event::ALL {
                for keeps in [false, true] {
                    if after(state, event, keeps) == Ok(Some(State::Processing)) {
                        assert_eq!((state, event), (Some(State::Pending), Event::Claim));
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_leaves_the_failed_list_without_a_person_or_its_subject() {
        let leaving: Vec<Event> = Event::ALL
            .into_iter()
            .filter(|e| after(Some(State::Failed), *e, false).is_ok())
            .collect();
        assert_eq!(
            leaving,
            [Event::OperatorRetry, Event::Resolve, Event::Discard, Event::SubjectGone]
        );
    }

    #[test]
    fn operators_actions_agree_with_the_arrows() {
        for state in State::ALL {
            for (action, event) in [
                (Action::Retry, Event::OperatorRetry),
                (Action::Resolve, Event::Resolve),
                (Action::Cancel, Event::Cancel),
            ] {
                assert_eq!(
                    action.applies_to(state),
                    after(Some(state), event, false).is_ok(),
                    "{action:?} on {state}"
                );
            }
        }
    }

    #[test]
    fn work_that_has_not_run_is_never_pruned() {
        for state in [State::Pending, State::Processing] {
            assert_eq!(after(Some(state), Event::Discard, false), Err(IllegalMove));
        }
    }
}
