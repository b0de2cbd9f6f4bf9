//! Settlements that somebody's open transaction holds up: they wait aside, so
//! that nobody else's do.
//!
//! What holds one up is the lease, which a handler settles in its own
//! transaction, or the key of a follow-up. So they wait lease by lease, and of a
//! lease those without follow-ups together: they are held up all or none.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gristmill_core::{Settlement, Token};
use tokio::sync::Notify;

use crate::worker::settle::pending::Pending;

/// Where they wait.
#[derive(Default)]
pub(crate) struct Aside {
    waiting: Mutex<Waiting>,
    wake: Notify,
}

#[derive(Default)]
struct Waiting {
    turns: VecDeque<Vec<Pending>>,
    /// How many wait of each lease, those in their turn included.
    leases: HashMap<Token, usize>,
}

impl Aside {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Lists and numbers are valid whatever a panicking holder did.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These were held up together, by one of them at least.
    pub(crate) fn add(&self, list: Vec<Pending>) {
        let mut waiting = self.lock();
        for pending in &list {
            *waiting.leases.entry(pending.settlement.token).or_default() += 1;
        }
        waiting.turns.extend(parts(list, |pending| &pending.settlement));
        drop(waiting);
        self.wake();
    }

    /// Takes those aside whose lease has some here already, and returns the
    /// others.
    pub(crate) fn join(&self, list: Vec<Pending>) -> Vec<Pending> {
        let (same, others): (Vec<_>, Vec<_>) = {
            let waiting = self.lock();
            if waiting.leases.is_empty() {
                return list;
            }
            list.into_iter().partition(|p| waiting.leases.contains_key(&p.settlement.token))
        };
        if !same.is_empty() {
            self.add(same);
        }
        others
    }

    /// How many there are.
    pub(crate) fn waiting(&self) -> u64 {
        self.lock().leases.values().map(|count| *count as u64).sum()
    }

    /// Whose turn it is.
    pub(crate) fn next(&self) -> Option<Vec<Pending>> {
        self.lock().turns.pop_front()
    }

    /// They had their turn in vain, and have another one in smaller parts.
    pub(crate) fn again(&self, turn: Vec<Pending>) {
        let parts = parts(turn, |pending| &pending.settlement);
        self.lock().turns.extend(parts);
    }

    /// They had their turn and are aside no more.
    pub(crate) fn settled(&self, turn: &[Pending]) {
        let mut waiting = self.lock();
        for pending in turn {
            let token = pending.settlement.token;
            if let Some(count) = waiting.leases.get_mut(&token) {
                *count -= 1;
                if *count == 0 {
                    waiting.leases.remove(&token);
                }
            }
        }
    }

    /// Tells who waits for [`Aside::woken`] that there is something to do.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }
}

/// What was held up together, in parts that may not be: by lease; of one lease
/// those without follow-ups and the others; and of those with follow-ups the
/// halves. What cannot be held up but together stays together.
fn parts<T>(list: Vec<T>, of: impl Fn(&T) -> &Settlement) -> Vec<Vec<T>> {
    let mut leases: Vec<(Token, Vec<T>)> = Vec::new();
    for one in list {
        let token = of(&one).token;
        match leases.iter_mut().find(|(same, _)| *same == token) {
            Some((_, list)) => list.push(one),
            None => leases.push((token, vec![one])),
        }
    }
    if leases.len() > 1 {
        return leases.into_iter().map(|(_, list)| list).collect();
    }
    let whole = leases.into_iter().flat_map(|(_, list)| list);
    let (plain, mut puts): (Vec<_>, Vec<_>) = whole.partition(|one| of(one).follow_ups.is_empty());
    if !plain.is_empty() {
        return [plain, puts].into_iter().filter(|part| !part.is_empty()).collect();
    }
    let second = puts.split_off(puts.len() / 2);
    [puts, second].into_iter().filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use gristmill_core::{FollowUp, NewTask, Outcome, QueueName, TaskId};

    use super::*;

    fn settlement(id: i64, lease: u8, puts: bool) -> Settlement {
        let queue = QueueName::new("q").expect("a name");
        let mut made = Settlement::new(TaskId(id), Token::from_bytes([lease; 16]), Outcome::Done);
        made.follow_ups =
            puts.then(|| FollowUp { queue, task: NewTask::default() }).into_iter().collect();
        made
    }

    fn ids(list: Vec<Settlement>) -> Vec<Vec<i64>> {
        let parts = parts(list, |settlement| settlement);
        parts.into_iter().map(|part| part.iter().map(|s| s.id.0).collect()).collect()
    }

    #[test]
    fn leases_part_first_then_follow_ups_then_halves() {
        let all = vec![
            settlement(1, 1, false),
            settlement(2, 2, true),
            settlement(3, 1, true),
            settlement(4, 1, false),
        ];
        assert_eq!(ids(all), [vec![1, 3, 4], vec![2]]);
        let one = vec![settlement(1, 1, false), settlement(3, 1, true), settlement(4, 1, false)];
        assert_eq!(ids(one), [vec![1, 4], vec![3]]);
        let puts = (1..=5).map(|id| settlement(id, 1, true)).collect();
        assert_eq!(ids(puts), [vec![1, 2], vec![3, 4, 5]]);
    }

    #[test]
    fn what_is_held_up_together_stays_together() {
        let plain = (1..=3).map(|id| settlement(id, 1, false)).collect();
        assert_eq!(ids(plain), [vec![1, 2, 3]]);
        assert_eq!(ids(vec![settlement(1, 1, true)]), [vec![1]]);
    }
}
