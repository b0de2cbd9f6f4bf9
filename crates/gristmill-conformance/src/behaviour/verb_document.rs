//! Small records beside tasks: made, changed and removed by who knows their version.

use gristmill_core::document::BODY_BYTES;
use gristmill_core::{
    Beside, Document, DocumentAnswer, DocumentChange, DocumentList, Expects, StoreError,
};

use crate::fixture::Fixture;
use crate::shape::secs;

fn change(name: &str, expects: Option<u64>, body: Option<&str>) -> DocumentChange {
    let expects = expects.map_or(Expects::Absent, Expects::Version);
    DocumentChange::new("kind", name, expects, body.map(str::to_owned))
}

async fn save(f: &Fixture, change: DocumentChange) -> DocumentAnswer {
    f.store.save_document(change).await.expect("an answer")
}

async fn names(f: &Fixture, kind: &str, after: Option<&str>, limit: usize) -> Vec<String> {
    let (kind, after) = (kind.to_owned(), after.map(str::to_owned));
    let list = DocumentList { kind, after, limit };
    let found = f.store.documents(list).await.expect("documents");
    found.into_iter().map(|document| document.name).collect()
}

pub(super) async fn verb_save_document_changes_the_version_it_knows(f: &mut Fixture) {
    let born = f.now();
    let one = |version, body: &str, changed_at| Document {
        kind: "kind".to_owned(),
        name: "a".to_owned(),
        version,
        body: body.to_owned(),
        created_at: born,
        changed_at,
        keep: None,
        read_at: changed_at,
    };
    assert_eq!(f.store.document("kind", "a").await, Ok(None));
    assert_eq!(
        save(f, change("a", Some(1), Some("x"))).await,
        DocumentAnswer::Changed { current: None },
        "there is none to change"
    );
    assert_eq!(
        save(f, change("a", None, Some("{\"é\":1}"))).await,
        DocumentAnswer::Saved(one(1, "{\"é\":1}", born))
    );
    f.advance(secs(5));
    assert_eq!(
        save(f, change("a", None, Some("again"))).await,
        DocumentAnswer::Changed { current: Some(1) },
        "there is one"
    );
    let second = DocumentAnswer::Saved(one(2, "two", f.now()));
    assert_eq!(save(f, change("a", Some(1), Some("two"))).await, second);
    assert_eq!(
        save(f, change("a", Some(1), Some("late"))).await,
        DocumentAnswer::Changed { current: Some(2) }
    );
    assert_eq!(f.store.document("kind", "a").await, Ok(Some(one(2, "two", f.now()))));
    // It is the same after a crash, where the store survives one.
    if f.kill().await {
        assert_eq!(f.store.document("kind", "a").await, Ok(Some(one(2, "two", f.now()))));
    }
    assert_eq!(
        save(f, change("a", Some(1), None)).await,
        DocumentAnswer::Changed { current: Some(2) }
    );
    assert_eq!(save(f, change("a", Some(2), None)).await, DocumentAnswer::Removed);
    assert_eq!(f.store.document("kind", "a").await, Ok(None));
    if f.kill().await {
        assert_eq!(f.store.document("kind", "a").await, Ok(None), "and stays removed");
    }
}

pub(super) async fn verb_save_document_that_races_has_one_winner(f: &mut Fixture) {
    let handles = f.handles().await;
    for expects in [None, Some(1), Some(2)] {
        let mut racing = Vec::new();
        for n in 0..16 {
            let handle = handles[n % handles.len()].clone();
            let change = change("a", expects, Some(&format!("{n}")));
            racing.push(tokio::spawn(async move { handle.store.save_document(change).await }));
        }
        let mut winners = 0;
        for racer in racing {
            let answer = racer.await.expect("a change").expect("an answer");
            winners += usize::from(matches!(answer, DocumentAnswer::Saved(_)));
        }
        assert_eq!(winners, 1);
    }
}

pub(super) async fn verb_documents_are_listed_by_name_and_kind(f: &mut Fixture) {
    for name in ["c", "a", "b", "a-long"] {
        save(f, change(name, None, Some("x"))).await;
    }
    let other = DocumentChange { kind: "kin".to_owned(), ..change("z", None, Some("x")) };
    save(f, other).await;
    assert_eq!(names(f, "kind", None, 100).await, ["a", "a-long", "b", "c"]);
    assert_eq!(names(f, "kind", Some("a"), 2).await, ["a-long", "b"]);
    assert_eq!(names(f, "kind", Some("c"), 2).await, Vec::<String>::new());
    assert_eq!(names(f, "kin", None, 100).await, ["z"]);
    assert_eq!(names(f, "none", None, 100).await, Vec::<String>::new());
    for wrong in [
        change("", None, Some("x")),
        change(&"n".repeat(257), None, Some("x")),
        change("nul\0", None, Some("x")),
        change("a", None, Some("nul\0")),
        change("a", None, Some(&"b".repeat(BODY_BYTES + 1))),
        DocumentChange { kind: String::new(), ..change("a", None, Some("x")) },
    ] {
        let (kind, name) = (wrong.kind.clone(), wrong.name.clone());
        let answer = f.store.save_document(wrong).await;
        let refused = matches!(answer, Err(StoreError::Invalid(_)));
        assert!(refused, "{kind:?} {name:?}");
    }
    let large = "b".repeat(BODY_BYTES);
    save(f, change("large", None, Some(&large))).await;
    let stands = f.store.document("kind", "large").await.expect("an answer").expect("it");
    assert!(stands.body == large);
}

async fn aged(f: &Fixture, version: u64, least: u64) -> DocumentAnswer {
    let expects = Expects::Aged { version, least: secs(least) };
    save(f, DocumentChange { expects, ..change("a", None, Some("taken")) }).await
}

pub(super) async fn verb_save_document_takes_what_was_left_alone(f: &mut Fixture) {
    assert_eq!(aged(f, 1, 10).await, DocumentAnswer::Changed { current: None });
    save(f, change("a", None, Some("x"))).await;
    f.advance(secs(4));
    let read = f.store.document("kind", "a").await.expect("an answer").expect("it");
    assert_eq!((read.age(), read.is_ahead()), (secs(4), false));
    assert_eq!(aged(f, 1, 10).await, DocumentAnswer::Young { left: secs(6) });
    // A change makes it young again, whatever it says.
    save(f, change("a", Some(1), Some("x"))).await;
    assert_eq!(aged(f, 1, 10).await, DocumentAnswer::Changed { current: Some(2) });
    f.advance(secs(9));
    assert_eq!(aged(f, 2, 10).await, DocumentAnswer::Young { left: secs(1) });
    f.advance(secs(1));
    let taken = aged(f, 2, 10).await;
    assert!(matches!(&taken, DocumentAnswer::Saved(one) if one.version == 3), "{taken:?}");
}

pub(super) async fn rule_10_a_jump_makes_no_document_old(f: &mut Fixture) {
    save(f, change("a", None, Some("x"))).await;
    f.store.sweep().await.expect("a sweep");
    f.clock.set_wall(f.now().after(secs(3_600)));
    // Who changes it each three seconds has that long to say so.
    assert_eq!(aged(f, 1, 9).await, DocumentAnswer::Young { left: secs(3) });
    f.advance(secs(3));
    assert!(matches!(aged(f, 1, 9).await, DocumentAnswer::Saved(_)));
    // What was said ahead is said now.
    f.clock.set_wall(f.now().before(secs(7_200)));
    assert_eq!(aged(f, 2, 9).await, DocumentAnswer::Young { left: secs(9) });
    let read = f.store.document("kind", "a").await.expect("an answer").expect("it");
    if read.is_ahead() {
        f.store.sweep().await.expect("a sweep");
    }
    f.advance(secs(9));
    assert!(matches!(aged(f, 2, 9).await, DocumentAnswer::Saved(_)), "and not two hours later");
}

pub(super) async fn verb_save_document_asks_nothing_where_nothing_is_expected(f: &mut Fixture) {
    let anything = |body| DocumentChange { expects: Expects::Anything, ..change("a", None, body) };
    let born = f.now();
    assert_eq!(save(f, anything(None)).await, DocumentAnswer::Changed { current: None });
    for version in 1..=3 {
        let saved = save(f, DocumentChange { durable: false, ..anything(Some("x")) }).await;
        let DocumentAnswer::Saved(saved) = saved else { panic!("{saved:?}") };
        assert_eq!((saved.version, saved.created_at, saved.changed_at), (version, born, f.now()));
        f.advance(secs(1));
    }
    assert_eq!(save(f, anything(None)).await, DocumentAnswer::Removed);
    assert_eq!(f.store.document("kind", "a").await, Ok(None));
}

pub(super) async fn verb_sweep_forgets_documents_past_their_time(f: &mut Fixture) {
    let kept = |name, body| DocumentChange {
        keep: Some(secs(60)),
        expects: Expects::Anything,
        ..change(name, None, Some(body))
    };
    save(f, change("for good", None, Some("x"))).await;
    save(f, kept("a while", "x")).await;
    save(f, kept("renewed", "x")).await;
    f.advance(secs(60));
    assert_eq!(f.store.sweep().await.expect("a sweep").forgotten_documents, 0);
    save(f, kept("renewed", "y")).await;
    f.advance(secs(1));
    assert_eq!(f.store.sweep().await.expect("a sweep").forgotten_documents, 1);
    assert_eq!(names(f, "kind", None, 9).await, ["for good", "renewed"]);
    let read = f.store.document("kind", "renewed").await.expect("an answer").expect("it");
    assert_eq!(read.keep, Some(secs(60)));
}

pub(super) async fn verb_save_document_looks_at_what_stands_beside(f: &mut Fixture) {
    let beside = |version| {
        let (kind, name) = ("kind".to_owned(), "role".to_owned());
        let beside = Some(Beside { kind, name, version });
        let expects = Expects::Anything;
        DocumentChange { beside, expects, ..change("word", None, Some("said")) }
    };
    assert_eq!(save(f, beside(1)).await, DocumentAnswer::Changed { current: None });
    save(f, change("role", None, Some("ada"))).await;
    assert!(matches!(save(f, beside(1)).await, DocumentAnswer::Saved(_)));
    save(f, change("role", Some(1), Some("bob"))).await;
    assert_eq!(save(f, beside(1)).await, DocumentAnswer::Changed { current: Some(1) });
    let said = save(f, beside(2)).await;
    assert!(matches!(&said, DocumentAnswer::Saved(one) if one.version == 2), "{said:?}");
}
