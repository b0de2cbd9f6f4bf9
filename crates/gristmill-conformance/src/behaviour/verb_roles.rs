//! Leadership, workers' reports and the manager's word.

use std::time::Duration;

use gristmill_core::assignment::MANAGER;
use gristmill_core::{
    Assignment, HandlerStats, Leadership, ProcessorReport, Published, Share, Timestamp,
    WorkerReport,
};
use gristmill_text::ControlPlane;

use crate::fixture::Fixture;
use crate::shape::{millis, secs, worker};

async fn campaign(f: &Fixture, who: &str, hold: Duration) -> Leadership {
    f.store.campaign("role", &worker(who), hold).await.expect("an answer")
}

pub(super) async fn verb_campaign_gives_a_role_to_one(f: &mut Fixture) {
    let first = campaign(f, "ada", secs(10)).await;
    let held = |who: &str, term, remaining, mine| Leadership {
        leader: worker(who),
        term,
        remaining,
        mine,
    };
    assert_eq!(first, held("ada", 1, secs(10), true));
    f.advance(secs(4));
    assert_eq!(campaign(f, "bob", secs(10)).await, held("ada", 1, secs(6), false));
    // Renewed in time, it stays the same term.
    assert_eq!(campaign(f, "ada", secs(10)).await, held("ada", 1, secs(10), true));
    f.advance(secs(10) - millis(1));
    assert!(!campaign(f, "bob", secs(10)).await.mine);
    f.advance(millis(1));
    assert_eq!(campaign(f, "bob", secs(10)).await, held("bob", 2, secs(10), true));
    assert!(!campaign(f, "ada", secs(10)).await.mine, "it lost the role");
    // Roles are apart from each other.
    let other = f.store.campaign("other", &worker("ada"), secs(10)).await;
    assert!(other.expect("an answer").mine);
}

pub(super) async fn verb_campaign_with_a_shorter_hold_takes_nothing(f: &mut Fixture) {
    assert!(campaign(f, "ada", secs(300)).await.mine);
    f.advance(secs(1));
    assert_eq!(campaign(f, "bob", secs(1)).await.remaining, secs(299));
    f.advance(secs(2));
    assert!(!campaign(f, "bob", secs(1)).await.mine, "its holder is to renew within 300 s");
    // A renewal says how long it holds from then on.
    assert_eq!(campaign(f, "ada", secs(10)).await.remaining, secs(10));
    f.advance(secs(10));
    assert!(campaign(f, "bob", secs(300)).await.mine);
}

pub(super) async fn verb_campaign_that_races_has_one_winner(f: &mut Fixture) {
    let handles = f.handles().await;
    for term in 1..=5 {
        let mut racing = Vec::new();
        for n in 0..16 {
            let handle = handles[n % handles.len()].clone();
            racing.push(tokio::spawn(async move {
                let who = worker(&format!("w{n}"));
                handle.store.campaign("role", &who, secs(10)).await.expect("an answer")
            }));
        }
        let mut winners = 0;
        for racer in racing {
            let answer = racer.await.expect("a campaign");
            winners += usize::from(answer.mine);
            assert_eq!(answer.term, term);
        }
        assert_eq!(winners, 1);
        f.advance(secs(11));
    }
}

pub(super) async fn verb_resign_gives_the_role_up(f: &mut Fixture) {
    let resign = |who: &'static str| {
        let store = f.store.clone();
        async move { store.resign("role", &worker(who)).await.expect("an answer") }
    };
    assert!(!resign("ada").await, "nobody holds it");
    campaign(f, "ada", secs(10)).await;
    assert!(!resign("bob").await);
    assert!(!campaign(f, "bob", secs(10)).await.mine);
    assert!(resign("ada").await);
    assert!(!resign("ada").await, "once");
    let next = campaign(f, "bob", secs(10)).await;
    assert_eq!((next.mine, next.term), (true, 2));
}

pub(super) async fn verb_publish_assignment_asks_for_the_current_term(f: &mut Fixture) {
    let f = &*f;
    let q = f.queue("q").await;
    let word = |term, processors| Assignment {
        term,
        shares: vec![Share { worker: worker("w1"), queue: q.clone(), processors }],
        published_at: Timestamp::EPOCH,
    };
    assert_eq!(f.store.assignment().await, Ok(None));
    let publish = |word| async move { f.store.publish_assignment(word).await.expect("an answer") };
    assert_eq!(publish(word(1, 1)).await, Published::StaleTerm { current: 0 });
    let lead = |who| async move {
        f.store.campaign(MANAGER, &worker(who), secs(10)).await.expect("an answer").term
    };
    assert_eq!(lead("ada").await, 1);
    assert_eq!(publish(word(1, 2)).await, Published::Accepted);
    f.advance(secs(11));
    assert_eq!(lead("bob").await, 2);
    assert_eq!(publish(word(1, 3)).await, Published::StaleTerm { current: 2 });
    assert_eq!(publish(word(3, 3)).await, Published::StaleTerm { current: 2 });
    let standing = f.store.assignment().await.expect("an answer").expect("a word");
    assert_eq!(standing.shares, word(1, 2).shares, "a stale word changes nothing");
    assert_eq!(publish(word(2, 4)).await, Published::Accepted);
    let standing = f.store.assignment().await.expect("an answer").expect("a word");
    assert_eq!((standing.term, standing.published_at), (2, f.now()));
    assert_eq!(standing.shares, word(2, 4).shares);
}

/// What a worker would say of itself.
pub(super) fn report(who: &str, host: &str) -> WorkerReport {
    let queue = crate::shape::name("q");
    let handled = HandlerStats {
        processed: 9,
        errors: 2,
        retried: 1,
        duration: millis(1_500),
        last_error: Some("no route".to_owned()),
    };
    WorkerReport {
        id: worker(who),
        host: host.to_owned(),
        pid: 4_711,
        version: "0.1.0".to_owned(),
        queues: vec![queue.clone()],
        processors: vec![
            ProcessorReport { queue: Some(queue.clone()), holding: 3, cycle: millis(20) },
            ProcessorReport { queue: None, holding: 0, cycle: Duration::ZERO },
        ],
        handled: vec![(queue, handled)],
        follows_term: Some(3),
        stopping: false,
    }
}

pub(super) async fn verb_report_worker_keeps_the_last_report(f: &mut Fixture) {
    let f = &*f;
    f.queue("q").await;
    let tell = |report| async move { f.store.report_worker(report).await.expect("a report") };
    let since = f.now();
    tell(report("b", "old")).await;
    f.advance(secs(5));
    tell(report("a", "one")).await;
    tell(report("b", "two")).await;
    f.advance(secs(7));
    let workers = f.store.workers().await.expect("workers");
    let reports: Vec<_> = workers.iter().map(|view| view.report.clone()).collect();
    assert_eq!(reports, [report("a", "one"), report("b", "two")], "by id, as reported");
    assert_eq!((workers[1].since, workers[1].silent_for), (since, secs(7)));
    assert_eq!(f.store.forget_worker(&worker("a")).await, Ok(true));
    assert_eq!(f.store.forget_worker(&worker("a")).await, Ok(false));
    assert_eq!(f.store.workers().await.expect("workers").len(), 1);
}

pub(super) async fn verb_report_worker_is_forgotten_after_a_long_silence(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.lease = Some(secs(9_000))).await;
    let id = f.enqueue(&q, crate::shape::task("x")).await;
    f.store.report_worker(report("w1", "host")).await.expect("a report");
    f.claim_one(&q).await;
    f.advance(secs(3_500));
    assert_eq!(f.store.sweep().await.expect("a sweep").forgotten_documents, 0);
    f.advance(secs(200));
    assert_eq!(f.store.sweep().await.expect("a sweep").forgotten_documents, 1);
    assert!(f.store.workers().await.expect("workers").is_empty());
    assert!(f.the(id).await.lease.is_some(), "leases have deadlines of their own");
}
