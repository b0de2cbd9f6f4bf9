//! The overseer of a hand: timeouts, cancels, give-backs and the stop, whether
//! or not the handler listens.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{RwLockReadGuard, RwLockWriteGuard};

use crate::worker::claim::gate::Alone;
use crate::worker::control::shared::Shared;
use crate::worker::control::stop::Phase;
use crate::worker::heartbeat::lease::Cancel;
use crate::worker::run::hand::Hand;
use crate::worker::run::runner;

/// How long a cancelled handler may take to come to an end by itself. At a stop
/// whose patience is over it is less.
const GRACE: Duration = Duration::from_secs(3);
/// How often one that must be alone says that it still waits for that.
const STILL_WAITS: Duration = Duration::from_millis(500);

/// Sees a hand through to its end: everything of it is settled, or on its way.
pub(crate) async fn work_off(shared: &Arc<Shared>, hand: &Arc<Hand>) {
    let Some(_pass) = pass(shared, hand).await else {
        shared.give_back(hand);
        return;
    };
    let (start, limit) = (shared.timer.now(), shared.terms.slow_cycle);
    let (mut slow, mut runner) = (false, 0);
    let mut board = hand.lease.board();
    loop {
        let mut running = tokio::spawn(runner::run(shared.clone(), hand.clone(), runner));
        let ignored = loop {
            let phase = shared.stop.phase();
            let why = (phase >= Phase::Cancels).then_some(Cancel::Stop);
            // Between two attempts: the next one begins now at the earliest.
            let later = || shared.timer.now() + hand.timeout;
            let mut next = hand.watch(why, GRACE).unwrap_or_else(later);
            if hand.is_ignoring(if phase >= Phase::Leaves { Duration::ZERO } else { GRACE }) {
                break true;
            }
            let others_turn = !hand.alone && shared.gate.is_someone_alone();
            if phase >= Phase::Asked || others_turn || hand.is_late() {
                shared.give_back(hand);
            }
            if !slow && shared.timer.since(start) >= limit {
                slow = true;
                let (queue, holding) = (&hand.served.name, hand.holding());
                tracing::warn!(%queue, holding, ?limit, "a cycle takes too long");
                shared.settler.slow_cycle();
                if let Some(queue) = shared.queues.last(queue) {
                    shared.mill.metrics().slow_cycle(queue.number, &queue.name);
                }
            }
            if !slow {
                next = next.min(start + limit);
            }
            next = hand.late_at().map_or(next, |late| next.min(late));
            tokio::select! {
                biased;
                ended = &mut running => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "a runner ended badly");
                    }
                    break false;
                }
                changed = board.changed() => if changed.is_err() { break false },
                () = shared.stop.beyond(phase) => {}
                () = shared.gate.someone_alone(), if !hand.alone && !others_turn => {}
                () = shared.timer.sleep_until(next) => {}
            }
        };
        // Whatever a runner left behind is settled here; one that ended well
        // left nothing.
        let (open, following) = hand.abandon();
        runner = following;
        if ignored {
            shared.abandoned.add(
                hand,
                running.abort_handle(),
                &open,
                shared.stop.phase() >= Phase::Cancels,
            );
            running.abort();
            let queue = &hand.served.name;
            tracing::warn!(%queue, "a handler ignores that it should stop; it is left alone");
        }
        for context in open {
            shared.settler.ended(hand, context, None, false, true);
        }
        if shared.stop.is_asked() {
            shared.give_back(hand);
        }
        if hand.holding() == 0 {
            return;
        }
    }
}

/// The right to run: beside others, or alone. None when the stop, the time to
/// start or one that must be alone came first: then the hand goes back.
async fn pass<'a>(shared: &'a Arc<Shared>, hand: &Hand) -> Option<Pass<'a>> {
    if hand.alone {
        let alone = shared.gate.go_alone()?;
        return tokio::select! {
            () = shared.stop.asked() => None,
            gate = alone_at_last(shared, hand) => Some(Pass::Alone(gate, alone)),
        };
    }
    if !shared.stop.is_asked()
        && !shared.gate.is_someone_alone()
        && !hand.is_late()
        && let Ok(gate) = shared.gate.running.try_read()
    {
        return Some(Pass::Beside(gate));
    }
    let late = async {
        match hand.late_at() {
            Some(late) => shared.timer.sleep_until(late).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = shared.stop.asked() => None,
        () = shared.gate.someone_alone() => None,
        gate = shared.gate.running.read() => Some(Pass::Beside(gate)),
        () = late => None,
    }
}

/// Nothing else runs, and nothing else is in this worker's hands or on its way
/// there: if the process dies now, no other task loses an attempt.
async fn alone_at_last<'a>(shared: &'a Shared, hand: &Hand) -> RwLockWriteGuard<'a, ()> {
    let mut gate = std::pin::pin!(shared.gate.running.write());
    let gate = loop {
        tokio::select! {
            gate = &mut gate => break gate,
            () = shared.timer.sleep(STILL_WAITS) => hand.tend(),
        }
    };
    // In this order: a claim that is under way is held before it is over.
    while shared.gate.is_claiming() || shared.heartbeat.holds_beside(hand.lease.token) {
        tokio::time::sleep(Duration::from_millis(2)).await;
        hand.tend();
    }
    gate
}

enum Pass<'a> {
    Beside(#[expect(dead_code, reason = "held, not read")] RwLockReadGuard<'a, ()>),
    #[expect(dead_code, reason = "held, not read")]
    Alone(RwLockWriteGuard<'a, ()>, Alone),
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use async_trait::async_trait;
    use gristmill_core::{ClaimedTask, Outcome};
    use gristmill_sqlite::rusqlite::Connection;

    use super::*;
    use crate::timer::Timer;
    use crate::worker::{Handler, Worker, heartbeat};
    use crate::{Mill, Payload};

    struct Never;

    #[async_trait]
    impl Handler for Never {
        async fn handle(&self, _: &ClaimedTask, _: &crate::worker::Context) -> Outcome {
            Outcome::Done
        }
    }

    #[tokio::test]
    async fn a_claim_under_way_is_waited_for_like_one_in_hand() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.db");
        let mill = Mill::open(&format!("sqlite://{}", file.display())).await.expect("a store");
        mill.declare_queue("q").await.expect("declared");
        for _ in 0..2 {
            mill.put_raw("q", Payload::json("1")).await.expect("put");
        }
        let worker = Worker::new(&mill).queue("q", Arc::new(Never));
        let served = worker.plan.served().await.expect("served");
        let (beats, stop) = (heartbeat::Handle::idle(Timer::default()), worker.plan.stop());
        let shared = worker.plan.shared(served, beats, stop).expect("a shared");
        let queue = shared.served.first().expect("a queue");
        let lone = shared.claim(queue, false).await.expect("a claim").found.expect("a task");
        // Asked for while the file is locked, and then left: the store gives it
        // while nobody looks.
        let other = Connection::open(&file).expect("a connection");
        other.execute_batch("BEGIN IMMEDIATE").expect("the lock");
        let mut claim = std::pin::pin!(shared.claim(queue, false));
        assert!(claim.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        other.execute_batch("ROLLBACK").expect("the lock's end");
        while mill.inspect().queue("q").await.expect("numbers").processing < 2 {
            tokio::task::yield_now().await;
        }
        let soon = Duration::from_millis(50);
        let alone = tokio::time::timeout(soon, alone_at_last(&shared, &lone.hand)).await;
        assert!(alone.is_err(), "the other task is this worker's, and would lose an attempt");
        let found = claim.await.expect("a claim").found.expect("a task");
        assert!(shared.heartbeat.holds_beside(lone.hand.lease.token));
        drop(found);
    }
}
