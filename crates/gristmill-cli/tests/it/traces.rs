//! A trace from a request over HTTP through the put, the claim and the handler, as a
//! collector sees it.

use std::io::{Read, Write};
use std::net::TcpStream;

use rustix::process::Signal;
use serde_json::Value;

use crate::hook::Receiver;
use crate::place::{Place, Running, eventually};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// A service with a handler, whose spans go to this collector, and its address.
fn traced(place: &Place, collector: &str) -> (Running, String) {
    place.write("gristmill.yaml", "queues:\n  - {name: emails, exec: 'echo $TRACEPARENT > got'}\n");
    let mut command = place.command(&["up"]);
    command
        .env("GRISTMILL_LISTEN", "127.0.0.1:0")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector)
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=s3cret")
        .env("OTEL_SERVICE_NAME", "shop");
    let mut up = Running::of(&mut command);
    let seen = Running::until(&mut up.stdout, "  http ");
    let at = seen.last().unwrap().split("http://").nth(1).unwrap();
    let address = at.split(' ').next().unwrap().to_owned();
    Running::until(&mut up.stdout, "Stop with Ctrl-C");
    (up, address)
}

fn put(address: &str, traceparent: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    let body = r#"{"payload":1}"#;
    let length = body.len();
    let request = format!(
        "POST /v1/queues/emails/tasks HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ntraceparent: {traceparent}\r\ntracestate: a=1\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
}

/// All spans that the collector was sent.
fn spans(collector: &Receiver) -> Vec<Value> {
    let requests = collector.asked().into_iter().map(|asked| asked.body);
    let scopes = requests.flat_map(|body| body["resourceSpans"].as_array().unwrap().clone());
    scopes
        .flat_map(|resource| resource["scopeSpans"][0]["spans"].as_array().unwrap().clone())
        .collect()
}

#[test]
fn a_trace_goes_from_a_request_to_the_handler() {
    let (place, collector) = (Place::new(), Receiver::new());
    let (up, address) = traced(&place, &format!("http://{}", collector.address));
    put(&address, &format!("00-{TRACE}-{CALLER}-01"));
    eventually("it is done", || place.stats("emails")["counters"]["done"] == 1);
    up.signal(Signal::TERM);
    let (code, _, errors) = up.end();
    assert_eq!(code, 0, "{errors}");
    let got = std::fs::read_to_string(place.path("got")).unwrap();
    assert!(got.contains(TRACE), "{got}");
    let spans = spans(&collector);
    for (name, kind) in [("send emails", 4), ("receive emails", 3), ("process emails", 5)] {
        let found: Vec<&Value> = spans.iter().filter(|span| span["name"] == name).collect();
        let [span] = found.as_slice() else { panic!("{name}: {spans:#?}") };
        assert_eq!((&span["traceId"], &span["parentSpanId"]), (&TRACE.into(), &CALLER.into()));
        assert_eq!(span["kind"], kind);
        let nanos = |at: &str| span[at].as_str().unwrap().parse::<u64>().unwrap();
        assert!(nanos("startTimeUnixNano") <= nanos("endTimeUnixNano"), "{span}");
    }
    let of = |name: &str| spans.iter().find(|span| span["name"] == name).unwrap();
    // The store's verb stands below the put.
    assert_eq!(of("store put")["parentSpanId"], of("send emails")["spanId"]);
    let attributes = of("process emails")["attributes"].to_string();
    assert!(
        attributes.contains(r#""gristmill.outcome","value":{"stringValue":"done"}"#),
        "{attributes}"
    );
    // Nothing else is a trace: not the looks at what is due.
    assert!(spans.iter().all(|span| span["traceId"] == TRACE), "{spans:#?}");
    let asked = collector.asked();
    assert!(asked.iter().all(|asked| asked.line == "POST /v1/traces HTTP/1.1"));
    assert!(asked.iter().all(|asked| asked.headers["x-key"] == "s3cret"));
    let resource = asked[0].body["resourceSpans"][0]["resource"].to_string();
    assert!(resource.contains("\"shop\""), "{resource}");
}

#[test]
fn what_is_not_to_be_recorded_is_not_and_a_collector_that_is_away_costs_nothing() {
    let (place, collector) = (Place::new(), Receiver::new());
    let (up, address) = traced(&place, &format!("http://{}", collector.address));
    put(&address, &format!("00-{TRACE}-{CALLER}-00"));
    eventually("it is done", || place.stats("emails")["counters"]["done"] == 1);
    up.signal(Signal::TERM);
    assert_eq!(up.end().0, 0);
    assert_eq!(spans(&collector), Vec::<Value>::new());
    let (up, address) = traced(&place, "http://127.0.0.1:1");
    put(&address, &format!("00-{TRACE}-{CALLER}-01"));
    eventually("it is done", || place.stats("emails")["counters"]["done"] == 2);
    up.signal(Signal::TERM);
    let (code, _, errors) = up.end();
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("of traces not sent to the collector: no connection"), "{errors}");
}
