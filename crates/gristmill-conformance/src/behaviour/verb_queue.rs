//! Queues: declared, numbered, overridden, reset, under a contract, and their
//! minutes.

use gristmill_core::policy::keeping;
use gristmill_core::{
    Backoff, ContractAnswer, ContractChange, Declaration, Minute, OnDuplicate, Origin, Outcome,
    SettingsPatch, StoreError, Unique, Waits, When,
};

use crate::fixture::Fixture;
use crate::shape::{Shape, name, plain, secs, task};

fn lease(seconds: u64) -> SettingsPatch {
    SettingsPatch { lease: Some(secs(seconds)), ..SettingsPatch::default() }
}

pub(super) async fn verb_declare_queue_numbers_queues(f: &mut Fixture) {
    let declare = |queue: &str, number| Declaration { number, ..Declaration::new(name(queue)) };
    let first = f.store.declare_queue(declare("first", None)).await.expect("declared");
    assert!(first.created);
    assert_eq!(first.queue.number, 10_000);
    assert_eq!(first.queue.created_at, f.now());
    let contracted = f.store.declare_queue(declare("contracted", Some(7))).await;
    assert_eq!(contracted.expect("declared").queue.number, 7);
    let second = f.store.declare_queue(declare("second", None)).await.expect("declared");
    assert_eq!(second.queue.number, 10_001);
    let again = f.store.declare_queue(declare("contracted", Some(7))).await.expect("declared");
    assert!(!again.created && again.changes.is_empty());
    for (queue, number) in [("other", 7), ("contracted", 8), ("zero", 0), ("high", 10_000)] {
        let refused = f.store.declare_queue(declare(queue, Some(number))).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{queue} {number}: {refused:?}");
    }
    let numbers: Vec<_> =
        f.store.queues().await.expect("queues").iter().map(|queue| queue.number).collect();
    assert_eq!(numbers, [7, 10_000, 10_001], "by number, and nothing half declared");
}

pub(super) async fn verb_declare_queue_lets_later_origins_win(f: &mut Fixture) {
    let f = &*f;
    let declare = |origin, settings| {
        let declaration = Declaration { origin, settings, ..Declaration::new(name("q")) };
        async move { f.store.declare_queue(declaration).await.expect("declared") }
    };
    let code = declare(Origin::Code, lease(30)).await;
    assert_eq!(code.queue.settings.lease, secs(30));
    let both = SettingsPatch { capacity: Some(Some(5)), ..lease(20) };
    let contract = declare(Origin::Contract, both).await;
    assert_eq!(contract.queue.settings.lease, secs(30), "code is stronger");
    assert_eq!(contract.queue.settings.capacity, Some(5));
    let changes: Vec<_> = contract.changes.iter().map(|(setting, ..)| *setting).collect();
    assert_eq!(changes, ["capacity"], "what is in force now and was not");
    // What an origin says replaces what it said before.
    let silent = declare(Origin::Code, SettingsPatch::default()).await;
    assert_eq!(silent.queue.settings.lease, secs(20));
    let origins: Vec<_> = silent.queue.declared.iter().map(|(origin, _)| *origin).collect();
    assert_eq!(origins, [Origin::Contract, Origin::Code], "weakest first");
}

pub(super) async fn verb_declare_queue_refuses_contradictions(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.lease = Some(secs(30))).await;
    let bad = [
        lease(0),
        SettingsPatch { max_attempts: Some(Some(0)), ..SettingsPatch::default() },
        SettingsPatch { capacity: Some(Some(0)), ..SettingsPatch::default() },
        SettingsPatch { slots: Some(Some(0)), ..SettingsPatch::default() },
        SettingsPatch {
            unique: Some(Unique::Active),
            on_duplicate: Some(OnDuplicate::Replace),
            ..SettingsPatch::default()
        },
    ];
    let before = f.store.queues().await;
    for settings in bad {
        let declaration =
            Declaration { settings: settings.clone(), ..Declaration::new(name("other")) };
        let refused = f.store.declare_queue(declaration).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{settings:?}: {refused:?}");
        let refused = f.store.override_queue(&q, settings.clone(), "operator").await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{settings:?}: {refused:?}");
    }
    assert_eq!(f.store.queues().await, before, "nothing changed");
}

pub(super) async fn verb_override_queue_wins_until_it_is_reset(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.lease = Some(secs(30))).await;
    f.advance(secs(3));
    let changed = f.store.override_queue(&q, lease(90), "ada").await.expect("an override");
    assert!(!changed.created);
    assert_eq!(changed.queue.settings.lease, secs(90));
    assert_eq!(changed.changes.len(), 1);
    // A second change comes on top of the first; a declaration does not win.
    f.override_with(&q, |s| s.max_attempts = Some(None)).await;
    let declaration = Declaration { settings: lease(10), ..Declaration::new(q.clone()) };
    let queue = f.store.declare_queue(declaration).await.expect("declared").queue;
    assert_eq!((queue.settings.lease, queue.settings.max_attempts), (secs(90), None));
    let overridden = queue.overridden.expect("an override");
    assert_eq!((overridden.by.as_str(), overridden.at), ("operator", f.now()));
    f.enqueue(&q, task("x")).await;
    assert_eq!(f.claim(&q, 1).await.lease, secs(90));
    let reset = f.store.reset_queue(&q, "ada").await.expect("a reset").queue;
    assert_eq!(reset.overridden, None);
    assert_eq!((reset.settings.lease, reset.settings.max_attempts), (secs(10), Some(5)));
}

pub(super) async fn verb_override_queue_is_in_force_for_standing_tasks(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.backoff = Some(Backoff::default())).await;
    let id = f.enqueue(&q, task("x")).await;
    let held = f.claim_one(&q).await;
    f.override_with(&q, |s| s.max_attempts = Some(Some(1))).await;
    f.end(&held, Outcome::Error("wrong".to_owned())).await;
    assert_eq!(f.the(id).await.state, gristmill_core::State::Failed);
}

pub(super) async fn verb_queues_are_known_or_an_error(f: &mut Fixture) {
    f.queue("emails").await;
    let absent = name("emailz");
    let suggestion = Some("emails".to_owned());
    let unknown = StoreError::UnknownQueue { name: "emailz".to_owned(), suggestion };
    let patch = SettingsPatch::default;
    assert_eq!(f.store.override_queue(&absent, patch(), "x").await, Err(unknown.clone()));
    assert_eq!(f.store.reset_queue(&absent, "x").await, Err(unknown.clone()));
    assert_eq!(f.store.pause_queue(&absent, true, "x").await, Err(unknown.clone()));
    assert_eq!(f.store.minutes(&absent, secs(60)).await, Err(unknown.clone()));
    let change =
        ContractChange { queue: absent, text: String::new(), replaces: None, breaking: false };
    assert_eq!(f.store.register_contract(change).await, Err(unknown));
}

pub(super) async fn verb_register_contract_guards_standing_tasks(f: &mut Fixture) {
    let f = &*f;
    let q = f.queue("q").await;
    let register = |text: &str, replaces: Option<&str>, breaking| {
        let change = ContractChange {
            queue: q.clone(),
            text: text.to_owned(),
            replaces: replaces.map(str::to_owned),
            breaking,
        };
        async move { f.store.register_contract(change).await.expect("an answer") }
    };
    assert_eq!(register("v1", None, false).await, ContractAnswer::Registered);
    assert_eq!(register("v2", None, false).await, ContractAnswer::Changed);
    assert_eq!(register("v2", Some("v0"), false).await, ContractAnswer::Changed);
    assert_eq!(register("v2", Some("v1"), true).await, ContractAnswer::Registered);
    // Pending, delayed, blocked, processing and failed tasks all stand.
    f.enqueue(&q, task("fails").at_priority(-1)).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Fail("never".to_owned())).await;
    f.enqueue(&q, task("runs").keyed("k")).await;
    let held = f.claim_one(&q).await;
    f.enqueue(&q, task("blocked").keyed("k")).await;
    f.enqueue(&q, task("delayed").delayed(60)).await;
    f.enqueue(&q, task("ready")).await;
    assert_eq!(register("v3", Some("v2"), true).await, ContractAnswer::TasksStand(5));
    assert_eq!(f.store.queues().await.expect("queues")[0].contract.as_deref(), Some("v2"));
    assert_eq!(register("v3", Some("v2"), false).await, ContractAnswer::Registered);
    f.end(&held, Outcome::Done).await;
}

pub(super) async fn verb_minutes_keep_what_happened(f: &mut Fixture) {
    let q = f.queue("q").await;
    let start = f.now().minute();
    f.enqueue_all(&q, plain(5)).await;
    let held = f.claim_held(&q, 5).await;
    f.end(&held[0], Outcome::Done).await;
    f.advance(secs(180));
    f.extend(held[1].token, secs(600)).await;
    f.end(&held[1], Outcome::Done).await;
    f.end(&held[2], Outcome::Fail("never".to_owned())).await;
    let at = |minutes: u64| start.after(secs(60 * minutes));
    let mut at_once = Waits::default();
    (0..5).for_each(|_| at_once.count(secs(0)));
    let wanted = [
        Minute { put: 5, done: 1, waits: at_once, ..Minute::new(at(0)) },
        Minute { done: 1, failed: 1, ..Minute::new(at(3)) },
    ];
    assert_eq!(f.store.minutes(&q, secs(3600)).await.expect("minutes"), wanted);
    assert_eq!(f.store.minutes(&q, secs(60)).await.expect("minutes"), wanted[1..]);
    let day = 24 * 3600;
    f.advance(secs(6 * day));
    f.store.sweep().await.expect("a sweep");
    assert_eq!(
        f.store.minutes(&q, secs(7 * day)).await.expect("minutes"),
        wanted,
        "a week is kept"
    );
    f.advance(secs(2 * day));
    f.store.sweep().await.expect("a sweep");
    assert_eq!(f.store.minutes(&q, secs(9 * day)).await.expect("minutes"), [], "a week is kept");
}

/// By a document, which every process of the store goes by.
pub(super) async fn verb_minutes_are_kept_as_long_as_the_store_was_told(f: &mut Fixture) {
    let q = f.queue("q").await;
    let day = 24 * 3600;
    f.enqueue(&q, task("first")).await;
    let tell = async |f: &Fixture, days: u64| {
        let standing = f.store.document(keeping::KIND, keeping::MINUTES).await.expect("a look");
        let change = keeping::change(standing.as_ref(), secs(days * day)).expect("a change");
        f.store.save_document(change).await.expect("saved");
    };
    let kept = async |f: &Fixture| {
        f.store.sweep().await.expect("a sweep");
        f.store.minutes(&q, keeping::MOST).await.expect("minutes").len()
    };
    tell(f, 30).await;
    f.advance(secs(29 * day));
    assert_eq!(kept(f).await, 1, "longer than a week");
    f.enqueue(&q, task("second")).await;
    f.advance(secs(2 * day));
    assert_eq!(kept(f).await, 1, "the first is past its time");
    // Longer than that it is not kept, whatever was said before.
    tell(f, 1).await;
    assert_eq!(kept(f).await, 0);
}

/// From when a task was due, not from when it was put, to its claim.
pub(super) async fn verb_minutes_tell_how_long_tasks_had_waited(f: &mut Fixture) {
    let q = f.queue("q").await;
    let waits = async |f: &Fixture| {
        let mut all = Waits::default();
        for minute in f.store.minutes(&q, secs(7 * 24 * 3600)).await.expect("minutes") {
            all.add(&minute.waits);
        }
        all.0
    };
    f.enqueue_all(&q, plain(3)).await;
    f.advance(secs(30));
    f.enqueue_all(&q, plain(2)).await;
    let held = f.claim_held(&q, 4).await;
    assert_eq!(waits(f).await, [1, 0, 0, 3, 0, 0, 0]);
    for one in &held[1..] {
        f.end(one, Outcome::Done).await;
    }
    // Back at a later time, it has not waited since its put; the fifth one has.
    let later = Outcome::Retry { at: When::After(secs(3_600)), reason: None };
    f.end(&held[0], later).await;
    f.advance(secs(3_600 + 5));
    f.claim_held(&q, 2).await;
    assert_eq!(waits(f).await, [1, 0, 1, 3, 0, 0, 1]);
}
