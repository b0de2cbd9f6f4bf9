//! Bulk puts: flushes, counts, and what is said when one is cut short.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures_core::Stream;
use gristmill::{Error, TaskType};
use serde::{Deserialize, Serialize};
use tracing::field::{Field, Visit};

use crate::{Mail, mills};

/// A task that is about an item.
#[derive(Serialize, Deserialize)]
struct Item(u64);

impl TaskType for Item {
    const QUEUE: &'static str = "items";

    fn key(&self) -> Option<String> {
        Some(self.0.to_string())
    }
}

#[tokio::test]
async fn duplicates_are_skipped_and_counted() {
    for (mill, _folder) in mills().await {
        mill.declare::<Item>().await.unwrap();
        let mut seen = Vec::new();
        let input = (0..2_500).map(|n| Item(n % 2_000));
        let report = mill
            .put_all(input)
            .flush(1_000)
            .progress(|p| seen.push(p.flushes))
            .run()
            .await
            .unwrap();
        assert_eq!((report.enqueued, report.duplicates, report.flushes), (2_000, 500, 3));
        assert_eq!(seen, [1, 2, 3]);
        assert_eq!(mill.verbs().put.calls(), 3, "a call, and so a commit, a flush");
        let again = mill.put_all((0..2_000).map(Item)).run().await.unwrap();
        assert_eq!((again.enqueued, again.duplicates), (0, 2_000));
        assert_eq!(mill.inspect().queue("items").await.unwrap().ready, 2_000);
    }
}

#[tokio::test]
async fn a_flush_is_never_under_fifty() {
    for (mill, _folder) in mills().await {
        let report = mill.put_all((0..120).map(Mail::to)).flush(1).run().await.unwrap();
        assert_eq!((report.enqueued, report.flushes), (120, 3));
    }
}

/// Tasks that arrive over time, and a store that is closed on the way.
struct Feed {
    next: u64,
    mill: gristmill::Mill,
}

impl Stream for Feed {
    type Item = Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Item>> {
        self.next += 1;
        if self.next == 151 {
            // Closed while the bulk put waits for its next task.
            let mill = self.mill.clone();
            let waker = context.waker().clone();
            tokio::spawn(async move {
                mill.close().await.unwrap();
                waker.wake();
            });
            return Poll::Pending;
        }
        Poll::Ready((self.next <= 500).then_some(Item(self.next)))
    }
}

#[tokio::test]
async fn a_bulk_put_cut_short_says_what_stands() {
    for (mill, _folder) in mills().await {
        mill.declare::<Item>().await.unwrap();
        let feed = Feed { next: 0, mill: mill.clone() };
        let error = mill.put_stream(feed).flush(100).run_stream().await.unwrap_err();
        let Error::Bulk(error) = error else { panic!("{error}") };
        assert_eq!(error.acknowledged.flushes, 1);
        assert_eq!(error.acknowledged.enqueued, 100);
        assert_eq!(error.unknown, 100);
        assert!(error.cause.wrote_nothing());
        assert!(error.to_string().contains("after 1 acknowledged flushes"), "{error}");
    }
}

#[tokio::test]
async fn a_bulk_put_with_refused_tasks_says_so_at_its_end() {
    for (mill, _folder) in mills().await {
        mill.declare::<Item>().with(|s| s.capacity = Some(Some(120))).await.unwrap();
        let said = mill.put_all((0..200).map(Item)).flush(50).run().await.unwrap_err().to_string();
        assert_eq!(
            said,
            "80 of 200 tasks were refused, the first because the queue is full: 120 tasks are \
             pending; 120 were enqueued and 0 stood already"
        );
        assert_eq!(mill.inspect().queue("items").await.unwrap().ready, 120);
        let counted = mill.put_all((190..200).map(Item)).count_refused().run().await.unwrap();
        assert_eq!((counted.refused, counted.tasks()), (10, 10));
    }
}

/// A task that JSON has no form for, at times.
#[derive(Deserialize)]
struct Odd(u64);

impl Serialize for Odd {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 == 130 {
            return Err(serde::ser::Error::custom("130 has no form"));
        }
        serializer.serialize_u64(self.0)
    }
}

impl TaskType for Odd {
    const QUEUE: &'static str = "items";
}

#[tokio::test]
async fn a_task_without_a_form_does_not_lose_the_report_of_those_before() {
    for (mill, _folder) in mills().await {
        mill.declare::<Odd>().await.unwrap();
        let error = mill.put_all((0..200).map(Odd)).flush(50).run().await.unwrap_err();
        let Error::Bulk(error) = error else { panic!("{error}") };
        assert_eq!((error.acknowledged.enqueued, error.unknown), (100, 0));
        assert!(format!("{error:#}").contains("130 has no form"), "{error:#}");
        assert_eq!(mill.inspect().queue("items").await.unwrap().ready, 100);
    }
}

/// Keeps the lines of one target, as a log would show them.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "gristmill::bulk"
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl Visit for Text {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{field}={value:?} "));
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test(flavor = "current_thread")]
async fn one_debug_line_with_both_counts_only_when_something_was_skipped() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    // Another test may have met the line first, while nobody listened.
    tracing::callsite::rebuild_interest_cache();
    for (mill, _folder) in mills().await {
        mill.declare::<Item>().await.unwrap();
        mill.put_all((0..100).map(Item)).run().await.unwrap();
        assert_eq!(lines.0.lock().unwrap().len(), 0);
        mill.put_all((50..200).map(Item)).run().await.unwrap();
        let said = std::mem::take(&mut *lines.0.lock().unwrap());
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("skipped=50") && said[0].contains("enqueued=100"), "{said:?}");
    }
}
