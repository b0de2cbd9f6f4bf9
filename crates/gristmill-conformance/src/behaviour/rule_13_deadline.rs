//! Rule 13, nothing hangs: who waits has an end. What only a store with a server
//! can meet (a silent peer, a frozen one) is shown in that store's own tests.

use std::time::{Duration, Instant};

use gristmill_core::StoreError;

use crate::fixture::Fixture;
use crate::shape::millis;

/// Far longer than an end may take, far shorter than a behaviour may.
const LONG: Duration = Duration::from_secs(10);

pub(super) async fn rule_13_a_wait_ends_with_its_time(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.claim_none(&q).await;
    let begun = Instant::now();
    f.store.wait(&[q], f.store.mark(), millis(50)).await.expect("a wait");
    assert!(begun.elapsed() < LONG, "it waited {:?}", begun.elapsed());
}

pub(super) async fn rule_13_a_close_ends_who_waits(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.claim_none(&q).await;
    let closed = f.handle();
    let (queues, mark) = ([q], closed.store.mark());
    let begun = Instant::now();
    // The wait is first polled before the close.
    let (waited, ended) =
        tokio::join!(closed.store.wait(&queues, mark, LONG), closed.store.close());
    ended.expect("a close");
    assert_eq!(waited, Err(StoreError::Closed));
    assert!(begun.elapsed() < LONG, "it waited {:?}", begun.elapsed());
    f.renew().await;
}
