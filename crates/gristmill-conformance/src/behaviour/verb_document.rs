//! Small records beside tasks: made, changed and removed by who knows their version.

use gristmill_core::{Document, DocumentAnswer, DocumentChange, DocumentList, StoreError};

use crate::fixture::Fixture;
use crate::shape::secs;

fn change(name: &str, expects: Option<u64>, body: Option<&str>) -> DocumentChange {
    let (kind, name) = ("kind".to_owned(), name.to_owned());
    DocumentChange { kind, name, expects, body: body.map(str::to_owned) }
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
        change("a", None, Some(&"b".repeat((64 << 10) + 1))),
        DocumentChange { kind: String::new(), ..change("a", None, Some("x")) },
    ] {
        let answer = f.store.save_document(wrong.clone()).await;
        assert!(matches!(answer, Err(StoreError::Invalid(_))), "{wrong:?}: {answer:?}");
    }
    let large = "b".repeat(64 << 10);
    save(f, change("large", None, Some(&large))).await;
    let stands = f.store.document("kind", "large").await.expect("an answer").expect("it");
    assert_eq!(stands.body, large);
}
