//! What the service keeps to itself, what it writes down, and what is too much for one
//! request.

use gristmill::port::{
    Action, DocumentChange, DocumentList, Expects, ListRequest, NewTask, Operation, Payload,
    PutRequest, Selection, SettingsPatch, Settlement, TaskFilter,
};
use gristmill::{QueueName, StoreError};
use gristmill_core::{FollowUp, Outcome, Store, Token, WorkerId};
use gristmill_server::{Audit, Scope};
use serde_json::json;

use super::remote;
use crate::client::Site;

fn name(queue: &str) -> QueueName {
    QueueName::new(queue).unwrap()
}

fn task(bytes: usize) -> NewTask {
    NewTask::new(Payload::raw(vec![7; bytes]))
}

#[tokio::test]
async fn more_than_a_request_may_have_is_put_in_several() {
    let site = Site::with(&["q", "next"]).await;
    let store = remote(site.address, None).await;
    // Twelve megabytes: a request has eight.
    let tasks: Vec<NewTask> = (0..12).map(|_| task(1 << 20)).collect();
    let request = PutRequest { queue: name("q"), tasks, atomic: false };
    let report = store.put(request.clone()).await.unwrap();
    assert_eq!((report.answers.len(), report.enqueued()), (12, 12));
    let atomic = store.put(PutRequest { atomic: true, ..request }).await.unwrap_err();
    assert!(atomic.to_string().contains("12 tasks put in one step"), "{atomic}");
    // A page of them ends early, and says where the next one begins.
    let page = ListRequest { limit: 1_000, ..ListRequest::default() };
    let first = store.list(page.clone()).await.unwrap();
    assert_eq!(first.tasks.len(), 8);
    let rest = store.list(ListRequest { after: first.next, ..page }).await.unwrap();
    assert_eq!((rest.tasks.len(), rest.next), (4, None));
    // ... and what settlements put along.
    let claim = gristmill::port::ClaimRequest {
        queue: name("q"),
        max: 12,
        lease: None,
        worker: WorkerId::new("w").unwrap(),
        source: None,
        token: Token::random().unwrap(),
    };
    let claim = store.claim(claim).await.unwrap();
    assert_eq!(claim.tasks.len(), 12);
    let settlements = claim.tasks.iter().map(|held| Settlement {
        follow_ups: vec![FollowUp { queue: name("next"), task: task(1 << 20) }],
        ..Settlement::new(held.id, claim.token, Outcome::Done)
    });
    let answers = store.settle(settlements.collect()).await.unwrap();
    assert_eq!(answers.iter().filter(|answer| answer.is_recorded()).count(), 12);
    assert_eq!(site.mill.inspect().stats().await.unwrap()[1].ready, 12);
}

#[tokio::test]
async fn tokens_and_the_audit_log_are_out_of_reach() {
    let site = Site::with(&["q"]).await;
    let admin = site.token("root", &[Scope::Admin], &[]).await;
    let worker = site.token("worker", &[Scope::Work, Scope::Read], &[]).await;
    let store = remote(site.address, Some(&admin)).await;
    let change =
        |kind: &str| DocumentChange::new(kind, "x", Expects::Absent, Some("{}".to_owned()));
    for kind in ["token", "audit"] {
        let refused = store.save_document(change(kind)).await;
        assert!(matches!(refused, Err(StoreError::Permission(_))), "{refused:?}");
    }
    let list = DocumentList { kind: "token".to_owned(), after: None, limit: 9 };
    assert!(matches!(store.documents(list).await, Err(StoreError::Permission(_))));
    assert!(matches!(store.document("token", "root").await, Err(StoreError::Permission(_))));
    store.save_document(change("mine")).await.unwrap();
    // Who leads, and all that is no worker's word, is an admin's; what cannot be a report of
    // its own name is nobody's.
    let store = remote(site.address, Some(&worker)).await;
    for kind in ["role", "assignment", "mine", "token", "audit"] {
        let refused = store.save_document(change(kind)).await;
        assert!(matches!(refused, Err(StoreError::Permission(_))), "{kind}: {refused:?}");
    }
    for kind in ["role", "mine", "token", "audit"] {
        let refused = store.document(kind, "x").await;
        assert!(matches!(refused, Err(StoreError::Permission(_))), "{kind}: {refused:?}");
        let list = DocumentList { kind: kind.to_owned(), after: None, limit: 9 };
        let refused = store.documents(list).await;
        assert!(matches!(refused, Err(StoreError::Permission(_))), "{kind}: {refused:?}");
    }
    assert!(store.save_document(change("worker")).await.is_err());
}

#[tokio::test]
async fn what_operators_do_from_elsewhere_is_written_down() {
    let site = Site::with(&["q"]).await;
    let admin = site.token("root", &[Scope::Admin], &[]).await;
    let store = remote(site.address, Some(&admin)).await;
    store.pause_queue(&name("q"), true, "ada").await.unwrap();
    store.override_queue(&name("q"), SettingsPatch::default(), "ada").await.unwrap();
    let operation = Operation {
        action: Action::Retry,
        selection: Selection::Matching { filter: TaskFilter::default(), after: None },
        limit: 10,
        by: "bob".to_owned(),
        note: None,
        start: gristmill_core::Start::Now,
    };
    store.operate(operation).await.unwrap();
    // Who looks leaves no line, and neither does what failed.
    store.stats().await.unwrap();
    assert!(store.pause_queue(&name("nope"), true, "ada").await.is_err());
    let lines = Audit::of(&site.mill).list(None, 9).await.unwrap();
    let told: Vec<_> = lines
        .iter()
        .map(|line| {
            let deed = &line.deed;
            assert_eq!((&*deed.via, deed.actor.as_deref()), ("port", Some("root")));
            (&*deed.action, deed.by.as_deref().unwrap(), deed.queue.as_deref())
        })
        .collect();
    assert_eq!(
        told,
        [
            ("tasks.retry", "bob", None),
            ("queues.change", "ada", Some("q")),
            ("queues.pause", "ada", Some("q"))
        ]
    );
}

#[tokio::test]
async fn who_may_not_is_told_why() {
    let site = Site::with(&["ours", "theirs"]).await;
    // When the last token goes, nobody is asked any more.
    site.token("another", &[Scope::Read], &[]).await;
    let limited = site.token("limited", &[Scope::Put, Scope::Work], &["ours"]).await;
    let store = remote(site.address, Some(&limited)).await;
    let put = |queue: &str| PutRequest { queue: name(queue), tasks: vec![task(1)], atomic: false };
    assert_eq!(store.put(put("ours")).await.unwrap().enqueued(), 1);
    let refused = store.put(put("theirs")).await.unwrap_err().to_string();
    assert!(refused.contains("token 'limited' is not for queue 'theirs'"), "{refused}");
    let refused = store.stats().await.unwrap_err().to_string();
    assert!(refused.contains("has not the scope read"), "{refused}");
    let seen: Vec<_> = store.queues().await.unwrap().into_iter().map(|q| q.name).collect();
    assert_eq!(seen, [name("ours")]);
    // A token that was taken back is of no use from then on.
    gristmill_server::Tokens::of(&site.mill).revoke("limited").await.unwrap();
    let refused = loop {
        if let Err(refused) = store.put(put("ours")).await {
            break refused;
        }
    };
    assert!(matches!(refused, StoreError::Permission(_)), "{refused}");
    assert!(!format!("{refused:?}{store:?}").contains(&limited));
}

#[tokio::test]
async fn a_client_of_another_time_is_refused_in_words() {
    let site = Site::with(&["q"]).await;
    let headers = [("content-type", "application/json"), ("gristmill-port", "99")];
    let refused = site.send("POST", "/v1/port/stats", &headers, "{}").await;
    assert_eq!(refused.problem(), (409, "port_version".to_owned(), String::new()));
    assert!(refused.json()["detail"].as_str().unwrap().contains("version 99"), "{refused:?}");
    // What cannot be read says where.
    let wrong = json!({ "queue": "q", "tasks": [{ "payload": 1 }], "atomic": false });
    let refused = site.post("/v1/port/put", &wrong.to_string()).await;
    assert_eq!(refused.problem(), (422, "invalid".to_owned(), "tasks[0].payload".to_owned()));
}
