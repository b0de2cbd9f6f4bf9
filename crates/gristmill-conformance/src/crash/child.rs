//! A child: puts or works on the store until it is killed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{
    ClaimRequest, ClaimedTask, Declaration, NewTask, Outcome, Payload, PutAnswer, PutRequest,
    QueueName, SettingsPatch, SettleAnswer, Settlement, Store, Token, When, WorkerId,
};

use super::record::{Answer, How, Record, Recorder};
use super::{Open, QUEUE};

/// Leases are short, so that the tasks of killed children come back while the
/// test runs.
const LEASE: Duration = Duration::from_millis(150);

/// The child's part of a crash test: returns at once unless the parent started
/// this process.
pub fn run(open: Open) {
    let Ok(role) = std::env::var("GRISTMILL_CRASH_ROLE") else { return };
    let folder = |name: &str| PathBuf::from(std::env::var(name).expect("the parent sets it"));
    let store = open(&folder("GRISTMILL_CRASH_STORE"));
    let log = Recorder::open(&folder("GRISTMILL_CRASH_LOG"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        match role.as_str() {
            "producer" => produce(store, log).await,
            _ => work(store, log).await,
        }
    });
}

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

async fn produce(store: Arc<dyn Store>, mut log: Recorder) {
    let queue = declare(&store).await;
    let mut dice = Dice::new();
    loop {
        // Not more than the workers can follow, or the end takes long.
        let payloads: Vec<u64> = (0..=dice.below(8)).map(|_| dice.next() >> 1).collect();
        for payload in &payloads {
            log.note(&Record::PutTried { payload: *payload });
        }
        let tasks = payloads
            .iter()
            .map(|payload| NewTask {
                payload: Payload::raw(payload.to_string()),
                key: (payload % 3 == 0).then(|| format!("key-{}", payload % 30)),
                ..NewTask::default()
            })
            .collect();
        let request = PutRequest { queue: queue.clone(), tasks, atomic: false };
        // An error means the store went away under us (a power cut): stop.
        let Ok(report) = store.put(request).await else { return };
        for (payload, answer) in payloads.iter().zip(report.answers) {
            if let PutAnswer::Enqueued { id } = answer {
                log.note(&Record::PutDone { payload: *payload, id: id.0 });
            }
        }
    }
}

async fn work(store: Arc<dyn Store>, mut log: Recorder) {
    let queue = declare(&store).await;
    let worker = WorkerId::random().expect("an id");
    let mut dice = Dice::new();
    let mut kept: Vec<(Instant, ClaimedTask, Token)> = Vec::new();
    loop {
        let token = Token::random().expect("a token");
        let request = ClaimRequest {
            queue: queue.clone(),
            max: 1 + dice.below(10),
            lease: None,
            worker: worker.clone(),
            source: None,
            token,
        };
        let mark = store.mark();
        let Ok(claim) = store.claim(request).await else { return };
        for task in &claim.tasks {
            let payload = String::from_utf8_lossy(&task.payload.bytes).parse().expect("a number");
            log.note(&Record::Claimed {
                payload,
                id: task.id.0,
                claims: task.claims,
                token: token.to_string(),
            });
        }
        for task in claim.tasks {
            if dice.below(8) == 0 {
                // Held past its lease, and settled with a token that has most
                // likely gone stale by then.
                kept.push((Instant::now() + LEASE * 3 / 2, task, token));
            } else if settle(&store, &mut log, &mut dice, &task, token).await.is_err() {
                return;
            }
        }
        while let Some(at) = kept.iter().position(|(due, _, _)| *due <= Instant::now()) {
            let (_, task, token) = kept.swap_remove(at);
            if settle(&store, &mut log, &mut dice, &task, token).await.is_err() {
                return;
            }
        }
        let nap = claim.next_due.unwrap_or(LEASE).min(Duration::from_millis(20));
        if store.wait(std::slice::from_ref(&queue), mark, nap).await.is_err() {
            return;
        }
    }
}

async fn settle(
    store: &Arc<dyn Store>,
    log: &mut Recorder,
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
    let (id, claims) = (task.id.0, task.claims);
    log.note(&Record::SettleTried { id, claims, how });
    let settlement = Settlement::new(task.id, token, outcome);
    let answers = store.settle(vec![settlement]).await.map_err(drop)?;
    let answer = match answers.first().ok_or(())? {
        SettleAnswer::Recorded { .. } => Answer::Recorded,
        SettleAnswer::AlreadyRecorded => Answer::AlreadyRecorded,
        SettleAnswer::Gone => Answer::Gone,
        SettleAnswer::LeaseLost => Answer::LeaseLost,
    };
    log.note(&Record::SettleDone { id, claims, how, answer });
    Ok(())
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
