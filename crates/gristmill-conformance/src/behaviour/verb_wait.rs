//! Waiting for work: a hint that comes when something may be claimable, and
//! the follow-ups of a settlement.

use std::time::{Duration, Instant};

use gristmill_core::{
    Action, Became, FollowUp, Outcome, PutAnswer, Refusal, SettleAnswer, Settlement,
};

use crate::fixture::Fixture;
use crate::handle::Handle;
use crate::shape::{Shape, millis, name, plain, secs, task};

/// Far longer than a hint may take, far shorter than a behaviour may.
const LONG: Duration = Duration::from_secs(10);

/// Asserts that a wait on `waiter` ends early through what `wake` does.
async fn woken(waiter: &Handle, queue: &str, wake: impl Future<Output = ()>) {
    let queues = [name(queue)];
    let mark = waiter.store.mark();
    let started = Instant::now();
    let waiting = waiter.store.wait(&queues, mark, LONG);
    let (answer, ()) = tokio::join!(waiting, wake);
    answer.expect("a wait");
    assert!(started.elapsed() < LONG, "it waited {:?}", started.elapsed());
}

pub(super) async fn verb_wait_ends_with_a_put(f: &mut Fixture) {
    let (q, _r) = (f.queue("q").await, f.queue("r").await);
    f.claim_none(&q).await;
    woken(f, "q", async {
        f.enqueue(&q, task("x")).await;
    })
    .await;
}

pub(super) async fn verb_wait_misses_nothing_since_its_mark(f: &mut Fixture) {
    let q = f.queue("q").await;
    let mark = f.store.mark();
    f.claim_none(&q).await;
    f.enqueue(&q, task("x")).await;
    // The put came between the claim and the wait: it ends at once.
    let started = Instant::now();
    f.store.wait(std::slice::from_ref(&q), mark, LONG).await.expect("a wait");
    assert!(started.elapsed() < LONG, "it waited {:?}", started.elapsed());
}

pub(super) async fn verb_wait_ends_with_whatever_makes_work(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.slots = Some(Some(1))).await;
    f.enqueue_all(&q, plain(2)).await;
    let held = f.claim_one(&q).await;
    f.claim_none(&q).await;
    // A slot becomes free.
    woken(f, "q", async { f.end(&held, Outcome::Fail("never".to_owned())).await }).await;
    let other = f.claim_one(&q).await;
    f.end(&other, Outcome::Done).await;
    f.claim_none(&q).await;
    // An operator sends a failed task back.
    woken(f, "q", async {
        f.operate(Action::Retry, &[held.id]).await;
    })
    .await;
    let held = f.claim_one(&q).await;
    // An expired lease is taken back.
    f.advance(secs(61));
    woken(f, "q", async {
        assert_eq!(f.reclaim().await, 1);
    })
    .await;
    assert_eq!(f.claim_one(&q).await.id, held.id);
}

pub(super) async fn verb_wait_ends_when_a_key_becomes_free(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue(&q, task("one").keyed("k")).await;
    let held = f.claim_one(&q).await;
    f.enqueue(&q, task("two").keyed("k")).await;
    f.claim_none(&q).await;
    woken(f, "q", async { f.end(&held, Outcome::Done).await }).await;
    f.claim_one(&q).await;
}

pub(super) async fn verb_wait_ends_with_a_put_of_another_process(f: &mut Fixture) {
    let q = f.queue("q").await;
    let Some(other) = f.another().await else {
        return;
    };
    let mut waits = Vec::new();
    for _ in 0..9 {
        let started = Instant::now();
        woken(&other, "q", async {
            f.enqueue(&q, task("x")).await;
        })
        .await;
        waits.push(started.elapsed());
        other.claim_one(&q).await;
    }
    // The middle one, for a busy machine delays some: who only looks every second
    // is found out all the same.
    waits.sort_unstable();
    assert!(waits[4] < millis(250), "{waits:?}");
}

pub(super) async fn verb_wait_ends_at_its_timeout(f: &mut Fixture) {
    let q = f.queue("q").await;
    // A worker that has nothing to do rests in this call: one that came back at
    // once would keep a core busy. Something that happened before may still wake
    // it once, so the rest is looked for.
    let rested = |at_least: Duration, times: usize| {
        let (q, store) = (q.clone(), f.store.clone());
        async move {
            for _ in 0..times {
                let (mark, started) = (store.mark(), Instant::now());
                store.wait(std::slice::from_ref(&q), mark, at_least).await.expect("a wait");
                if started.elapsed() >= at_least {
                    return true;
                }
            }
            false
        }
    };
    assert!(rested(Duration::ZERO, 1).await);
    assert!(rested(millis(60), 5).await, "it never waited as long as it was asked to");
}

pub(super) async fn verb_settle_puts_follow_ups_with_their_answers(f: &mut Fixture) {
    let (q, next) = (f.queue("q").await, f.queue("next").await);
    let standing = f.enqueue(&next, task("standing").keyed("k")).await;
    f.enqueue(&q, task("x")).await;
    let held = f.claim_one(&q).await;
    let follow_up = |queue: &str, task| FollowUp { queue: name(queue), task };
    let settlement = Settlement {
        follow_ups: vec![
            follow_up("next", task("a").delayed(5)),
            follow_up("next", task("b").keyed("k")),
            follow_up("q", task("e")),
        ],
        ..Settlement::new(held.id, held.token, Outcome::Done)
    };
    let answer = f.settle_full(settlement).await;
    let SettleAnswer::Recorded { became: Became::Done, follow_ups } = answer else {
        panic!("it was not recorded: {answer:?}")
    };
    assert!(follow_ups[0].is_enqueued() && follow_ups[2].is_enqueued(), "{follow_ups:?}");
    assert_eq!(follow_ups[1].id(), Some(standing));
    assert_eq!((f.stats(&next).await.delayed, f.stats(&q).await.ready), (1, 1));
    assert_eq!(f.stats(&next).await.counters.put, 2);

    let held = f.claim_one(&q).await;
    let answer = f.settle_then(&held, Outcome::Done, &name("nex"), plain(1)).await;
    let SettleAnswer::Recorded { follow_ups, .. } = answer else { panic!("{answer:?}") };
    let suggestion = Some("next".to_owned());
    let unknown = Refusal::UnknownQueue { name: "nex".to_owned(), suggestion };
    assert_eq!(follow_ups, [PutAnswer::Refused(unknown)], "the answer suggests a name");
}

pub(super) async fn verb_settle_puts_follow_ups_of_every_outcome(f: &mut Fixture) {
    let (q, next) = (f.queue("q").await, f.queue("next").await);
    let outcomes = [
        Outcome::Error("wrong".to_owned()),
        Outcome::Fail("never".to_owned()),
        Outcome::Release { at: None, started: false },
        Outcome::Cancelled,
    ];
    for (n, outcome) in outcomes.into_iter().enumerate() {
        f.enqueue(&q, task("x").at_priority(-(n as i16))).await;
        let held = f.claim_one(&q).await;
        let answer = f.settle_then(&held, outcome.clone(), &next, plain(1)).await;
        assert!(answer.is_recorded());
        assert_eq!(f.stats(&next).await.total(), n as u64 + 1, "{outcome:?}");
    }
}
