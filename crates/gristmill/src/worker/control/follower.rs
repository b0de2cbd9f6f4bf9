//! The follower: hears the manager's word and lets processors follow it.
//!
//! The word is believed while it is renewed: what counts is that the store's
//! time on it moves, so no clock of this machine is compared with the store's.
//! Where there is no word, or it is not renewed any more, the worker rotates on
//! its own.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{Assignment, QueueName, Timestamp, WorkerId};
use gristmill_text::ControlPlane;

use crate::worker::control::shared::Shared;

/// How often the worker listens.
const LISTEN: Duration = Duration::from_secs(1);
/// ... while nobody has said anything for as long as a word holds. A manager often begins
/// together with its workers, so until then it is listened for as for one that speaks.
const LISTEN_FOR_FIRST: Duration = Duration::from_secs(14);

/// How long a word holds that is not renewed.
pub const WORD_HOLDS: Duration = Duration::from_secs(15);

/// Listens until the worker stops.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut ear = Ear::default();
    let began = shared.timer.now();
    while !shared.stop.is_asked() {
        let mut word = None;
        match shared.mill.store().assignment().await {
            Ok(heard) => {
                ear.hear(heard.as_ref(), shared.timer.now());
                word = heard;
            }
            // What was heard before holds for its time.
            Err(error) => {
                tracing::debug!(error = %error.whole(), "the manager's word was not heard")
            }
        }
        let (now, holds) = (shared.timer.now(), shared.terms.word_holds);
        let believed = ear.believes(now, holds);
        follow(&shared, word.filter(|_| believed.is_some()), believed);
        let silent = ear.heard.is_none().then(|| now.saturating_duration_since(began));
        tokio::select! {
            () = shared.timer.sleep(pause(silent, holds)) => {}
            () = shared.stop.asked() => {}
        }
    }
}

/// How long until it is listened again, after nobody has said anything since so long.
fn pause(silent: Option<Duration>, holds: Duration) -> Duration {
    let listen = LISTEN.min(holds / 3);
    match silent {
        // Nobody manages this store, most likely, and each look costs it a transaction.
        Some(silent) if silent >= holds => LISTEN_FOR_FIRST.min(holds - listen),
        _ => listen,
    }
}

/// Lets processors follow what was heard. A term without a word is one that
/// still holds while the store is away.
fn follow(shared: &Shared, word: Option<Assignment>, term: Option<u64>) {
    let mut told = false;
    shared.wish.send_if_modified(|wish| {
        let assigned = match (&word, term) {
            (Some(word), _) => {
                let served: Vec<&QueueName> = shared.served.iter().map(|s| &s.name).collect();
                let shares = shares(word, &shared.worker, &served);
                let by_hand = |number: usize| wish.moved_to(number).is_some();
                allot(&wish.assigned, &shares, wish.processors, by_hand)
            }
            (None, Some(_)) => wish.assigned.clone(),
            (None, None) => HashMap::new(),
        };
        let changed = (wish.follows.is_some() != term.is_some()) || wish.assigned != assigned;
        told = wish.follows != term;
        (wish.assigned, wish.follows) = (assigned, term);
        // A renewed word wakes nobody.
        changed
    });
    match term {
        Some(term) if told => tracing::info!(term, "the worker follows the manager"),
        None if told => tracing::info!("the manager is silent: the worker rotates on its own"),
        _ => {}
    }
}

/// This worker's part of the word.
fn shares(word: &Assignment, worker: &WorkerId, served: &[&QueueName]) -> Vec<(QueueName, usize)> {
    let mine = word.shares.iter().filter(|share| share.worker == *worker);
    mine.filter(|share| served.contains(&&share.queue))
        .map(|share| (share.queue.clone(), share.processors as usize))
        .collect()
}

/// What was heard, and whether it is renewed.
#[derive(Debug, Default)]
struct Ear {
    heard: Option<(u64, Timestamp)>,
    /// When it was last seen to be renewed.
    renewed: Option<Instant>,
}

impl Ear {
    fn hear(&mut self, word: Option<&Assignment>, now: Instant) {
        let heard = word.map(|word| (word.term, word.published_at));
        // The first one may be years old: only one that moves is believed.
        if heard.is_some() && self.heard.is_some() && heard != self.heard {
            self.renewed = Some(now);
        }
        if heard.is_none() {
            self.renewed = None;
        }
        self.heard = heard;
    }

    /// The term that is followed.
    fn believes(&self, now: Instant, holds: Duration) -> Option<u64> {
        let fresh = self.renewed.is_some_and(|at| now.saturating_duration_since(at) < holds);
        self.heard.filter(|_| fresh).map(|(term, _)| term)
    }
}

/// Which processor serves which queue: those that can stay do, and what is not
/// named rotates.
fn allot(
    before: &HashMap<usize, QueueName>,
    shares: &[(QueueName, usize)],
    processors: usize,
    by_hand: impl Fn(usize) -> bool,
) -> HashMap<usize, QueueName> {
    let mut left: Vec<(QueueName, usize)> = shares.to_vec();
    let asked: usize = left.iter().map(|(_, count)| count).sum();
    // Fewer processors than the manager thinks: it counted on some that rotate.
    let most = if asked > processors { processors.saturating_sub(1) } else { asked };
    let mut assigned = HashMap::new();
    let mut take =
        |assigned: &mut HashMap<usize, QueueName>, number, wanted: Option<&QueueName>| {
            let share = left
                .iter_mut()
                .find(|(queue, count)| *count > 0 && wanted.is_none_or(|wanted| wanted == queue));
            if let Some((queue, count)) = share
                && assigned.len() < most
            {
                *count -= 1;
                assigned.insert(number, queue.clone());
            }
        };
    let free: Vec<usize> = (0..processors).filter(|number| !by_hand(*number)).collect();
    for number in &free {
        if let Some(queue) = before.get(number) {
            take(&mut assigned, *number, Some(queue));
        }
    }
    for number in free {
        if !assigned.contains_key(&number) {
            take(&mut assigned, number, None);
        }
    }
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> QueueName {
        QueueName::new(name).expect("a name")
    }

    fn word(term: u64, second: i64) -> Assignment {
        let published_at = Timestamp::EPOCH.after(Duration::from_secs(second.unsigned_abs()));
        Assignment { term, shares: Vec::new(), published_at }
    }

    #[test]
    fn a_manager_that_begins_with_its_worker_is_heard_soon() {
        assert_eq!(pause(Some(Duration::ZERO), WORD_HOLDS), LISTEN);
        assert_eq!(pause(Some(Duration::from_secs(5)), WORD_HOLDS), LISTEN);
        // Where nobody manages, it is asked less and less than a word holds.
        assert_eq!(pause(Some(WORD_HOLDS), WORD_HOLDS), LISTEN_FOR_FIRST);
        assert_eq!(pause(None, WORD_HOLDS), LISTEN);
        let short = Duration::from_millis(300);
        assert_eq!(pause(Some(Duration::ZERO), short), Duration::from_millis(100));
        assert_eq!(pause(Some(short), short), Duration::from_millis(200));
    }

    #[test]
    fn a_word_is_believed_while_it_is_renewed() {
        let (mut ear, start) = (Ear::default(), Instant::now());
        let at = |second| start + Duration::from_secs(second);
        let holds = Duration::from_secs(15);
        ear.hear(Some(&word(3, 100)), at(0));
        assert_eq!(ear.believes(at(0), holds), None, "it may be old");
        ear.hear(Some(&word(3, 100)), at(1));
        assert_eq!(ear.believes(at(1), holds), None);
        ear.hear(Some(&word(3, 102)), at(2));
        assert_eq!(ear.believes(at(2), holds), Some(3));
        ear.hear(Some(&word(3, 102)), at(16));
        assert_eq!(ear.believes(at(16), holds), Some(3));
        assert_eq!(ear.believes(at(17), holds), None, "stale");
        ear.hear(Some(&word(4, 120)), at(20));
        assert_eq!(ear.believes(at(20), holds), Some(4));
        ear.hear(None, at(21));
        assert_eq!(ear.believes(at(21), holds), None, "absent");
    }

    #[test]
    fn processors_stay_where_they_can() {
        let nobody = |_: usize| false;
        let first = allot(&HashMap::new(), &[(name("a"), 2), (name("b"), 1)], 5, nobody);
        assert_eq!(first, HashMap::from([(0, name("a")), (1, name("a")), (2, name("b"))]));
        let next = allot(&first, &[(name("a"), 1), (name("b"), 2)], 5, nobody);
        assert_eq!(next, HashMap::from([(0, name("a")), (1, name("b")), (2, name("b"))]));
        assert!(allot(&next, &[], 5, nobody).is_empty());
    }

    #[test]
    fn with_fewer_processors_than_asked_for_one_rotates_and_hands_are_respected() {
        let shares = [(name("a"), 4)];
        assert_eq!(allot(&HashMap::new(), &shares, 4, |_| false).len(), 4, "others rotate");
        assert_eq!(allot(&HashMap::new(), &shares, 3, |_| false).len(), 2);
        let two = allot(&HashMap::new(), &[(name("a"), 2)], 3, |number| number == 0);
        assert_eq!(two, HashMap::from([(1, name("a")), (2, name("a"))]));
    }
}
