//! Trace context from the put to the handler, and the span a handler runs in.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use gristmill::TaskType;
use gristmill::worker::{Context, Worker};
use serde::{Deserialize, Serialize};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

use crate::{Mail, mills};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[derive(Serialize, Deserialize)]
struct After(String);

impl TaskType for After {
    const QUEUE: &'static str = "after";
}

/// The spans that handlers log in, with their fields.
#[derive(Clone, Default)]
struct Spans(Arc<Inner>);

#[derive(Default)]
struct Inner {
    next: AtomicU64,
    made: Mutex<BTreeMap<u64, (String, Fields)>>,
    entered: Mutex<Vec<u64>>,
    seen: Mutex<Vec<(String, Fields)>>,
}

#[derive(Clone, Default, Debug)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").replace('"', ""));
    }
}

impl Subscriber for Spans {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let id = self.0.next.fetch_add(1, Ordering::SeqCst) + 1;
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let name = attributes.metadata().name().to_owned();
        self.0.made.lock().unwrap().insert(id, (name, fields));
        span::Id::from_u64(id)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        if event.metadata().target() != module_path!() {
            return;
        }
        let inside = self.0.entered.lock().unwrap().last().copied().unwrap_or_default();
        let made = self.0.made.lock().unwrap();
        self.0.seen.lock().unwrap().push(made.get(&inside).cloned().unwrap_or_default());
    }

    fn enter(&self, id: &span::Id) {
        self.0.entered.lock().unwrap().push(id.into_u64());
    }

    fn exit(&self, id: &span::Id) {
        let mut entered = self.0.entered.lock().unwrap();
        if let Some(at) = entered.iter().rposition(|open| *open == id.into_u64()) {
            entered.remove(at);
        }
    }
}

#[tokio::test]
async fn the_trace_of_a_put_reaches_the_handler_and_what_follows() {
    for (mill, _folder) in mills().await {
        let spans = Spans::default();
        let _listening = tracing::subscriber::set_default(spans.clone());
        mill.declare::<After>().await.unwrap();
        let put = mill.put(Mail::to("x")).traceparent(TRACE).tracestate("vendor=1");
        let id = put.await.unwrap().id();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (first, second) = (seen.clone(), seen.clone());
        let note = |context: &Context| {
            tracing::info!("at work");
            let state = context.headers().get("tracestate").cloned();
            (context.traceparent().map(str::to_owned), state)
        };
        let report = Worker::new(&mill)
            .handle(move |mail: Mail, context: Context| {
                first.lock().unwrap().push(note(&context));
                // After a wait it must still be in its span.
                async move {
                    tokio::task::yield_now().await;
                    tracing::info!("still at work");
                    context.follow_up(After(mail.to)).map_err(|e| e.to_string())
                }
            })
            .handle(move |_: After, context: Context| {
                second.lock().unwrap().push(note(&context));
                async { Ok::<(), String>(()) }
            })
            .drain(true)
            .run(std::future::pending())
            .await
            .unwrap();
        assert_eq!(report.done, 2);
        let carried = (Some(TRACE.to_owned()), Some("vendor=1".to_owned()));
        assert_eq!(*seen.lock().unwrap(), vec![carried; 2]);

        let seen = spans.0.seen.lock().unwrap().clone();
        assert_eq!(seen.len(), 3, "{seen:?}");
        for (at, (name, Fields(fields))) in seen.into_iter().enumerate() {
            assert_eq!(name, "attempt", "{fields:?}");
            assert_eq!(fields["queue"], if at < 2 { "mails" } else { "after" });
            assert_eq!((fields["attempt"].as_str(), fields["traceparent"].as_str()), ("1", TRACE));
            assert!(at == 2 || fields["id"] == id.to_string(), "{fields:?}");
        }
    }
}

#[tokio::test]
async fn without_a_trace_a_handler_has_its_span_all_the_same() {
    let (mill, _folder) = mills().await.remove(0);
    let spans = Spans::default();
    let _listening = tracing::subscriber::set_default(spans.clone());
    mill.put(Mail::to("x")).traceparent("not a trace").tracestate("vendor=1").await.unwrap();
    Worker::new(&mill)
        .handle(|_: Mail, context: Context| async move {
            tracing::info!("at work");
            assert!(context.headers().is_empty(), "a state without a parent means nothing");
            Ok::<(), String>(())
        })
        .drain(true)
        .run(std::future::pending())
        .await
        .unwrap();
    let seen = spans.0.seen.lock().unwrap().clone();
    assert_eq!((seen.len(), seen[0].0.as_str()), (1, "attempt"));
    assert!(!seen[0].1.0.contains_key("traceparent"), "{seen:?}");
}
