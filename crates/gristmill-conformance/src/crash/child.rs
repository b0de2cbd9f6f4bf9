//! A child: puts or works on the store until it is killed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{
    ClaimRequest, ClaimedTask, Declaration, NewTask, Outcome, Payload, PutAnswer, PutReport,
    PutRequest, QueueName, SettingsPatch, SettleAnswer, Settlement, Store, Token, When, WorkerId,
};

use super::record::{Answer, How, Record, Recorder};
use super::{Open, QUEUE, block_on, story};

/// Leases are short, so that the tasks of killed children come back while the
/// test runs.
const LEASE: Duration = Duration::from_millis(150);

/// The child's part of a crash test: returns at once unless the parent started
/// this process.
pub fn run(open: Open) {
    let Ok(role) = std::env::var("GRISTMILL_CRASH_ROLE") else { return };
    let folder = |name: &str| PathBuf::from(std::env::var(name).expect("the parent sets it"));
    let log = Recorder::open(&folder("GRISTMILL_CRASH_LOG"));
    let patient = std::env::var_os("GRISTMILL_CRASH_PATIENT").is_some();
    block_on(async {
        let store = open(&folder("GRISTMILL_CRASH_STORE")).await;
        let mut child = Child { queue: declare(&store).await, store, log, patient };
        match role.as_str() {
            "producer" => child.produce().await,
            "story" => story::tell(&mut child, open, &folder("GRISTMILL_CRASH_STORE")).await,
            _ => child.work().await,
        }
    });
}

/// One that puts or works. The impatient one stops at the first error: the
/// store went away under it. The patient one asks again until it is answered.
pub(super) struct Child {
    pub(super) store: Arc<dyn Store>,
    pub(super) queue: QueueName,
    pub(super) log: Recorder,
    pub(super) patient: bool,
}

/// How long a patient child waits before it asks again.
const AGAIN: Duration = Duration::from_millis(20);

/// Declares the queue the children use.
pub(super) async fn declare(store: &Arc<dyn Store>) -> QueueName {
    let queue = QueueName::new(QUEUE).expect("a name");
    let settings = SettingsPatch {
        lease: Some(LEASE),
        // A task whose workers keep being killed must not end in failed: only
        // those that a child failed may.
        max_attempts: Some(None),
        backoff: Some(gristmill_core::Backoff {
            base: Duration::from_millis(10),
            cap: Duration::from_millis(50),
            jitter: true,
        }),
        ..SettingsPatch::default()
    };
    let declaration = Declaration { settings, ..Declaration::new(queue.clone()) };
    store.declare_queue(declaration).await.expect("declared");
    queue
}

impl Child {
    async fn produce(&mut self) {
        let mut dice = Dice::new();
        loop {
            // Not more than the workers can follow, or the end takes long.
            let payloads: Vec<u64> = (0..=dice.below(8)).map(|_| dice.next() >> 1).collect();
            if self.put_noted(&payloads).await.is_err() {
                return;
            }
        }
    }

    /// Puts, and notes what was tried and what was answered.
    pub(super) async fn put_noted(&mut self, payloads: &[u64]) -> Result<(), ()> {
        for payload in payloads {
            self.log.note(&Record::PutTried { payload: *payload });
        }
        let report = self.put(payloads).await.ok_or(())?;
        for (payload, answer) in payloads.iter().zip(report.answers) {
            match answer {
                PutAnswer::Enqueued { id } => {
                    self.log.note(&Record::PutDone { payload: *payload, id: id.0 });
                }
                // The first try was recorded and its answer lost. A
                // duplicate of a key names a task with another payload,
                // so only unkeyed ones prove which put this was.
                PutAnswer::Duplicate { id, .. } if self.patient && payload % 3 != 0 => {
                    self.log.note(&Record::PutDone { payload: *payload, id: id.0 });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Puts, and if the child is patient repeats the put with the same ids
    /// until it is answered.
    async fn put(&self, payloads: &[u64]) -> Option<PutReport> {
        loop {
            let tasks = payloads
                .iter()
                .map(|payload| NewTask {
                    payload: Payload::raw(payload.to_string()),
                    key: (payload % 3 == 0).then(|| format!("key-{}", payload % 30)),
                    id: self.patient.then(|| format!("put-{payload}")),
                    ..NewTask::default()
                })
                .collect();
            let request = PutRequest { queue: self.queue.clone(), tasks, atomic: false };
            match self.store.put(request).await {
                Ok(report) => return Some(report),
                Err(_) if self.patient => tokio::time::sleep(AGAIN).await,
                Err(_) => return None,
            }
        }
    }

    async fn work(&mut self) {
        let worker = WorkerId::random().expect("an id");
        let mut dice = Dice::new();
        let mut kept: Vec<(Instant, ClaimedTask, Token)> = Vec::new();
        loop {
            let token = Token::random().expect("a token");
            let request = ClaimRequest {
                queue: self.queue.clone(),
                max: 1 + dice.below(10),
                lease: None,
                worker: worker.clone(),
                source: None,
                token,
            };
            let mark = self.store.mark();
            let claim = match self.store.claim(request).await {
                Ok(claim) => claim,
                // What it may have taken comes back when its lease runs out.
                Err(_) if self.patient => {
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
                Err(_) => return,
            };
            for task in &claim.tasks {
                let payload = String::from_utf8_lossy(&task.payload.bytes).parse();
                self.log.note(&Record::Claimed {
                    payload: payload.expect("a number"),
                    id: task.id.0,
                    claims: task.claims,
                    token: token.to_string(),
                });
            }
            for task in claim.tasks {
                if dice.below(8) == 0 {
                    // Held past its lease, and settled with a token that has
                    // most likely gone stale by then.
                    kept.push((Instant::now() + LEASE * 3 / 2, task, token));
                } else if self.settle(&mut dice, &task, token).await.is_err() {
                    return;
                }
            }
            while let Some(at) = kept.iter().position(|(due, _, _)| *due <= Instant::now()) {
                let (_, task, token) = kept.swap_remove(at);
                if self.settle(&mut dice, &task, token).await.is_err() {
                    return;
                }
            }
            let nap = claim.next_due.unwrap_or(LEASE).min(Duration::from_millis(20));
            let waited = self.store.wait(std::slice::from_ref(&self.queue), mark, nap).await;
            if waited.is_err() && !self.patient {
                return;
            }
        }
    }

    async fn settle(
        &mut self,
        dice: &mut Dice,
        task: &ClaimedTask,
        token: Token,
    ) -> Result<(), ()> {
        let (how, outcome) = match dice.below(20) {
            0 => (How::Retry, Outcome::Retry { at: When::After(Duration::ZERO), reason: None }),
            1 => (How::Release, Outcome::Release { at: None, started: true }),
            2 => (How::Fail, Outcome::Fail("on purpose".to_owned())),
            _ => (How::Done, Outcome::Done),
        };
        self.end(task, token, how, outcome).await
    }

    /// Settles, and notes what was tried and what was answered.
    pub(super) async fn end(
        &mut self,
        task: &ClaimedTask,
        token: Token,
        how: How,
        outcome: Outcome,
    ) -> Result<(), ()> {
        let (id, claims) = (task.id.0, task.claims);
        self.log.note(&Record::SettleTried { id, claims, how });
        let mut repeated = false;
        let answers = loop {
            let settlement = Settlement::new(task.id, token, outcome.clone());
            match self.store.settle(vec![settlement]).await {
                Ok(answers) => break answers,
                Err(_) if self.patient => {
                    repeated = true;
                    tokio::time::sleep(AGAIN).await;
                }
                Err(_) => return Err(()),
            }
        };
        let answer = match answers.first().ok_or(())? {
            SettleAnswer::Recorded { .. } => Answer::Recorded,
            SettleAnswer::AlreadyRecorded => Answer::AlreadyRecorded,
            // The try before may have been recorded, or another's: unknown,
            // which a settlement without a last line is.
            SettleAnswer::Gone | SettleAnswer::LeaseLost if repeated => return Ok(()),
            SettleAnswer::Gone => Answer::Gone,
            SettleAnswer::LeaseLost => Answer::LeaseLost,
        };
        self.log.note(&Record::SettleDone { id, claims, how, answer });
        Ok(())
    }
}

/// Random numbers for the children: different in each, from the operating
/// system's source.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new() -> Self {
        let bytes = Token::random().expect("randomness").to_bytes();
        Dice(u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes")) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).expect("small")
    }
}
