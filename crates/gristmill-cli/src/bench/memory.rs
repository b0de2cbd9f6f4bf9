//! The memory store: put, claim and done on one thread, beside the structure that
//! such a queue needs at least.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use gristmill::port::{NewTask, Payload, PutRequest, Token, WorkerId};
use gristmill::{Mill, QueueName, TaskType};

use super::load::{BenchError, Grain, cycle};
use super::{Plan, Rounds, Row, rate};

/// Tasks a put, claim and settlement.
const BATCH: usize = 100;

pub(super) async fn all(plan: Plan) -> Result<Row, BenchError> {
    let mut rounds = Rounds::default();
    for _ in 0..plan.rounds {
        let mill = Mill::open("memory:").await?;
        mill.declare::<Grain>().await?;
        let store = mill.store();
        let queue = QueueName::new(Grain::QUEUE).map_err(gristmill::Error::from)?;
        let worker = WorkerId::random()?;
        let start = Instant::now();
        let mut done = 0;
        while done < plan.tasks {
            let tasks = (0..BATCH)
                .map(|n| NewTask {
                    payload: Payload::raw(vec![b'x'; 100]),
                    key: (n % 10 == 0).then(|| format!("key-{n}")),
                    ..NewTask::default()
                })
                .collect();
            store.put(PutRequest { queue: queue.clone(), tasks, atomic: false }).await?;
            done += cycle(&*store, &queue, &worker, BATCH).await?;
        }
        rounds.pairs.push((rate(done, start.elapsed()), bare(plan.tasks)?));
    }
    let what = "memory: put, claim and done in 100s, one thread / bare maps under a lock";
    Ok(Row { durable: false, ..Row::against("memory_cycle", what, rounds) })
}

/// What a queue in memory needs at least: the order of what waits, the keys that
/// stand, what is leased by its token, and when leases end.
#[derive(Debug, Default)]
struct Bare {
    next: u64,
    waiting: BTreeMap<(i16, u64, u64), Entry>,
    keys: HashSet<String>,
    leased: HashMap<Token, HashMap<u64, Entry>>,
    ends: BTreeSet<(u64, Token)>,
}

#[derive(Debug)]
struct Entry {
    key: Option<String>,
    payload: Vec<u8>,
}

impl Bare {
    fn put(&mut self, key: Option<String>, payload: Vec<u8>) {
        if key.as_ref().is_none_or(|key| self.keys.insert(key.clone())) {
            self.next += 1;
            self.waiting.insert((0, self.next, self.next), Entry { key, payload });
        }
    }

    fn claim(&mut self, most: usize, token: Token) -> Vec<(u64, Vec<u8>)> {
        let mut taken = HashMap::with_capacity(most);
        let mut answer = Vec::with_capacity(most);
        while answer.len() < most {
            let Some(((_, _, id), entry)) = self.waiting.pop_first() else { break };
            if let Some(key) = &entry.key {
                self.keys.remove(key);
            }
            answer.push((id, entry.payload.clone()));
            taken.insert(id, entry);
        }
        self.ends.insert((self.next, token));
        self.leased.insert(token, taken);
        answer
    }

    fn done(&mut self, token: Token, id: u64) {
        let Some(left) = self.leased.get_mut(&token) else { return };
        left.remove(&id);
        if left.is_empty() {
            self.leased.remove(&token);
            self.ends.retain(|(_, one)| *one != token);
        }
    }
}

/// The same cycle on that.
fn bare(tasks: usize) -> Result<f64, BenchError> {
    let bare = Mutex::new(Bare::default());
    let lock = || bare.lock().unwrap_or_else(PoisonError::into_inner);
    let start = Instant::now();
    let mut done = 0;
    while done < tasks {
        {
            let mut bare = lock();
            for n in 0..BATCH {
                bare.put((n % 10 == 0).then(|| format!("key-{n}")), vec![b'x'; 100]);
            }
        }
        let token = Token::random()?;
        let taken = lock().claim(BATCH, token);
        let mut bare = lock();
        for (id, _) in &taken {
            bare.done(token, *id);
        }
        done += taken.len();
    }
    Ok(rate(done, start.elapsed()))
}
