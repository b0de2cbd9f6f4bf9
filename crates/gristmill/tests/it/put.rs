//! Typed puts and their answers.

use std::time::Duration;

use gristmill::port::TaskFilter;
use gristmill::port::{ListRequest, Order};
use gristmill::{Accepted, Error, Mill, Payload, PutAnswer, StoreError, TaskState};

use crate::{Mail, mills};

#[tokio::test]
async fn a_put_says_what_became_of_it() {
    for (mill, _folder) in mills().await {
        let first = mill.put(Mail::to("ada")).key("ada").source("shop").await.unwrap();
        let Accepted::Enqueued { id } = first else { panic!("{first:?}") };
        let again = mill.put(Mail::to("ada")).key("ada").await.unwrap();
        let Accepted::Duplicate { id: standing, source, run_at } = again else {
            panic!("{again:?}")
        };
        assert_eq!((standing, source.as_deref()), (id, Some("shop")));
        assert!(run_at.is_some());
        let task = mill.inspect().task(id).await.unwrap().unwrap();
        assert_eq!(task.payload.bytes.as_ref(), br#"{"to":"ada"}"#);
        assert_eq!(task.state, TaskState::Pending);
    }
}

#[tokio::test]
async fn everything_that_can_be_said_is_stored() {
    for (mill, _folder) in mills().await {
        let put = mill
            .put(Mail::to("ada"))
            .group("g")
            .priority(-3)
            .delay(Duration::from_secs(60))
            .id("once")
            .headers([("traceparent".to_owned(), "00-1".to_owned())].into());
        let id = put.await.unwrap().id();
        let task = mill.inspect().task(id).await.unwrap().unwrap();
        assert_eq!((task.group.as_deref(), task.priority), (Some("g"), -3));
        assert_eq!(task.run_at.since(task.created_at), Duration::from_secs(60));
        assert_eq!(task.headers["traceparent"], "00-1");
        let repeat = mill.put(Mail::to("ada")).id("once").await.unwrap();
        assert_eq!(repeat.id(), id);
        assert!(!repeat.is_enqueued());
        let stats = mill.inspect().queue("mails").await.unwrap();
        assert_eq!((stats.ready, stats.delayed), (0, 1));
    }
}

#[tokio::test]
async fn mistakes_are_errors_in_one_sentence() {
    for (mill, _folder) in mills().await {
        let both = mill
            .put(Mail::to("x"))
            .delay(Duration::from_secs(1))
            .at(gristmill::Timestamp::EPOCH)
            .await;
        assert!(matches!(both, Err(Error::TwoStarts)), "{both:?}");
        let typo = mill.put_raw("mail", Payload::json("1")).await;
        let Err(Error::Store(error @ StoreError::UnknownQueue { .. })) = typo else {
            panic!("{typo:?}")
        };
        assert_eq!(error.to_string(), "there is no queue 'mail'; did you mean 'mails'?");
        assert!(matches!(mill.put_raw("a b", Payload::json("1")).await, Err(Error::Name(_))));
        assert_eq!(mill.inspect().queue("mails").await.unwrap().total(), 0);
    }
}

#[tokio::test]
async fn a_full_queue_is_known_beforehand() {
    for (mill, _folder) in mills().await {
        mill.declare::<Mail>().with(|s| s.capacity = Some(Some(1))).await.unwrap();
        assert!(mill.can_accept("mails").await.unwrap());
        mill.put(Mail::to("x")).await.unwrap();
        assert!(!mill.can_accept("mails").await.unwrap());
        let full = mill.put(Mail::to("y")).await.expect_err("no room");
        assert_eq!(
            full.to_string(),
            "the task was refused: the queue is full: 1 tasks are pending"
        );
        assert!(full.is_full());
        let answer = mill.put(Mail::to("y")).answer().await.unwrap();
        assert!(matches!(answer, PutAnswer::Refused(_)), "{answer:?}");
    }
}

#[tokio::test]
async fn a_refused_task_does_not_pass_through_a_question_mark() {
    for (mill, _folder) in mills().await {
        for (put, why) in [
            (mill.put(Mail::to("x".repeat(2 << 20))), "the payload has"),
            (mill.put(Mail::to("x")).key(""), "the key"),
        ] {
            let refused = put.await.expect_err("refused").to_string();
            assert!(refused.contains(why), "{refused}");
        }
        mill.put(Mail::to("x")).id("1").await.unwrap();
        let reused = mill.put(Mail::to("y")).id("1").await.expect_err("refused").to_string();
        assert!(reused.contains("another payload"), "{reused}");
    }
}

#[tokio::test]
async fn what_stands_can_be_listed_and_found() {
    for (mill, _folder) in mills().await {
        for n in 0..5 {
            mill.put(Mail::to(n)).key(format!("k{n}")).await.unwrap();
        }
        let request = ListRequest { limit: 2, order: Order::Newest, ..ListRequest::default() };
        let page = mill.inspect().list(request).await.unwrap();
        let ids: Vec<i64> = page.tasks.iter().map(|task| task.id.0).collect();
        assert_eq!(ids, [5, 4]);
        let filter = TaskFilter { key: Some("k1".into()), ..TaskFilter::default() };
        let request = ListRequest { limit: 10, filter, ..ListRequest::default() };
        assert_eq!(mill.inspect().list(request).await.unwrap().tasks.len(), 1);
        let keys = ["k3".to_owned(), "nobody".to_owned()];
        let found = mill.inspect().find("mails", &keys).await.unwrap();
        assert_eq!(found.len(), 1);
    }
}

#[tokio::test]
async fn the_wrapper_counts_and_tells() {
    for (mill, _folder) in mills().await {
        let mut events = mill.watch();
        mill.put(Mail::to("x")).await.unwrap();
        let event = events.try_recv().unwrap();
        assert!(format!("{event:?}").contains("enqueued: 1"), "{event:?}");
        assert_eq!(mill.verbs().put.calls(), 1);
        let _ = mill.put_raw("nobody", Payload::json("1")).await;
        assert_eq!((mill.verbs().put.calls(), mill.verbs().put.errors()), (2, 0));
    }
}

#[tokio::test]
async fn a_closed_store_says_so() {
    for (mill, _folder) in mills().await {
        mill.close().await.unwrap();
        let answer = mill.put(Mail::to("x")).await;
        assert!(matches!(answer, Err(Error::Store(StoreError::Closed))), "{answer:?}");
    }
}

#[tokio::test]
async fn an_unusable_url_says_what_is_usable() {
    let error = Mill::open("redis://localhost").await.unwrap_err();
    assert!(error.to_string().contains("sqlite://PATH"), "{error}");
}

#[tokio::test]
async fn a_store_in_a_folder_that_is_not_there_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("none/test.db").display());
    let said = gristmill::Mill::open(&url).await.unwrap_err().to_string();
    assert!(said.contains("there is no folder") && said.contains("none"), "{said}");
}
