//! Who gets a role that several ask for.

use std::time::Duration;

use crate::{Document, Expects, Leadership, WorkerId};

/// A role as it is on record. It stays there when its holder gives it up: the
/// next term must be higher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// Who holds it, or held it last.
    pub leader: WorkerId,
    /// Grows each time it changes hands.
    pub term: u64,
    /// How long it lasts from its last renewal on; nothing once it was given up.
    pub hold: Duration,
}

impl Role {
    /// What one who asks and does not get it is told.
    #[must_use]
    pub fn told(&self, remaining: Duration) -> Leadership {
        Leadership { leader: self.leader.clone(), term: self.term, remaining, mine: false }
    }

    /// The role once `who` gave it up; nothing if it was not held by `who`.
    #[must_use]
    pub fn given_up(self, who: &WorkerId, record: &Document) -> Option<Self> {
        let held = self.leader == *who && record.age() < self.hold;
        held.then_some(Role { hold: Duration::ZERO, ..self })
    }
}

/// What becomes of a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Campaign {
    /// Somebody else holds the role.
    Lost(Leadership),
    /// This goes on record, if the record is as expected; then that is the answer.
    Record(Role, Expects, Leadership),
}

/// Answers one that asks for a role or renews it.
///
/// Only the standing role's own length counts: by the asker's, anybody who
/// campaigns for a short time would take a living holder's role away.
#[must_use]
pub fn campaign(known: Option<(&Role, &Document)>, who: &WorkerId, hold: Duration) -> Campaign {
    let won = |term, expects| {
        let role = Role { leader: who.clone(), term, hold };
        let answer = Leadership { mine: true, ..role.told(hold) };
        Campaign::Record(role, expects, answer)
    };
    let Some((role, record)) = known else { return won(1, Expects::Absent) };
    let as_read = Expects::Version(record.version);
    let left = role.hold.saturating_sub(record.age());
    match (role.leader == *who, left.is_zero()) {
        (true, false) => won(role.term, as_read),
        // A holder that let its time run out begins a new term: somebody else may have
        // led in between, in another process's eyes.
        (true, true) => won(role.term + 1, as_read),
        // After a jump its holder has until its next renewal to say that it is alive:
        // the store knows, and tells how long that is.
        (false, true) => {
            won(role.term + 1, Expects::Aged { version: record.version, least: role.hold })
        }
        // It has its length left and not more: renewed in its name, from now on.
        (false, false) if record.is_ahead() => {
            Campaign::Record(role.clone(), as_read, role.told(left))
        }
        (false, false) => Campaign::Lost(role.told(left)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    const SECOND: Duration = Duration::from_secs(1);

    fn record(age: u32) -> Document {
        let changed_at = Timestamp::EPOCH.after(SECOND * 100);
        Document {
            kind: "role".to_owned(),
            name: "r".to_owned(),
            version: 7,
            body: String::new(),
            created_at: Timestamp::EPOCH,
            changed_at,
            keep: None,
            read_at: changed_at.after(SECOND * age),
        }
    }

    fn asks(who: &str, record: &Document) -> Campaign {
        let role = Role { leader: WorkerId::stored("ada"), term: 3, hold: SECOND * 10 };
        campaign(Some((&role, record)), &WorkerId::stored(who), SECOND * 4)
    }

    fn recorded(campaign: Campaign) -> (u64, Expects, bool) {
        match campaign {
            Campaign::Record(role, expects, answer) => (role.term, expects, answer.mine),
            Campaign::Lost(answer) => panic!("{answer:?}"),
        }
    }

    #[test]
    fn a_holder_keeps_its_term_while_its_time_lasts() {
        let as_read = Expects::Version(7);
        assert_eq!(recorded(asks("ada", &record(9))), (3, as_read, true));
        assert_eq!(recorded(asks("ada", &record(10))), (4, as_read, true));
    }

    #[test]
    fn somebody_else_waits_for_its_time_and_has_the_store_judge_it() {
        assert!(
            matches!(asks("bob", &record(9)), Campaign::Lost(told) if told.remaining == SECOND)
        );
        let aged = Expects::Aged { version: 7, least: SECOND * 10 };
        assert_eq!(recorded(asks("bob", &record(10))), (4, aged, true));
    }

    #[test]
    fn a_term_that_was_written_ahead_lasts_its_length_and_not_more() {
        let ahead = Document { read_at: Timestamp::EPOCH, ..record(0) };
        assert_eq!(recorded(asks("bob", &ahead)), (3, Expects::Version(7), false));
    }

    #[test]
    fn a_role_is_given_up_by_who_has_it() {
        let role = || Role { leader: WorkerId::stored("ada"), term: 3, hold: SECOND * 10 };
        let gives = |who: &str, age| role().given_up(&WorkerId::stored(who), &record(age));
        assert_eq!(gives("ada", 9), Some(Role { hold: Duration::ZERO, ..role() }));
        assert_eq!((gives("bob", 9), gives("ada", 10)), (None, None));
    }
}
