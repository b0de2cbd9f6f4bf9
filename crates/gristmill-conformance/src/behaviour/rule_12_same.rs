//! Rule 12, same everywhere: differences between stores are declared, and what
//! is denied is refused in plain words.

use gristmill_core::{Binding, Claims, Declaration, Durability, Outcome, StoreError};

use crate::fixture::Fixture;
use crate::shape::{name, plain, secs, task};

pub(super) async fn rule_12_what_a_store_claims_fits_together(f: &mut Fixture) {
    let claims = f.capabilities();
    assert!(!claims.survives_power_cut || claims.survives_kill, "{claims:?}");
    assert!(!claims.pushes_across_processes || claims.several_processes, "{claims:?}");
    assert!(claims.meant_for > 0);
    // Both answers are checked against the claim inside.
    f.another().await;
    f.kill().await;
}

pub(super) async fn rule_12_bound_subjects_are_refused_where_they_are_denied(f: &mut Fixture) {
    let mut declaration = Declaration::new(name("bound"));
    let bind = Binding { table: "item".to_owned(), column: "id".to_owned() };
    declaration.settings.bind = Some(Some(bind));
    let answer = f.store.declare_queue(declaration).await;
    if f.capabilities().bound_subjects {
        // Without the table nothing can be promised, but the store knows the
        // thing: it accepts or says what is missing.
        assert!(!matches!(answer, Err(StoreError::NotSupported(_))), "{answer:?}");
    } else {
        assert!(matches!(answer, Err(StoreError::NotSupported(_))), "{answer:?}");
        assert!(f.store.queues().await.expect("queues").is_empty(), "and nothing is declared");
    }
}

pub(super) async fn rule_12_settings_in_force_everywhere(f: &mut Fixture) {
    // A relaxed queue behaves like any other; only what it survives differs.
    let q = f.queue_with("q", |s| s.durability = Some(Durability::Relaxed)).await;
    let ids = f.enqueue_all(&q, plain(3)).await;
    assert_eq!(f.claim_ids(&q, 10).await, ids);
    let settings = &f.store.queues().await.expect("queues")[0].settings;
    assert_eq!(settings.durability, Durability::Relaxed);
    let fenced = f.queue_with("fenced", |s| s.claims = Some(Claims::Durable)).await;
    let ids = f.enqueue_all(&fenced, plain(2)).await;
    assert_eq!(f.claim_ids(&fenced, 10).await, ids);
    let queues = f.store.queues().await.expect("queues");
    let claims: Vec<Claims> = queues.iter().map(|queue| queue.settings.claims).collect();
    assert_eq!(claims, [Claims::Async, Claims::Durable]);
    assert_eq!(settings.lease, secs(60));
    assert_eq!(settings.max_attempts, Some(5));
    assert_eq!(settings.batch_size, 100);
}

pub(super) async fn rule_12_a_settlement_and_its_follow_ups_are_one_step(f: &mut Fixture) {
    assert!(f.capabilities().atomic_follow_ups, "every store of this model has it");
    let (q, next) = (f.queue("q").await, f.queue("next").await);
    let handles = f.handles().await;
    f.enqueue_all(&q, plain(40)).await;
    let reader = handles[handles.len() - 1].clone();
    let (from, to) = (q.clone(), next.clone());
    let settling = tokio::spawn({
        let handle = f.handle();
        async move {
            for held in handle.claim_held(&from, 40).await {
                handle.settle_then(&held, Outcome::Done, &to, plain(1)).await;
            }
        }
    });
    while !settling.is_finished() {
        // One reading of the numbers: each task is on one side or the other.
        let stats = reader.store.stats().await.expect("stats");
        let total: u64 = stats.iter().map(gristmill_core::QueueStats::total).sum();
        assert_eq!(total, 40, "a reader saw a settlement without its follow-up");
        tokio::task::yield_now().await;
    }
    settling.await.expect("settlements");
    assert_eq!(f.stats(&next).await.total(), 40);
}

pub(super) async fn rule_12_a_closed_store_says_so(f: &mut Fixture) {
    let q = f.queue("q").await;
    f.enqueue(&q, task("x")).await;
    let closed = f.handle();
    closed.store.close().await.expect("a close");
    let put = gristmill_core::PutRequest { queue: q.clone(), tasks: plain(1), atomic: false };
    assert_eq!(closed.store.put(put).await, Err(StoreError::Closed));
    assert_eq!(closed.store.claim(closed.request(&q, 1)).await, Err(StoreError::Closed));
    assert_eq!(closed.store.stats().await, Err(StoreError::Closed));
    assert_eq!(closed.store.sweep().await, Err(StoreError::Closed));
    f.renew().await;
}
