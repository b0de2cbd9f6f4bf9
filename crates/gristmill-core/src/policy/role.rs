//! Who gets a role that several ask for.

use std::time::Duration;

use super::reclaim_guard;
use crate::{Leadership, Timestamp, WorkerId};

/// A role as it is on record. It stays there when its holder gives it up: the
/// next term must be higher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// Who holds it, or held it last.
    pub leader: WorkerId,
    /// Grows each time it changes hands.
    pub term: u64,
    /// When it is free unless it is renewed.
    pub until: Timestamp,
    /// How long it lasts from its last renewal on; nothing once it was given up.
    pub hold: Duration,
}

impl Role {
    fn told(&self, remaining: Duration) -> Leadership {
        Leadership { leader: self.leader.clone(), term: self.term, remaining, mine: false }
    }

    /// The role once `who` gave it up; nothing if it was not held by `who`.
    #[must_use]
    pub fn given_up(self, who: &WorkerId, now: Timestamp) -> Option<Self> {
        let held = self.leader == *who && self.until > now;
        held.then_some(Role { until: now, hold: Duration::ZERO, ..self })
    }
}

/// Answers one that asks for a role or renews it, and says what to put on record
/// if that changes. `spared` says how long holders that renew so often are
/// waited for because of a jump of the clock.
///
/// Only the standing role's own length counts: by the asker's, anybody who
/// campaigns for a short time would take a living holder's role away.
pub fn campaign(
    known: Option<Role>,
    who: &WorkerId,
    hold: Duration,
    now: Timestamp,
    spared: impl FnOnce(Duration) -> Option<Duration>,
) -> (Leadership, Option<Role>) {
    let term = match known {
        None => 1,
        Some(known) => {
            // More than its length a clock gave it that was ahead.
            let until = known.until.min(now.after(known.hold));
            let mine = known.leader == *who;
            if until > now && mine {
                known.term
            } else if until > now {
                let cut = until < known.until;
                let told = known.told(until.since(now));
                return (told, cut.then_some(Role { until, ..known }));
            } else if !mine && let Some(left) = spared(reclaim_guard::spared(known.hold)) {
                // After a jump its holder has until its next renewal to say that
                // it is alive.
                return (known.told(left), None);
            } else {
                // A holder that let its time run out begins a new term: somebody
                // else may have led in between, in another process's eyes.
                known.term + 1
            }
        }
    };
    let role = Role { leader: who.clone(), term, until: now.after(hold), hold };
    (Leadership { remaining: hold, mine: true, ..role.told(hold) }, Some(role))
}
